"""The command line: a module per command, each with a click command called `command` (`pipeline.cli.main` lists them).

In come words that a person typed, out go text, JSON (`--json`) and files; whatever is computed is computed in the rooms
below. Read `main` (the group, and how errors end), then `_options` (options that several commands share, each with one
wording), `_tables` and `_progress` (what is printed, and what is drawn while one waits), then any command. Modules
whose names begin with an underscore are shared by several commands.
"""
