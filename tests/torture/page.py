"""The tables of docs/reliability.md, which are written by the runs themselves."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

HEADS = {
    "goals": ("Promise", "Cases", "Figure", "Verdict", "Took", "When, and the load before"),
    "seeded": ("Seeded bug", "Goal and size", "With the bug", "Without it", "Note"),
}


def table(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def machine() -> str:
    """Where it ran."""
    import apsw

    return (
        f"{os.cpu_count()} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    )


def moment() -> str:
    """When, and how busy the machine was with other things: figures of time mean little without."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y-%m-%d %H:%M}, {os.getloadavg()[0]:.0f}"


def replace(path: Path, part: str, said: str, rows: Sequence[Sequence[str]], order: Sequence[str]) -> None:
    """Put rows into the table of a part, after a line that says where they are from. Rows of a run before stay."""
    first, last = f"<!-- {part}: written by the run -->", f"<!-- end of {part} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(first)
    old, found, after = rest.partition(last)
    if not found:
        raise SystemExit(f"{path} has no place for {part}: {first} … {last}")
    kept = {cells[0]: cells for line in old.splitlines() if (cells := line[2:-2].split(" | "))[0] in order}
    kept |= {row[0]: list(row) for row in rows}
    kept = {name: [*cells, *[""] * (len(HEADS[part]) - len(cells))] for name, cells in kept.items()}
    made = table([kept[name] for name in order if name in kept], HEADS[part])
    path.write_text(f"{before}{first}\n{said}\n\n{made}\n{last}{after}", encoding="utf-8")
