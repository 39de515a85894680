"""The program: `mt`, or `python -m mt`, as on some systems `mt` is a tape tool."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it quietly also while it is still being loaded."""
    try:
        from mt.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as missing:
        if missing.name != "fcntl":
            raise
        print("mt does not run on Windows itself, which has no file locks as on Unix; run it in WSL (docs/machines.md)", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
