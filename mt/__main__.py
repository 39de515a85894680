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
        if not (problem := _lacking(missing.name or "")):
            raise
        print(problem, file=sys.stderr)
        sys.exit(2)


def _lacking(module: str) -> str | None:
    """What to say of a module that is not there; None where that is a fault of this program, or of a Python that is not whole."""
    if module == "fcntl":
        return "mt does not run on Windows itself, which has no file locks as on Unix; run it in WSL (docs/machines.md)"
    if not module or "." in module or module in sys.stdlib_module_names:
        return None
    from mt.extras import ACTIVATE, INSTALL

    cure = f"activate the environment that mt was installed into ({ACTIVATE}), or install it, in its folder: {INSTALL}"
    return f"mt needs the library {module}, which this Python has not ({sys.executable}); {cure}"


if __name__ == "__main__":
    main()
