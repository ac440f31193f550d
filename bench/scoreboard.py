"""`python -m bench.scoreboard --data FOLDER --write docs/scoreboard.md`: public benchmarks, a row each, beside peers.

FOLDER holds what is not ours to pass on, as far as it is there: clones of mohammadtavakoli78/BEAM and
tenurehq/precisionMemBench (by the name of the repository, with or without a work tree), `locomo/locomo10.json`, and
`outputs/` in the form of bench/outputs.py. A row that was not measured says why, unless an earlier run has measured it;
rows that are not named stay as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import outputs, precision
from bench.figures import taken
from bench.measure import DATA, OUT, Verdict, table, verdict
from bench.page import LOUD, MISSED, kept
from bench.recall import beam, scores, sets, stdlib
from bench.recall.__main__ import WHOLE, baselines, halved, ours, show
from bench.recall.git import git
from bench.recall.sets import Set

HEADS = ("Benchmark", "Ours", "Beside it", "Goal", "Command", "Data", "What it does not show", "Measured")
ROWS = "rows"  # the part of the page with the table
TITLES = {"precision": "PrecisionMemBench", **{size: f"BEAM {size}" for size in beam.SIZES}}
GOAL = 0.95  # of precision and of recall on PrecisionMemBench
BEAM_P50 = 50.0  # milliseconds a question, at 10M tokens
OPENING = """\
# Scoreboard

Public benchmarks, and our own collection of tool outputs, a row each, written by `make scoreboard`; nothing here is
typed by hand. Peers stand beside ours in the same run over the same texts, unless the cell says that a figure was
published. The data is fetched by whoever repeats it and is not part of this repository. No model is called, and nobody
judges answers: every figure counts what was found. LoCoMo and BEAM are asked with `recall(more=true)`, which shows the
whole order; agents get what clearly fits.

