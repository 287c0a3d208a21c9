"""How players play: the statistics that poker players use, and the style of the profiling report.

`statistics` counts what happened in a dataset's decisions; `agents.calibrated` finds the calibrated player that is most
like somebody.
"""
