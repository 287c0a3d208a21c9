"""Logs, archives and hand histories in, a dataset of validated decisions out, every line accounted for.

In reading order: `run` is one run; `options`, `sources` and `plan` say what it has to do; `batches` reads sources
(`readers`, with the game and players in force from `log_context`) and cuts them into parts; `parts` builds a part:
`hands` drives the byte kernel `scan` over `hand_buffers`, `histories` does the same for hand histories, and `tables`
and `parquet` write the rows; `commit` puts files in place, `summary` counts them. `wapiti` writes rows as text.
"""
