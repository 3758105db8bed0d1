"""``python -m ledgerstone``: the command line where its script is not on the path."""

from ledgerstone.entrypoints.cli import main

if __name__ == "__main__":
    main()
