"""Starts the server of an installed Limpet, for hosts that run this file in place of the command in manifest.json."""

import sys

from limpet.doors.cli import main

if __name__ == "__main__":
    sys.argv = ["limpet", "mcp"]
    main()
