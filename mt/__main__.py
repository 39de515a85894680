"""The program: `mt`, or `python -m mt`, as on some systems `mt` is a tape tool."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it quietly also while it is still being loaded."""
    try:
        from mt.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
