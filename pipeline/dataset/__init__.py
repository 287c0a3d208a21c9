"""The dataset on disk: Parquet files of hands and decisions, and the manifest that names them.

Ingest writes it; out come arrays of decisions (`load_decisions`), a DataFrame, SQL answers or logs again. Files in
reading order: `decisions` (the record of an observation), `schema` (the columns), `split` (what is held out),
`manifest` (files, sources, options), `opening` (files as tables), `records` (tables as records), `load` (the rows of
some agents and streets), `raises` (raise increments of hand histories), `sql`, and `export` (hands as logs).
"""
