"""`python -m mt`: the same as `mt`, which on some systems is a tape tool."""

from mt.cli.app import main

if __name__ == "__main__":
    main()
