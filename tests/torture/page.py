"""The tables of docs/reliability.md, which are written by the runs themselves."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

HEADS = ("Promise", "Cases", "Figure", "Verdict", "Took")


def table(rows: Sequence[Sequence[str]], heads: Sequence[str] | None = None) -> str:
    lines = [heads or HEADS, ["---"] * len(heads or HEADS), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def machine() -> str:
    """Where and when, and how busy it was: figures of time mean little without."""
    import apsw

    load = ", ".join(f"{one:.0f}" for one in os.getloadavg())
    today = datetime.datetime.now(datetime.UTC).date()
    return (
        f"{today}, {os.cpu_count()} cores with a load of {load}, Linux {platform.release()}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    )


def replace(path: Path, part: str, text: str) -> None:
    """Put a text between the marks of a part."""
    first, last = f"<!-- {part}: written by the run -->", f"<!-- end of {part} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(first)
    _, found, after = rest.partition(last)
    if not found:
        raise SystemExit(f"{path} has no place for {part}: {first} … {last}")
    path.write_text(f"{before}{first}\n{text}\n{last}{after}", encoding="utf-8")
