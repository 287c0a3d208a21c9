"""The version of the package, read by `pyproject.toml`, by bundles and by `pipeline --version`.

A room of its own, below all others, so that a low-level module can name the version without importing the package's
public face.
"""

__version__ = "0.2.0"
