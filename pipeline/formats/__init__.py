"""Text of hands in, hands as objects or arrays out, and back: ACPC logs and poker hand histories (PHH).

Nothing here knows of datasets or features. Files in reading order: `acpc` (the grammar of a log's line, match
states of the protocol), `ascii` (what byte kernels of both forms share), `histories` (PHH, with a kernel of its own;
the kernel for ACPC lines is `pipeline.ingestion.scan`, since it writes rows of a dataset as it reads).
"""
