"""`python -m holdfast` is the command line, for places where the `holdfast` command is not on the path."""

from __future__ import annotations

from holdfast.doors.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
