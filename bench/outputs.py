"""`python -m bench.outputs [--dir DIR]`: what previews and questions show of real tool outputs, and what they cost.

DIR holds `files/` (a file may be compressed, `.xz`), `manifest.json` and `questions.jsonl`, each question with its
file, its answer, the words that must stand near it (`context`) and the lines that hold it (`needles`). A question
counts as answered when the text shown contains a whole needle line, or the answer together with its context.
Everything goes through the public library. `--misses` lists the questions that are not answered.

A whole run is what an agent would see: the preview of each output once; for each question that it does not answer, one
read of 600 tokens; and when that does not answer it either, a page of 2,000.

A text that is too small to be kept passes as it is: it has no preview and is never read back, and all of its tokens
count as shown, once.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import limpet
from bench.figures import alone, remark
from bench.measure import DATA, Sizes, table, verdict
from limpet.api import Session
from limpet.outputs.keep import Replacement
from limpet.text import tokens

HERE = DATA / "outputs"
BUDGETS = (600, 300)
PAGE = 2_000  # tokens of the page that is read when a question was not answered
SMALL = "small"  # not kept


# What context-mode says of its own fixtures (BENCHMARK.md of 2026-03-15): bytes in the window after a script that was
# written by hand for each file, for one question, with no check of the answer.
PUBLISHED = {
    "cm_context7-react-docs.md": 261,
    "cm_context7-nextjs-docs.md": 249,
    "cm_context7-tailwind-docs.md": 186,
    "cm_playwright-snapshot.txt": 299,
    "cm_github-prs.json": 719,
    "cm_github-issues.json": 1139,
    "cm_test-output.txt": 337,
    "cm_tsc-errors.txt": 347,
    "cm_build-output.txt": 405,
    "cm_mcp-tools.json": 742,
    "cm_access.log": 155,
    "cm_git-log.txt": 107,
    "cm_analytics.csv": 222,
}


class Row(NamedTuple):
    name: str
    size: int  # bytes
    shown: int  # bytes of the reference with its preview
    shape: str
    original: int  # tokens
    preview: int
    asked: int
    by_preview: int
    by_question: tuple[int, ...]
    read_back: int  # tokens of the answers at the larger budget
    run: int  # tokens of the whole run
    misses: tuple[str, ...]  # questions that no read answered, or one of the budgets did not


def answered(question: dict[str, Any], shown: str) -> bool:
    """Whether the text shown holds a whole needle line, or the answer with its context at most `window` lines away."""
    lines = [" ".join(line.split()) for line in shown.split("\n")]
    if any(" ".join(str(needle).split()) in line for needle in question["needles"] for line in lines):
        return True
    away = int(question.get("window") or 0)
    for at, line in enumerate(lines):
        around = "\n".join(lines[max(0, at - away) : at + away + 1])
        if str(question["answer"]) in line and all(str(word) in around for word in question["context"]):
            return True
    return False


def source(path: Path) -> str:
    """The text of a file, which may be compressed."""
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8", "replace")


def name_of(path: Path) -> str:
    return path.name.removesuffix(".xz")


def measure(session: Session, path: Path, questions: list[dict[str, Any]]) -> Row:
    text, name = source(path), name_of(path)
    kept = session.outputs.keep(name, text)
    shape = kept.output.shape if kept.output else SMALL
    counts = tokens.count(text), tokens.count(kept.text)
    by_question = [0] * len(BUDGETS)
    read_back, run = 0, counts[1]
    by_preview = 0
    misses: list[str] = []
    for question in questions:
        previewed = answered(question, kept.text)
        by_preview += previewed
        reads = [_read(session, kept, text, question, budget) for budget in BUDGETS]
        fits = [answered(question, shown) for shown in reads]
        by_question = [count + fit for count, fit in zip(by_question, fits, strict=True)]
        first = tokens.count(reads[0]) if kept.output else 0
        read_back += first
        run += 0 if previewed else first + (0 if fits[0] else min(counts[0], PAGE))
        if not all(fits):
            lacking = ", ".join(str(budget) for budget, fit in zip(BUDGETS, fits, strict=True) if not fit)
            misses.append(f"{name} ({lacking}{', previewed' if previewed else ''}): {question['question']}")
    sizes = len(text.encode("utf-8", "surrogatepass")), len(kept.text.encode("utf-8", "surrogatepass"))
    answers = tuple(by_question)
    return Row(name, *sizes, shape, *counts, len(questions), by_preview, answers, read_back, run, tuple(misses))


def _read(session: Session, kept: Replacement, text: str, question: dict[str, Any], budget: int) -> str:
    if kept.output is None:
        return text
    return session.outputs.read(kept.output.id, query=question["question"], tokens=budget).content


def report(rows: list[Row]) -> None:
    shapes: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        shapes[row.shape].append(row)
    lines = [_line(shape, shapes[shape]) for shape in sorted(shapes)] + [_line("all", rows)]
    _beside(rows)
    columns = ("shape", "files", "tokens", "preview, mean", "most", "asked", "by preview")
    budgets = tuple(f"by one read of {budget}" for budget in BUDGETS)
    table("Previews and questions", [*columns, *budgets, "shown of all"], lines)
    _goals(rows)
    print(f"\ntokens of a whole run: {sum(row.run for row in rows):,}")
    print("\ngoals: preview ≤ 400 on average and ≤ 600 at most, ≥ 25 % by preview;")
    print("one read ≥ 97 % at 600 tokens and ≥ 93 % at 300; preview and read-backs together ≤ 3 % of all")


def _beside(rows: list[Row]) -> None:
    """The files of context-mode's own benchmark, beside what it says of them."""
    ours = [row for row in rows if row.name in PUBLISHED]
    if not ours:
        return
    lines = [
        [row.name, f"{row.size:,}", f"{PUBLISHED[row.name]:,}", f"{row.shown:,}", _share(row.by_preview, row.asked)]
        for row in ours
    ]
    heads = ("file", "bytes", "context-mode's script, published", "our preview", "questions it answers")
    table(
        "Bytes in the window, beside context-mode's published ones (a script for each file, no answers checked)",
        heads,
        lines,
    )


