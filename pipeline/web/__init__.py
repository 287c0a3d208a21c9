"""Web: the explorer, a small server on this machine and pages that ask it what agents do. In come the agents, the
dataset and the saved matches that were named on the command line; out come JSON answers and a page of a report. In
reading order: `roster` (the loaded agents), `spots` (what one does with every hand), `archive` (the hands of a dataset
as an index on disk), `hands` (these listed and replayed), `leaks` (where a player loses), `tables` (a person against
agents), `jobs` (work in the background), `results` (the report), `app` (all of them behind addresses), `safety` (who
may ask) and `server` (runs it). The pages in `static` draw these answers: they know no rule of the game and nothing of
a strategy.
"""
