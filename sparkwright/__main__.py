"""``python -m sparkwright``."""

from sparkwright.cli import main

if __name__ == "__main__":
    main(prog_name="sparkwright")
