"""What must hold for every output: references never dangle, parts join to the whole, and no secret reaches the disk."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import limpet
from limpet import errors
from limpet.api import Limpet, Session, wall_clock
from limpet.home.load import load
from limpet.wiring import open_with
from profiles import fewer_examples

NOON = 1_772_539_200_000
# Examples get a project of their own, so one store serves all of them.
per_example = settings(
    max_examples=fewer_examples(4), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


def opened(store_url: str, clock: Any = wall_clock, **rules: Any) -> Limpet:
    chosen = load(store_url, f"p-{uuid.uuid4().hex}")
    bounds = chosen.bounds._replace(outputs=chosen.bounds.outputs._replace(**rules))
    return open_with(chosen._replace(bounds=bounds), session="work", clock=clock)


def cite(work: Session, where: str, id: str) -> None:
    text = f"the run is {id.upper() if where == 'NOTE' else id}, see there"
    if where.lower() == "note":
        work.notes.add(text)
    elif where == "done note":
        work.notes.update(work.notes.add(text).id, done=True)
    elif where == "notepad":
        work.notepad.append(f"- {text}\n")
    elif where == "memory":
        work.memory.write(f"run {id}", text)
    elif where == "key of memory":
        work.memory.write(f"run-{id}", "see the key")
    elif where == "handoff":
        work.handoff.write(text, line=f"line {id}")
    elif where == "scratchpad":
        work.scratch(f"{text}\n", "append")
    elif where == "reference":
        work.notes.add(f"hold://{id}#lines=1-2")


PLACES = st.sampled_from(
    [
        "note",
        "NOTE",
        "done note",
        "notepad",
        "memory",
        "key of memory",
        "handoff",
        "scratchpad",
        "reference",
        None,
        None,
    ]
)
STEPS = st.lists(
    st.tuples(PLACES, st.integers(0, 2), st.booleans(), st.integers(0, 120_000)), min_size=2, max_size=12
)  # where it is cited, whose session, whether an earlier one is read, and how much time passes


@per_example
@given(steps=STEPS)
def test_references_never_dangle_under_pressure(store_url: str, steps: list[tuple[str | None, int, bool, int]]) -> None:
    """Each keep prunes: there is room for two, and a minute to live."""
    clock = Clock()
    kept: dict[str, tuple[str, str, bool]] = {}
    with opened(store_url, clock, max_age=60, max_cache_size=2 * 5_000) as hold:
        for number, (where, session, reads, passing) in enumerate(steps):
            work = hold.session(f"s{session}")
            content, call = f"{number:04} " * 1_000, f"make part{number}"
            output = work.outputs.keep("make", content, call=call).output
            assert output is not None
            kept[output.id] = content, call, where is not None
            assert work.outputs.read_content(output.id) == content  # what was just kept is never pruned at once
            if where:
                cite(work, where, output.id)
            if reads:
                read_or_learn(work, *next(iter(kept.items())))
            clock.now += passing
            hold.session().outputs.prune()
        for item in kept.items():
            read_or_learn(hold.session(), *item)
        # And nothing is spared that is not cited.
        assert hold.session().outputs.stats().total_bytes <= 2 * 5_000 + 5_000 * sum(one[2] for one in kept.values())


def read_or_learn(work: Session, id: str, item: tuple[str, str, bool]) -> None:
    """An output is there and whole, or its id says for good what it was and how to make it again."""
    content, call, cited = item
    if work.hold.store.outputs.find(work.hold.scope, id) is not None:
        assert work.outputs.read_content(id) == content
        return
    assert not cited, f"{id} was cited and is gone"
    with pytest.raises(errors.NotFound, match=f"the call was {call}. This is final"):
        work.outputs.read(id, lines="1-1")
    with pytest.raises(errors.NotFound, match="This is final"):
        work.outputs.expand(f"hold://{id}")


# --- parts ------------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["\n", "\r\n", "a", "word ", "größer", "記憶", "🚀", "\u2028", "\0", "\ud800", " " * 50, "x" * 300, "{", ","]
)
BODIES = st.lists(PIECES, min_size=1, max_size=60).map("".join)


@per_example
@given(body=BODIES, times=st.integers(1, 40), tokens=st.integers(50, 3_000), step=st.integers(1, 400))
def test_pages_and_ranges_join_to_the_original(store_url: str, body: str, times: int, tokens: int, step: int) -> None:
    text = body * times
    with opened(store_url, threshold_bytes=1) as hold:
        outputs = hold.session().outputs
        output = outputs.keep("x", text).output
        assert output is not None
        whole = outputs.read_content(output.id)
        assert whole == text
        assert "".join(pages(hold, output.id, tokens)) == text
        lines = [ranged(hold, output.id, "lines", n, n + step - 1) for n in range(1, output.lines + 1, step)]
        assert "".join(lines) == text
        chars = [ranged(hold, output.id, "chars", n, min(n + 97, len(text))) for n in range(0, len(text), 97)]
        assert "".join(chars) == text


def pages(hold: Limpet, id: str, tokens: int, **how: str) -> Iterator[str]:
    more: dict[str, Any] = how
    while True:
        read = hold.session().outputs.read(id, tokens=tokens, **more)
        yield read.content
        if read.cursor is None:
            return
        assert read.content, "a page without anything in it never ends"
        more = {"cursor": read.cursor}


def ranged(hold: Limpet, id: str, way: str, first: int, last: int) -> str:
    return "".join(pages(hold, id, 2_000, **{way: f"{first}-{last}"}))


# --- secrets ----------------------------------------------------------------------------------------------------------

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
# Chosen by dice: what Hypothesis would shrink to ("aaaa…") is rightly taken for a placeholder and not for a secret.
TOKENS = st.integers(0, 1 << 64).map(lambda seed: "".join(random.Random(seed).choices(LETTERS, k=36)))
SECRETS = st.one_of(
    TOKENS.map(lambda token: f"ghp_{token}"),
    TOKENS.map(lambda token: f"AKIA{''.join(letter for letter in token.upper() if letter not in '0189')[:16]:A<16}"),
    TOKENS.map(lambda token: f"sk-ant-api03-{token}{token[::-1]}-{token[:6]}AA"),
)


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@settings(max_examples=fewer_examples(4), suppress_health_check=[HealthCheck.too_slow])
@given(secret=SECRETS, line=st.integers(0, 400), pad=st.integers(955, 985))
def test_a_secret_is_nowhere_on_disk(secret: str, line: int, pad: int) -> None:
    """In the result, in the call (also across the place where it is cut), in a difference, in questions, in tombstones.

    Small pieces are looked for uncompressed: calls, previews, tombstones and notes are stored as they are; the bodies
    are read back.
    """
    folder = Path(tempfile.mkdtemp())
    try:
        with limpet.open(str(folder / "limpet.db"), project="demo", session="work") as hold:
            outputs = hold.session().outputs
            rows = [f"row {n} of the log\n" for n in range(401)]
            rows[line] = f"row {line} token={secret} end\n"
            call = f"run {'x' * pad} {secret}"  # of a call, 1,000 characters are kept
            ids = []
            for text in ("".join(rows), "".join(rows), "".join([*rows, f"again {secret}\n"])):
                kept = outputs.keep("curl", text, call=call)
                assert kept.output is not None
                assert secret not in kept.text
                assert secret not in outputs.read_content(kept.output.id)
                ids.append(kept.output.id)
            for way in ("query", "match"):
                outputs.read(ids[0], **{way: f"where is {secret}"})
            outputs.delete(ids[0])
            with pytest.raises(errors.NotFound) as caught:
                outputs.read(ids[0])
            told = caught.value.message + json.dumps(list(hold.export_lines())) + repr(hold.savings())
            assert secret not in told
            raw = on_disk(folder)  # with the log (-wal), before it is folded into the database
            assert b"output_calls" in raw
            for part in {secret, secret[4:16], secret[-12:]}:
                assert part.encode() not in raw
        assert secret.encode() not in on_disk(folder)
    finally:
        shutil.rmtree(folder)
