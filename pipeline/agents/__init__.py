"""Agents: what plays a game, and by which name.

In comes an agent's name and a game; out comes an object that gives probabilities (and in no-limit games amounts) for
rows of what the acting player sees. Read `protocol` (the interface) and `names` (the resolver) first; then the agents
that come with the package, simple ones first: `rules`, `equity`, `calibrated`, `bearl`, `teacher`, `lbr`, `adaptive`;
`guests` for bots from outside; and the questions put to agents: `predictions` (one decision), `ranges` (every hand
after a betting) and `spots` (ranges and locks for the solver of spots).
"""
