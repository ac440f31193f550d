"""Texts that mean something to SQL, to a search, to a shell or to a file system, as every argument there is."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from limpet import errors
from limpet.api import Limpet
from limpet.catalogue.table import OPERATIONS
from operations.test_tools import CALLS
from torture.fuzz import NAMES
from torture.kit import Outcome, Tally, opened, sound
from torture.lanes import Made, Share, in_memory, spread

CANARY = "the canary of somebody else"
PATHS = (
    *("../outside/secret.txt", "..\\outside\\secret.txt", "home/../../outside/secret.txt", "link", "link/secret.txt"),
    *("%2e%2e%2foutside%2fsecret.txt", "..%252foutside", "..%c0%afoutside", "....//outside/secret.txt", "//etc/passwd"),
    *("~/secret.txt", "$HOME/secret.txt", "file:///etc/passwd", "/proc/self/environ", "/proc/self/fd/3", "C:\\x"),
    *("\\\\host\\share", "CON", "a:b", "n" * 300, "d/" * 3_000, "-rf", "--help", "NOTES.md/../..", "x ", "x."),
    *(
        "secret.txt\0.md",
        "NOTES.md\0",
        "NOT\u0415S.md",
        "${PROJECT_ROOT}/../outside/secret.txt",
        "|id",
        "`id`",
        "$(id)",
    ),
)
SQL = (
    *("x') OR '1'='1", "x') UNION SELECT 1,2,3,4,5,6,7--", "'; DROP TABLE entries;--", "$.a\"]'||(SELECT 1)||'"),
    *("created; DROP TABLE notes", "desc LIMIT -1", "1;--", "%", "_", "\\", "x' AND randomblob(1e9)--", "x\0y"),
    *(
        "Entity`) WITH n MATCH (x) DETACH DELETE x //",
        "{{7*7}}",
        "{0.__class__}",
        "%n%n%s",
        "\u202e\u2066x",
        "\U000e0041",
    ),
)
SEARCHES = (
    *("foo-bar", '"', 'hello"', "AND", "NOT x", "content:x", "{a b}: x", "^x", "x*", "*", "NEAR(", "(" * 5_000, "a:"),
    *("a OR " * 2_000, "w" * 100_000, "-", "--", "''", "\u0000", "\ufeff", "a" + "\u0301" * 500),
)
TEXTS = (*PATHS, *SQL, *SEARCHES)


def injections(folder: Path, calls: int) -> Outcome:
    with in_memory(folder) as memory:
        tally, numbers = spread(_given, memory, calls, most=3_000)
    cases = f"{numbers['calls']:,} calls with one of {len(TEXTS)} texts, in {len(NAMES)} operations"
    return tally.outcome(cases, "unhandled", "read outside", "written outside", "corrupt")


def _given(share: Share) -> Made:
    tally, chance = Tally(), random.Random(share.seed)
    home, outside = share.folder / "home", share.folder / "outside"
    for place in (home, outside):
        place.mkdir()
    (outside / "secret.txt").write_text(CANARY)
    (home / "link").symlink_to(outside)
    texts = (*TEXTS, str(outside / "secret.txt"), str(outside), str(outside / "new.txt"))
    with opened(home / "limpet.db", "lists") as hold:
        hold.session().notes.add("what is there already", ["tag"])
        for _ in range(share.cases):
            name = chance.choice(NAMES)
            _call(hold, name, _arguments(chance, name, chance.choice(texts)), tally)
        sound(hold, tally)
    if sorted(path.name for path in outside.iterdir()) != ["secret.txt"]:
        tally.miss("written outside", [path.name for path in outside.iterdir()])
    if (outside / "secret.txt").read_text() != CANARY:
        tally.miss("written outside", "the canary")
    shutil.rmtree(share.folder)
    return Made(tally.counts, tally.words, {"calls": share.cases})


def _arguments(chance: random.Random, name: str, text: str) -> dict[str, Any]:
    """A good call where one is known, with the text in place of one argument, or inside of it."""
    good = [dict(given) for operation, given in CALLS if operation == name]
    given: dict[str, Any] = chance.choice(good) if good else {}
    params = [param for param in OPERATIONS[name].all_params() if param.type not in ("integer", "boolean")]
    for param in params:
        if param.required and param.name not in given:
            given[param.name] = [text] if param.type == "strings" else {text: text} if param.type == "object" else text
    if params:
        param = chance.choice(params)
        given[param.name] = [text] if param.type == "strings" else {text: text} if param.type == "object" else text
    else:
        given[text] = text
    return given


def _call(hold: Limpet, name: str, given: dict[str, Any], tally: Tally) -> None:
    try:
        answer = json.dumps(hold.call(name, given), default=str)
    except errors.StoreProblem as problem:
        tally.miss("unhandled", f"{name} {given!r:.120}: the store is blamed: {problem.message}")
    except errors.LimpetError as problem:
        answer = problem.message
    except Exception as problem:  # noqa: BLE001 - the point is that there is none
        tally.miss("unhandled", f"{name} {given!r:.120}: {problem!r}")
    else:
        if CANARY in answer:
            tally.miss("read outside", f"{name} {given!r:.150}")
