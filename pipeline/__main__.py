"""`python -m pipeline`: says what to install where even the packages of the core are missing."""

import sys

from pipeline.runtime.extras import explain_missing

try:
    from pipeline.cli.main import main
except ModuleNotFoundError as error:
    said = explain_missing(error.name)
    if said is None:
        raise
    sys.exit(f"error: {said}")

if __name__ == "__main__":
    main()
