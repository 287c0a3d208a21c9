"""The dataset on disk.

`schema` names its columns, `manifest` says what belongs to it, `opening` reads its files as tables, `records` turns
these into rows, `load` gives the rows that are wanted, and `raises` says how far raises of hand histories went.
"""
