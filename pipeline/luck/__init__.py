"""Adjusted results: the luck of cards and dice taken out of finished hands without changing their mean."""

from pipeline.luck.estimator import FIT_HANDS, Adjuster, Prepared, adjust
from pipeline.luck.records import LIMIT_OF_DOUBT, HandRecords, misfit
from pipeline.luck.standings import supports

__all__ = ["FIT_HANDS", "LIMIT_OF_DOUBT", "Adjuster", "HandRecords", "Prepared", "adjust", "misfit", "supports"]
