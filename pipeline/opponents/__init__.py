"""Statistics of players and counter-strategies to them.

In: a dataset's decisions, or an agent. Out: the rates that poker players use (`profiles`, read it first), who plays
under a name (`identify`), and strategies that exploit an agent or a player of logs, with what such a player could win
at most (`counters`, over `pipeline.solving.counter`). `pipeline.agents.calibrated` fits the calibrated player that is
most like somebody.
"""
