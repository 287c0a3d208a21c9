"""Adjusted results: the luck of cards and dice taken out of finished hands without changing their mean."""
