"""How players play: the statistics that poker players use, and the style of the profiling report.

`statistics` counts what happened in a dataset's decisions; `style` finds the calibrated player of `pipeline.agents`
that is most like somebody.
"""

from pipeline.profiles.statistics import STATISTICS, Drift, Profile, Rate, StreetPlay, profiles
from pipeline.profiles.style import Style, fit_style

__all__ = ["STATISTICS", "Drift", "Profile", "Rate", "StreetPlay", "Style", "fit_style", "profiles"]
