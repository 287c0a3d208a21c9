"""ACPC logs in, playable agents out: ingest, train, evaluate, play."""

__version__ = "0.1.0"