```console
$ make scoreboard DATA=FOLDER                        # all rows whose data is there, half an hour
$ make scoreboard DATA=FOLDER NAMES="precision 10M"  # some of them; the others stay as they are
```
"""


class Row(NamedTuple):
    name: str
    ours: str
    beside: str = ""
    goal: str = ""
    command: str = ""
    data: str = ""
    silent: str = ""  # what it does not show
    measured: str = ""


class Found(NamedTuple):
    rows: list[Row]
    details: str = ""  # tables for a section of their own


Way = Callable[[Path, int | None], Found]


def clone(data: Path, name: str) -> Path | None:
    """A repository in the folder of data: a clone, or a git directory."""
    places = (place for way in (f"*{name}", f"*{name}/repo") for place in sorted(data.glob(way)))
    return next((place for place in places if (place / ".git").exists() or (place / "HEAD").exists()), None)


def version(repository: Path) -> str:
    return git(repository, "rev-parse", "--short=12", "HEAD").strip()


def digest(paths: Iterable[Path]) -> str:
    return "sha256 " + hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def _absent(what: str, name: str, command: str) -> Found:
    said = f"not measured: {what} is not in the folder of data"
    return Found([Row(name, said, command=_command(command))])


def _start(name: str) -> str:
    return f'`make scoreboard NAMES="{name}"'


def _command(name: str, most: int | None = None) -> str:
    return f"{_start(name)}{f' MOST={most}' if most else ''}`"


# --- the benchmarks ---------------------------------------------------------------------------------------------------


def of_precision(data: Path, _most: int | None) -> Found:
    repository = clone(data, "precisionMemBench")
    if repository is None:
        return _absent("tenurehq/precisionMemBench", "PrecisionMemBench", "precision")
    harness = precision.prepared(repository)
    if harness is None:
        return Found([Row("PrecisionMemBench", " ".join(taken().words), command=_command("precision"))])
    folder = harness / "test-results" / "baseline"
    published = [(name, precision.report(folder, name)) for name in precision.PUBLISHED]
    beside = "published there: " + ", ".join(
        f"{name} {one.precision:.2f} / {one.recall:.2f}" for name, one in published
    )
    silent = "89 cases over 35 beliefs, seen while unasked recall was built; not which of many thousand notes fits"
    rows, failed = [], []
    for name, *arguments in (("with aliases",), ("without aliases", "--without-aliases")):
        found = precision.run(harness, *arguments)
        met = verdict(-min(found.precision, found.recall), -GOAL, f"≥ {GOAL} / {GOAL}")
        counts = f"active {found.active} of 43, all {found.passed} of 77, session turns {found.turns} of 12"
        shown = f"precision {found.precision:.3f}, recall {found.recall:.3f}; {counts}; p50 {found.p50:.1f} ms"
        of = ("PrecisionMemBench", shown, beside, _judged(met) if not arguments else "", "precision")
        rows.append(_row(f"{of[0]}, {name}", *of[1:], f"tenurehq/precisionMemBench {version(repository)}", silent))
        failed.append(f"Failed {name}:\n\n" + "\n".join(f"- {case}" for case in found.failed))
    return Found(rows, "\n\n".join(failed[:1]))


def of_beam(size: str) -> Way:
    def run(data: Path, most: int | None) -> Found:
        repository = clone(data, "BEAM")
        if repository is None:
            return _absent("mohammadtavakoli78/BEAM", f"BEAM {size}", size)
        source = beam.Source(repository)
        chosen = list(beam.conversations(source, size, most))
        notes = [said for _, said in chosen if said]
        result = beam.measured(iter(chosen))
        if not result.stores:
            return _absent(f"any conversation of {size}", f"BEAM {size}", size)
        beam.show(size, result)
        mine = result.answers[beam.OURS]
        p50 = float(beam.line(mine)[4])
        goal = _judged(verdict(p50, BEAM_P50, f"p50 ≤ {BEAM_P50:.0f} ms")) if size == beam.PARTED else ""
        beside = "; ".join(_beam(name, found) for name, found in result.answers.items() if name != beam.OURS)
        silent = "whether a model answers well with it; many questions have more than 20 source messages"
        shown = f"{_beam('', mine)}; {beam.stored(result)}"
        name = f"BEAM {size}, {len(mine)} questions"
        row = _row(name, shown, beside, goal, size, f"mohammadtavakoli78/BEAM {version(repository)}", silent)
        row = row._replace(command=_command(size, most))
        parts = (("R@10", *beam.by_type(result, "ten")), ("R@20", *beam.by_type(result, "twenty")))
        tables = [f"{title} by type of question:\n\n{_table(heads, lines)}" for title, heads, lines in parts]
        return Found([row], "\n\n".join([*(f"{note}." for note in notes), *tables]))

    return run


def _beam(name: str, found: Sequence[beam.Asked]) -> str:
    ten, twenty, any_ten, any_twenty, p50, p95 = beam.line(found)
    shares = f"R@10 {ten}, R@20 {twenty}, any {any_ten} / {any_twenty}"
    return f"{name.strip()} {shares}, p50 {p50} ms, p95 {p95} ms".strip()


def of_locomo(data: Path, _most: int | None) -> Found:
    path = data / "locomo" / "locomo10.json"
    if not path.exists():
        return _absent("locomo/locomo10.json", "LoCoMo", "locomo")
    silent = "half of the conversations; this half was looked at while weights were chosen on the other"
    return _ranked("LoCoMo, odd conversations", sets.locomo(path)[1::2], "locomo", digest([path]), silent)


def of_functions(data: Path, _most: int | None) -> Found:
    silent = "code asked for in prose, of one library; the half that weights were not chosen on"
    return _ranked(
        "Functions", halved([stdlib.functions()], "test"), "functions", f"Python {platform.python_version()}", silent
    )


def _ranked(name: str, chosen: list[Set], command: str, data: str, silent: str) -> Found:
    asked = sum(len(one.queries) for one in chosen)
    found = show(name, chosen, [*baselines(), (WHOLE, ours())])
    cells = {way: f"R@10 {scores.ten(one.scores):.3f}" for way, one in found.items()}
    mine = f"{cells.pop(WHOLE)}; {1e3 * found[WHOLE].asking / asked:.1f} ms a question"
    beside = "; ".join(f"{way} {cell}" for way, cell in cells.items())
    return Found([_row(f"{name}, {asked} questions", mine, beside, "", command, data, silent)])


def of_outputs(data: Path, _most: int | None) -> Found:
    place = data / "outputs"
    if not (place / "questions.jsonl").exists():
        return _absent("outputs/", "Tool outputs", "outputs")
    taken()
    outputs.over(place)
    figures = taken().floors
    shown = "; ".join(f"{one.ours} {one.what}" for one in figures)
    goal = "; ".join(f"{one.goal} {LOUD.get(one.verdict, one.verdict)}" for one in figures)
    silent = "our own choice of outputs, shapes that were built for; other tools: PEERS=1 in benchmarks.md"
    version = digest([place / "manifest.json", place / "questions.jsonl"])
    return Found([_row("Tool outputs", shown, "none in this run", goal, "outputs", version, silent)])


WAYS: dict[str, Way] = {
    "precision": of_precision,
    **{size: of_beam(size) for size in beam.SIZES},
    "locomo": of_locomo,
    "functions": of_functions,
    "outputs": of_outputs,
}


def _judged(goal: str) -> str:
    if not isinstance(goal, Verdict):
        return goal
    return f"{goal.goal}: {'met' if goal.met else MISSED}"


def _row(name: str, mine: str, beside: str, goal: str, command: str, data: str, silent: str) -> Row:
    return Row(name, mine, beside, goal, _command(command), data, silent, time.strftime("%Y-%m-%d", time.gmtime()))


# --- the page ---------------------------------------------------------------------------------------------------------


def write(path: Path, name: str, found: Found) -> None:
    """Put the rows of one benchmark on the page. Rows that were measured earlier stay, where these were not."""
    parts = kept(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = parts.get(ROWS, "").splitlines()[2:]
    earlier = [line for line in lines if _start(name) in line]
    if earlier and not found.rows[0].measured:
        return
    others = [line for line in lines if line not in earlier]
    order = [_start(one) for one in WAYS]
    made = [_line(row) for row in found.rows] + others
    made.sort(key=lambda line: next((at for at, command in enumerate(order) if command in line), len(order)))
    parts[ROWS] = "\n".join([_line(HEADS), "|---" * len(HEADS) + "|", *made])
    parts.pop(name, None)
    if found.details:
        parts[name] = found.details
    path.write_text(page(parts), encoding="utf-8")


def page(parts: dict[str, str]) -> str:
    made = [OPENING]
    for name in (ROWS, *(name for name in WAYS if name in parts)):
        heading = "## All" if name == ROWS else f"## {TITLES.get(name, name)}"
        made.append(f"{heading}\n\n<!-- {name}: written by the run -->\n{parts[name]}\n<!-- end of {name} -->\n")
    return "\n".join(made)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join([_line(heads), "|---" * len(heads) + "|", *map(_line, lines)])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scoreboard", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"what to measure: {', '.join(WAYS)}")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of what is not ours to pass on")
    parser.add_argument("--write", type=Path, help="the page; printed only otherwise")
    parser.add_argument("--most", type=int, help="conversations of a size of BEAM; all of them otherwise")
    given = parser.parse_args()
    for name in given.names:
        if name not in WAYS:
            parser.error(f"there is no {name!r}; choose from {', '.join(WAYS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    for name in given.names or WAYS:
        found = WAYS[name](given.data, given.most)
        table(name, HEADS[:4], [row[:4] for row in found.rows])
        if given.write:
            write(given.write, name, found)


if __name__ == "__main__":
    main()
