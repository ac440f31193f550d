"""The measured parts of docs/scale.md. What a run found is kept as JSON beside the plots, and they are made of it.

So a table can be worded anew without measuring again, and a test sees that page, plots and figures agree.
`python -m bench.growth_page docs/scale.md` makes them all again.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from bench import growth_tables, load_tables
from bench.growth_tables import Table
from bench.measure import Sizes

PLOTS = "plots"  # the folder beside the page


def machine() -> str:
    """Where and when, and how busy it was: figures of time mean little without."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores with a load of {load} before the run, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"SQLite {apsw.sqlite_lib_version()}"
    )


def keep(page: Path, part: str, where: str, found: Sequence[dict[str, Any]]) -> None:
    """Put what a run found in its file, and write the page and its plots."""
    folder = page.parent / PLOTS
    folder.mkdir(exist_ok=True)
    record = {"where": where, "found": found}
    (folder / f"{part}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    write(page)


def kept(sizes: Sizes, part: str, where: str, found: Sequence[dict[str, Any]]) -> list[Path]:
    """Keep what a whole run found where a page is written that has this one beside it. The plots, if so."""
    page = sizes.folder / "scale.md" if sizes.folder else None
    if sizes.quick or page is None or not page.exists():
        return []
    keep(page, part, where, found)
    return sorted((page.parent / PLOTS).glob(f"{part}-*.svg"))


def write(page: Path) -> None:
    text, plots = made(page)
    page.write_text(text, encoding="utf-8")
    for name, plot in plots.items():
        (page.parent / PLOTS / name).write_text(plot, encoding="utf-8")


def made(page: Path) -> tuple[str, dict[str, str]]:
    """The page and its plots, as the kept figures make them."""
    text, plots = page.read_text(encoding="utf-8"), {}
    for part in ("growth", "load"):
        file = page.parent / PLOTS / f"{part}.json"
        if not file.exists():
            continue
        record = json.loads(file.read_text(encoding="utf-8"))
        if part == "growth":
            points = growth_tables.from_record(record["found"])
            plots, shown = growth_tables.plots(points), growth_tables.tables(points)
        else:
            shown = load_tables.tables(record["found"])
        text = _put(text, part, record["where"], shown, plots if part == "growth" else {})
    return text, plots


def _put(text: str, part: str, where: str, shown: Sequence[Table], plots: dict[str, str]) -> str:
    first, last = f"<!-- {part}: written by the run -->", f"<!-- end of {part} -->"
    before, _, rest = text.partition(first)
    _, found, after = rest.partition(last)
    if not found:
        raise SystemExit(f"the page has no place for {part}: {first} … {last}")
    blocks = [f"{where}.", *(f"![{name.removesuffix('.svg')}]({PLOTS}/{name})" for name in plots)]
    blocks += [f"**{title}**\n\n{_table(heads, rows)}" for title, heads, rows in shown]
    return f"{before}{first}\n" + "\n\n".join(blocks) + f"\n{last}{after}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in (heads, ["---"] * len(heads), *rows))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
