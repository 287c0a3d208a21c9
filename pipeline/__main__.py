"""`python -m pipeline`: says what to install where even the packages of the core are missing."""

import sys

from pipeline.runtime.extras import explanation

try:
    from pipeline.cli.main import main
except ModuleNotFoundError as error:
    said = explanation(error.name)
    if said is None:
        raise
    sys.exit(f"error: {said}")

if __name__ == "__main__":
    main()
