"""Agents: what they are (`protocol`), how they are named (`names`), and those that come with the package."""

from pipeline.agents.names import (
    BUILTIN,
    built_in,
    bundle_options,
    default_game,
    is_bundle,
    numbers,
    plain_name,
    resolve,
)
from pipeline.agents.protocol import Agent, FinishedHands, Learner

__all__ = [
    "BUILTIN",
    "Agent",
    "FinishedHands",
    "Learner",
    "built_in",
    "bundle_options",
    "default_game",
    "is_bundle",
    "numbers",
    "plain_name",
    "resolve",
]
