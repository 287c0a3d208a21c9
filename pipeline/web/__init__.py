"""The explorer: a small server on this machine, and pages that ask it what agents do.

`shelf` holds the agents that were named on the command line, `spots` answers what one does with every hand, `archive`
lists and replays the hands of a dataset, `tables` seats a person against agents, `results` shows the report. `app` puts
them behind addresses, `safety` decides who may ask, `server` runs it. The pages in `static` draw what they are told:
no rule of the game and nothing of a strategy is known there. Nothing imports this but its command and its bench.
"""
