"""Poker hand histories (PHH): text to `History`, `History` to text, and hands played by the rules."""
