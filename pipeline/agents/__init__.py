"""Agents: what they are (`protocol`), how they are named (`names`), and those that come with the package."""
