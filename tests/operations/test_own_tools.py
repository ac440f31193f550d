"""The library's face of outputs: a decorator for people's own tools, and the contract's names with their settings."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from limpet import errors
from limpet.api import Limpet, Session
from limpet.outputs.keep import Stats
from operations.conftest import Clock, Opener

BIG = "".join(f"row {n} of the answer\n" for n in range(400))
MASK = "📁 Output cached: "


@pytest.fixture
def work(hold: Limpet) -> Session:
    return hold.session("work")


def id_in(text: str) -> str:
    assert text.startswith(MASK)
    return text.removeprefix(MASK).split()[0]


# --- the decorator ----------------------------------------------------------------------------------------------------


def test_a_tool_keeps_its_name_signature_and_docstring(work: Session) -> None:
    @work.outputs.tool
    def search(query: str, *, limit: int = 10) -> str:
        """Search the archive."""
        return BIG

    assert search.__name__ == "search"
    assert search.__doc__ == "Search the archive."
    assert list(inspect.signature(search).parameters) == ["query", "limit"]
    assert inspect.signature(search).return_annotation == "str"
    text = search("x", limit=3)
    assert work.outputs.read_content(id_in(text)) == BIG
    (output,) = work.outputs.list().outputs
    assert (output.tool, output.call) == ("search", 'search {"query": "x", "limit": 3}')


def test_small_results_and_what_is_no_text_come_back_as_the_same_object(work: Session) -> None:
    things: list[Any] = ["small", {"a": 1}, [1], None, 7, b"x" * 9_000, object(), {"self": object()}, iter([BIG])]
    for thing in things:
        assert work.outputs.tool(lambda thing=thing: thing)() is thing
    assert work.outputs.list().outputs == ()


@pytest.mark.parametrize("value", [{"rows": [{"n": n} for n in range(900)]}, [BIG], (BIG, 1)])
def test_a_big_value_is_kept_as_its_json(work: Session, value: Any) -> None:
    text = work.outputs.tool(name="api")(lambda: value)()
    assert json.loads(work.outputs.read_content(id_in(text))) == json.loads(json.dumps(value))


class Colour(Enum):
    RED = "red"


@dataclass
class Row:
    number: int
    day: date = date(2026, 11, 18)
    colour: Colour = Colour.RED


class Model(BaseModel):
    rows: list[int]


ROWS = [Row(number) for number in range(300)]
LAST = {"number": 299, "day": "2026-11-18", "colour": "red"}


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [(ROWS, (-1,), LAST), ({"rows": ROWS}, ("rows", -1), LAST), (Model(rows=list(range(3_000))), ("rows", -1), 2_999)],
)
def test_typed_values_are_kept_as_json(work: Session, value: Any, path: tuple[Any, ...], expected: Any) -> None:
    answer = json.loads(work.outputs.read_content(id_in(work.outputs.tool(name="api")(lambda: value)())))
    for step in path:
        answer = answer[step]
    assert answer == expected


def test_an_async_tool_stays_async(work: Session) -> None:
    @work.outputs.tool(name="fetch_page")
    async def fetch(url: str) -> str:
        """Fetch."""
        await asyncio.sleep(0)
        return BIG + url

    assert inspect.iscoroutinefunction(fetch)
    assert fetch.__doc__ == "Fetch."

    async def many() -> list[str]:
        return await asyncio.gather(*(fetch(f"u{n}") for n in range(5)))

    texts = asyncio.run(many())
    assert [work.outputs.read_content(id_in(text)) for text in texts] == [f"{BIG}u{n}" for n in range(5)]
    assert {output.tool for output in work.outputs.list().outputs} == {"fetch_page"}


def test_what_a_tool_raises_passes_untouched(work: Session) -> None:
    problem = ValueError(BIG)

    @work.outputs.tool
    def broken() -> str:
        raise problem

    @work.outputs.tool
    async def broken_later() -> str:
        raise problem

    with pytest.raises(ValueError, match="row 1") as caught:
        broken()
    assert caught.value is problem
    with pytest.raises(ValueError, match="row 1") as caught:
        asyncio.run(broken_later())
    assert caught.value is problem


def test_our_trouble_is_not_the_callers(opened: Opener) -> None:
    hold = opened()

    @hold.session("work").outputs.tool
    def tool() -> str:
        return BIG

    hold.close()
    assert tool() == BIG


def test_the_same_call_is_known_however_it_is_written(work: Session) -> None:
    @work.outputs.tool
    def search(query: str, limit: int = 10) -> str:
        return BIG

    first = search("x")
    assert "unchanged" in search(query="x", limit=10)
    assert search("y") == first


def test_methods_and_generators_work_as_before(work: Session) -> None:
    class Api:
        @work.outputs.tool
        def get(self, n: int) -> str:
            return BIG * n

        @work.outputs.tool
        def each(self) -> Iterator[str]:
            yield BIG

    assert work.outputs.read_content(id_in(work.outputs.tool(str)(BIG))) == BIG
    assert work.outputs.read_content(id_in(Api().get(2))) == BIG * 2
    assert list(Api().each()) == [BIG]


# --- the contract's names ---------------------------------------------------------------------------------------------


def test_every_name_of_the_contract(work: Session) -> None:
    outputs = work.outputs
    assert outputs.maybe_cache("ls", "small") == "small"
    id = id_in(outputs.maybe_cache("ls", BIG))
    assert outputs.read(id, lines="2-2").content == "row 1 of the answer\n"
    assert outputs.read_content(id) == BIG
    (entry,) = outputs.list().outputs
    assert not hasattr(entry, "content")
    stats = outputs.stats()
    assert isinstance(stats, Stats)
    assert (stats.entries, stats.total_bytes) == (1, len(BIG))
    assert stats.oldest == stats.newest == entry.created_at
    assert stats.savings.saved > 0
    assert outputs.prune() == (0, 0)
    assert outputs.delete(id) is True
    assert outputs.delete(id) is False
    with pytest.raises(errors.BadInput):
        outputs.delete("../x")
    outputs.maybe_cache("ls", BIG)
    outputs.maybe_cache("ls", BIG + "more")
    assert (outputs.clear(), outputs.clear()) == (2, 0)
    assert outputs.stats()[:2] == (0, 0)


@pytest.mark.parametrize(
    ("name", "value", "kept", "shows"),
    [
        pytest.param("enabled", "false", False, True, id="enabled"),
        pytest.param("threshold_bytes", str(len(BIG)), True, True, id="equal to the threshold is kept"),
        pytest.param("threshold_bytes", str(len(BIG) + 1), False, True, id="below the threshold passes"),
        pytest.param("include_preview", "no", True, False, id="include_preview"),
    ],
)
def test_a_setting_acts(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, name: str, value: str, kept: bool, shows: bool
) -> None:
    monkeypatch.setenv("LIMPET_SET", f"outputs.{name}={value}")
    text = opened().session().outputs.maybe_cache("ls", BIG)
    assert text.startswith(MASK) == kept
    assert ("row 0" in text) == shows


def test_preview_length_acts(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for length in ("30", "300"):
        monkeypatch.setenv("LIMPET_SET", f"outputs.preview_length={length}")
        texts.append(opened().session().outputs.maybe_cache("ls", BIG + length))
    assert 2 * len(texts[0]) < len(texts[1])


def test_max_age_acts(opened: Opener, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_SET", "outputs.max_age=60")
    outputs = opened().session().outputs
    id = id_in(outputs.maybe_cache("ls", BIG))
    clock.pass_by(60_000)
    assert outputs.prune().deleted == 0
    clock.pass_by(1)
    assert outputs.prune() == (1, len(BIG))
    assert outputs.delete(id) is False


def test_max_cache_size_acts_least_recently_used_first(
    opened: Opener, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_SET", f"outputs.max_cache_size={3 * len(BIG)}")
    outputs = opened().session().outputs
    ids = []
    for n in range(3):
        clock.pass_by()
        ids.append(id_in(outputs.maybe_cache("ls", BIG[:-1] + str(n))))
    clock.pass_by()
    outputs.read(ids[0], lines="1-1")  # a read is a use
    clock.pass_by()
    ids.append(id_in(outputs.maybe_cache("ls", BIG[:-1] + "3")))
    left = {output.id for output in outputs.list().outputs}
    assert left == {ids[0], ids[2], ids[3]}
