"""Outputs in exports: out and back byte for byte, on either store, with what is known of those that are gone."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import limpet
from limpet import errors, limits
from limpet.api import Limpet
from operations.conftest import Clock, Opener

TEXTS = (
    "".join(f"line {n} größer 記憶\n" for n in range(1, 400)),
    "\ud800" + "x" * 5_000,
    "\0" * 9_000 + "no line end",
    random.Random(4).randbytes(2 * limits.OUTPUT_CHUNK_BYTES).hex(),
)


def busy(hold: Limpet, clock: Clock) -> dict[str, str]:
    """A project with outputs of all sorts, one that is gone, and notes that name them. Texts by id."""
    work = hold.session("work")
    kept = {}
    for number, text in enumerate(TEXTS):
        clock.pass_by(3)
        output = work.outputs.keep(f"tool{number}", text, call=f'tool{number} {{"n": {number}}}').output
        assert output is not None
        kept[output.id] = text
    gone = work.outputs.keep("gone", "y" * 5_000, call="make gone").output
    assert gone is not None
    assert work.outputs.delete(gone.id)
    work.outputs.read(next(iter(kept)), lines="1-2")
    work.notes.add(f"see {next(iter(kept))} and {gone.id}")
    return kept


def same(copy: Limpet, kept: dict[str, str]) -> None:
    for id, text in kept.items():
        assert copy.session().outputs.read_content(id) == text
    assert all(finding.ok for finding in copy.check())


def test_a_round_trip_is_exact(hold: Limpet, clock: Clock, opened: Opener) -> None:
    kept = busy(hold, clock)
    lines = list(hold.export_lines())
    assert max(map(len, lines)) < 2 * limits.OUTPUT_CHUNK_BYTES  # in chunks, however big an output is
    copy = opened(project="copy")
    copy.import_lines(iter(lines))
    assert list(copy.export_lines())[1:] == lines[1:]
    same(copy, kept)
    ours, theirs = hold.session().outputs.list(), copy.session().outputs.list()
    assert ours.outputs == theirs.outputs
    assert ours.stats == theirs.stats
    (gone,) = [json.loads(line)["tombstone"]["id"] for line in lines if line.startswith('{"tombstone"')]
    with pytest.raises(errors.NotFound, match="the call was make gone"):
        copy.session().outputs.read(gone)


@pytest.fixture
def both(tmp_path: Path, postgres_url: str, clock: Clock) -> Iterator[dict[str, Limpet]]:
    urls = {"sqlite": str(tmp_path / "one.db"), "postgres": postgres_url}
    holds = {name: limpet.open(url, project="demo", session="one", clock=clock) for name, url in urls.items()}
    yield holds
    for hold in holds.values():
        hold.close()


@pytest.mark.parametrize(("source", "target"), [("sqlite", "postgres"), ("postgres", "sqlite")])
def test_outputs_move_from_one_kind_of_store_to_the_other(
    both: dict[str, Limpet], clock: Clock, source: str, target: str
) -> None:
    kept = busy(both[source], clock)
    lines = list(both[source].export_lines())
    both[target].import_lines(lines)
    assert list(both[target].export_lines()) == lines
    same(both[target], kept)


def test_outputs_can_be_left_out(hold: Limpet, clock: Clock, opened: Opener) -> None:
    busy(hold, clock)
    lines = list(hold.export_lines(outputs=False))
    assert {next(iter(json.loads(line))) for line in lines} == {"limpet", "entry", "event"}
    copy = opened(project="copy")
    copy.import_lines(lines)
    assert copy.session().outputs.stats().entries == 0


def test_a_merge_adds_outputs_that_are_missing(hold: Limpet, clock: Clock, opened: Opener) -> None:
    kept = busy(hold, clock)
    lines = list(hold.export_lines())
    copy = opened(project="copy")
    first = copy.session("other").outputs.keep("mine", TEXTS[0]).output
    assert first is not None
    copy.import_lines(lines, merge=True)
    same(copy, kept)
    assert {output.tool for output in copy.session().outputs.list().outputs} == {"mine", "tool1", "tool2", "tool3"}
    before = list(copy.export_lines())
    copy.import_lines(lines, merge=True)
    assert list(copy.export_lines()) == before


def test_what_is_gone_here_and_arrives_again_is_there_again(hold: Limpet, clock: Clock, opened: Opener) -> None:
    kept = busy(hold, clock)
    lines = list(hold.export_lines())
    id = next(iter(kept))
    assert hold.session().outputs.delete(id)
    hold.import_lines(lines, merge=True)
    same(hold, kept)


def test_a_backup_holds_outputs_too(tmp_path: Path, clock: Clock) -> None:
    with limpet.open(str(tmp_path / "one.db"), project="demo", clock=clock) as hold:
        kept = busy(hold, clock)
        hold.backup(str(tmp_path / "two.db"))
    with limpet.open(str(tmp_path / "two.db"), project="demo", clock=clock) as copy:
        same(copy, kept)


# --- what cannot be read ----------------------------------------------------------------------------------------------


def _line(lines: list[str], kind: str) -> int:
    return next(number for number, line in enumerate(lines) if line.startswith(f'{{"{kind}"'))


def _with(kind: str, name: str, value: object) -> Callable[[list[str]], list[str]]:
    def damage(lines: list[str]) -> list[str]:
        at = _line(lines, kind)
        record = json.loads(lines[at])
        record[kind][name] = value
        return [*lines[:at], json.dumps(record), *lines[at + 1 :]]

    return damage


def _without_a_chunk(lines: list[str]) -> list[str]:
    at = _line(lines, "chunk")
    return lines[:at] + lines[at + 1 :]


def _bomb(lines: list[str]) -> list[str]:
    """A few bytes that would open to more than the output says it has."""
    import importlib
    import sys

    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    small = base64.b64encode(zstd.compress(b"\0" * (200 << 20))).decode()
    return _with("chunk", "zstd", small)(lines)


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_without_a_chunk, id="a chunk is missing"),
        pytest.param(lambda lines: lines[:-2] if '"chunk"' in lines[-2] else lines[: _line(lines, "chunk")], id="cut"),
        pytest.param(_bomb, id="a bomb"),
        pytest.param(_with("chunk", "zstd", "AAAA"), id="no zstd"),
        pytest.param(_with("chunk", "zstd", "not base64!"), id="no base64"),
        pytest.param(_with("chunk", "number", 7), id="another chunk"),
        pytest.param(_with("chunk", "id", "0" * 12), id="a chunk of another"),
        pytest.param(_with("output", "digest", "0" * 64), id="another digest"),
        pytest.param(_with("output", "id", "../../etc/passwd"), id="an id that is a path"),
        pytest.param(_with("output", "size", 3), id="another size"),
        pytest.param(_with("output", "size", 1 << 40), id="too big"),
        pytest.param(_with("output", "size", "3"), id="a size that is text"),
        pytest.param(_with("output", "chunks", 0), id="no chunks"),
        pytest.param(_with("output", "preview", "\ud800"), id="half a character"),
        pytest.param(_with("tombstone", "digest", "x"), id="a tombstone without digest"),
        pytest.param(_with("tombstone", "why", 3), id="a tombstone without reason"),
        pytest.param(lambda lines: [*lines, lines[-1]], id="a tombstone twice"),
    ],
)
def test_outputs_that_cannot_be_read_change_nothing(
    hold: Limpet, clock: Clock, opened: Opener, damage: Callable[[list[str]], list[str]], merge: bool
) -> None:
    busy(hold, clock)
    lines = damage(list(hold.export_lines()))
    copy = opened(project="copy")
    before = list(copy.export_lines())
    with pytest.raises(errors.BadInput) as caught:
        copy.import_lines(lines, merge=merge)
    assert caught.value.code == "bad_import"
    assert "of the import cannot be read" in caught.value.message
    assert list(copy.export_lines()) == before
    copy.import_lines(list(hold.export_lines()))  # it is still empty


def test_an_id_that_belongs_to_another_content_is_a_conflict(hold: Limpet, clock: Clock, opened: Opener) -> None:
    """Two contents whose digests begin alike cannot be made; so the one that is here says so in its tombstone."""
    kept = busy(hold, clock)
    lines = list(hold.export_lines())
    id = next(iter(kept))
    stone = json.loads(lines[-1])
    stone["tombstone"] |= {"id": id, "digest": id + "0" * 52}
    copy = opened(project="copy")
    copy.import_lines([lines[0], json.dumps(stone)])
    with pytest.raises(errors.Conflict, match=f"another output '{id}'"):
        copy.import_lines(lines, merge=True)
    assert copy.session().outputs.stats().entries == 0