def _goals(rows: list[Row]) -> None:
    asked, original = sum(row.asked for row in rows), sum(row.original for row in rows)
    previews = [row.preview for row in rows if row.shape != SMALL]
    mean, most = sum(previews) / len(previews), max(previews)
    alone(f"tokens of a preview, mean of {len(previews)}", f"{mean:.0f}", verdict(mean, 400, "≤ 400"))
    alone("tokens of a preview, most", str(most), verdict(most, 600, "≤ 600"))
    answers = {"the preview": (sum(row.by_preview for row in rows), 0.25)}
    for at, least in enumerate((0.97, 0.93)):
        answers[f"one read of {BUDGETS[at]} tokens"] = sum(row.by_question[at] for row in rows), least
    for name, (count, least) in answers.items():
        share = count / asked
        what = f"of {asked} questions answered by {name}"
        alone(what, f"{share:.1%}", verdict(-share, -least, f"≥ {least:.0%}"))
    shown = sum(row.preview + row.read_back for row in rows) / original
    alone(f"previews and read-backs, of {original:,} tokens", f"{shown:.2%}", verdict(shown, 0.03, "≤ 3%"))


def _line(name: str, rows: list[Row]) -> list[str]:
    asked = sum(row.asked for row in rows)
    previews = [row.preview for row in rows if row.shape != SMALL]
    original = sum(row.original for row in rows)
    shown = sum(row.preview for row in rows) + sum(row.read_back for row in rows)
    return [
        name,
        str(len(rows)),
        f"{original:,}",
        f"{sum(previews) / len(previews):.0f}" if previews else "-",
        str(max(previews)) if previews else "-",
        str(asked),
        _share(sum(row.by_preview for row in rows), asked),
        *(_share(sum(row.by_question[at] for row in rows), asked) for at in range(len(BUDGETS))),
        f"{shown / original:.2%}",
    ]


def _share(count: int, asked: int) -> str:
    return f"{count / asked:.0%}" if asked else "-"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.outputs", description=__doc__)
    parser.add_argument("--dir", type=Path, default=HERE, help="a folder with files/ and questions.jsonl")
    parser.add_argument("--misses", action="store_true", help="list the questions that one read does not answer")
    arguments = parser.parse_args()
    over(arguments.dir, misses=arguments.misses)


def run(sizes: Sizes) -> None:
    """As part of `python -m bench`: over the outputs beside the repository, when they are there."""
    over(HERE, sizes.peers)


def over(place: Path, peers: bool = False, misses: bool = False) -> None:
    """All files of a folder with all their questions."""
    if not (place / "questions.jsonl").exists():
        remark("Not measured: there are no outputs with questions (BENCH_DATA names the folder of public data).")
        return
    questions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in (place / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        questions[question["file"]].append(question)
    with tempfile.TemporaryDirectory() as folder, limpet.open(f"{folder}/limpet.db", project="bench") as hold:
        session = hold.session("bench")
        files = sorted((place / "files").iterdir())
        rows = [measure(session, path, questions[name_of(path)]) for path in files]
    print(f"tokens by {tokens.NAME}; {len(rows)} files, {sum(map(len, questions.values()))} questions\n")
    report(rows)
    for row in rows if misses else ():
        print(*row.misses, sep="\n", end="\n" if row.misses else "")
    if peers:
        from bench.peers import economy

        asked = sum(row.asked for row in rows)
        shown = sum(row.preview * row.asked + row.read_back for row in rows) / asked
        ours = economy.Economy(sum(row.by_question[0] for row in rows) / asked, shown)
        economy.run(files, questions, answered, ours)


if __name__ == "__main__":
    main()
