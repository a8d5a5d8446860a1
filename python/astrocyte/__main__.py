"""``python -m astrocyte`` is the command ``astrocyte``."""

from astrocyte.cli import main

if __name__ == "__main__":
    main()
