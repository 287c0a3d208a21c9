"""Log files and archives in, a dataset of validated decisions out, every line accounted for (see `run`)."""

from pipeline.ingest.options import Options, options
from pipeline.ingest.run import ingest
from pipeline.ingest.summary import Summary

__all__ = ["Options", "Summary", "ingest", "options"]
