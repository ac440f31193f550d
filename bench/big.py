"""Big texts of the kinds that tools return, made from fixed seeds: the same bytes in every run."""

from __future__ import annotations

import json
import random
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from bench import corpus

MB = 1_000_000
MODULES = ("http.server", "db.pool", "auth", "worker", "cache", "scheduler", "ingest.pipeline")


@cache
def text(shape: str, size: int) -> str:
    """So many bytes of a shape; a little more where the last line or value has to end."""
    return SHAPES[shape](size)


def _until(size: int, lines: Iterator[str]) -> str:
    made: list[str] = []
    while size > 0:
        made.append(next(lines))
        size -= len(made[-1])
    return "".join(made)


def _log(size: int) -> str:
    def lines(chance: random.Random) -> Iterator[str]:
        at = 0
        while True:
            at += chance.randint(1, 900)
            level = chance.choices(("INFO", "DEBUG", "WARNING", "ERROR"), (80, 15, 4, 1))[0]
            said = chance.choice(
                (
                    f"request {chance.getrandbits(48):012x} for {chance.randint(1, 999)} took {chance.random():.2f} s",
                    f"connection {chance.randint(1, 500)} went back to the pool",
                    f"nothing cached for user:{chance.randint(1, 9_999)}:profile",
                    f"job {chance.getrandbits(32):08x} done in {chance.random():.3f} s",
                )
            )
            if level == "ERROR":
                said = f"cannot reach the database at 10.0.0.{chance.randint(1, 254)}: timeout after 30 s"
            clock = f"{at // 3_600_000 % 24:02}:{at // 60_000 % 60:02}:{at // 1000 % 60:02}.{at % 1000:03}"
            yield f"2026-02-{1 + at // 86_400_000 % 28:02}T{clock}Z {level} [{chance.choice(MODULES)}] {said}\n"

    return _until(size, lines(random.Random(1)))


def _run(size: int) -> str:
    def lines(chance: random.Random) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            ended = "FAILED" if chance.random() < 0.002 else "PASSED"
            case = f"[{chance.choice(('sqlite', 'postgres'))}-{chance.randint(1, 99)}]"
            yield f"tests/unit/test_part_{number // 40:03}.py::test_case_{number}{case} {ended} [{number % 100:3}%]\n"

    body = _until(size, lines(random.Random(2)))
    failed, passed = body.count(" FAILED "), body.count(" PASSED ")
    return f"{'=' * 20} test session starts {'=' * 20}\n{body}{'=' * 10} {failed} failed, {passed} passed in 93.21s\n"


def _rows(size: int) -> str:
    def rows(chance: random.Random) -> Iterator[str]:
        while True:
            row = {
                "id": chance.randint(1, 10**9),
                "name": f"user {chance.randint(1, 9_999)}",
                "active": chance.random() < 0.5,
                "score": round(chance.random() * 100, 3),
                "tags": chance.sample(("red", "green", "blue", "grey"), 2),
                "address": {
                    "city": chance.choice(("Bonn", "Oslo", "Rome")),
                    "zip": str(chance.randint(10_000, 99_999)),
                },
            }
            yield json.dumps(row) + ", "

    return f"[{_until(size, rows(random.Random(3))).removesuffix(', ')}]"


def _csv(size: int) -> str:
    def lines(chance: random.Random) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            what = chance.choice(("bolt, small", "bolt, big", "nut"))
            when = f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
            yield f'{number},{when},"{what}",{chance.randint(1, 99)},{chance.random() * 500:.2f}\n'

    return "number,day,what,count,price\n" + _until(size, lines(random.Random(4)))


def _code(size: int) -> str:
    """Python's own library."""
    place = Path(sysconfig.get_paths()["stdlib"])
    files = (path.read_text(encoding="utf-8", errors="replace") for path in sorted(place.glob("*.py")))
    return _until(size, _again(list(files)))[:size]


def _prose(size: int) -> str:
    return _until(size, _again([f"{note.content}\n" for note in corpus.notes(45_000)]))[:size]


def _again(texts: list[str]) -> Iterator[str]:
    while True:
        yield from texts


SHAPES: dict[str, Callable[[int], str]] = {
    "log": _log,
    "test run": _run,
    "JSON": _rows,
    "CSV": _csv,
    "code": _code,
    "prose": _prose,
}
