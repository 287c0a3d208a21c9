"""The rules of the games: cards, betting, showdowns, game files and hand strength; knows nothing of files or models."""
