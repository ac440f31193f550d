"""`python -m limpet` is the command line, for places where the `limpet` command is not on the path."""

from __future__ import annotations

from limpet.doors.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
