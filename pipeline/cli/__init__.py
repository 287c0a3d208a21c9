"""The command line: a module per command, each with a click command called `command` (`pipeline.cli.main` lists them).

Modules whose names begin with an underscore are shared by several commands.
"""
