"""The version of the package, read by `pyproject.toml`, by bundles and by `pipeline --version`.

Separate module: a low-level one can name the version without importing the package's public face.
"""

__version__ = "0.2.0"
