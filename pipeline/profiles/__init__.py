"""How players play: the statistics that poker players use, and the style of the profiling report.

`statistics` counts what happened in a dataset's decisions; `agents.style` finds the calibrated player that is most like
somebody.
"""

from pipeline.agents.style import Style, fit_style
from pipeline.profiles.statistics import STATISTICS, Drift, Profile, Rate, StreetPlay, profiles

__all__ = ["STATISTICS", "Drift", "Profile", "Rate", "StreetPlay", "Style", "fit_style", "profiles"]
