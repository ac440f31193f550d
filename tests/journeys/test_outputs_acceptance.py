"""What a cache of big tool results has to do, item by item: put in through the library, read by an agent over MCP.

The first part is what such a cache was tested for before; the second is what was never tested there.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import limpet
from journeys.stdio import Server, environment
from limpet import errors
from limpet.api import Limpet
from limpet.outputs.methods import SessionOutputs

NOON = 1_772_539_200_000
THRESHOLD = 4_096
MASK = "📁 Output cached: "
ROWS = json.dumps({"results": [{"id": n, "name": f"document {n}"} for n in range(200)], "metadata": {"total": 200}})
Set = Callable[..., SessionOutputs]


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "limpet.db")


@pytest.fixture
def given(store: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Set]:
    """The outputs of a session, with settings."""
    holds: list[Limpet] = []

    def opened(**settings: object) -> SessionOutputs:
        monkeypatch.setenv("LIMPET_SET", ";".join(f"outputs.{name}={value}" for name, value in settings.items()))
        holds.append(limpet.open(store, project="demo", session="work", clock=clock))
        return holds[-1].session().outputs

    yield opened
    for hold in holds:
        hold.close()


@pytest.fixture
def outputs(given: Set) -> SessionOutputs:
    return given()


@pytest.fixture
def agent(store: str) -> Iterator[Server]:
    with Server(store, "--session", "work") as server:
        yield server


def id_in(text: str) -> str:
    assert text.startswith(MASK), text[:100]
    return text.removeprefix(MASK).split()[0]


def big(seed: str = "x", size: int = 5_000) -> str:
    return (seed * size)[:size]


# --- what was tested --------------------------------------------------------------------------------------------------


def test_01_below_the_threshold_the_content_is_returned_unchanged(outputs: SessionOutputs) -> None:
    assert outputs.maybe_cache("search", "small result") == "small result"
    assert outputs.stats().entries == 0


def test_02_above_it_a_reference_says_what_it_is_and_names_the_real_tool(
    outputs: SessionOutputs, store: str, agent: Server
) -> None:
    text = outputs.maybe_cache("search", ROWS)
    assert text.startswith(f"{MASK}{hashlib.sha256(ROWS.encode()).hexdigest()[:12]} ({len(ROWS) / 1024:.1f}KB)")
    tool = text.rpartition("Read more with ")[2].partition("(")[0]
    assert tool in {listed["name"] for listed in agent.request("tools/list", {})["result"]["tools"]}
    assert str(Path(store).parent) not in text


def test_03_an_entry_is_retrieved_by_its_id(outputs: SessionOutputs, agent: Server) -> None:
    id = id_in(outputs.maybe_cache("search", ROWS))
    read = outputs.read(id)
    assert (read.output.id, read.output.tool, read.output.shape) == (id, "search", "json")
    pages = ""
    more: dict[str, str] = {}
    while True:
        page = agent.call("read_output", id=id, **more)
        pages += page["content"]
        assert not page["content"].startswith(MASK)  # what is read is never put away again
        if "cursor" not in page:
            break
        more = {"cursor": page["cursor"]}
    assert pages == ROWS


def test_04_read_content_gives_the_content_itself(outputs: SessionOutputs) -> None:
    assert outputs.read_content(id_in(outputs.maybe_cache("search", ROWS))) == ROWS


def test_05_identical_content_from_two_tools_is_one_entry(outputs: SessionOutputs) -> None:
    assert id_in(outputs.maybe_cache("one", ROWS)) == id_in(outputs.maybe_cache("two", ROWS))
    assert outputs.stats().entries == 1


def test_06_a_list_has_no_content(outputs: SessionOutputs, agent: Server) -> None:
    id = id_in(outputs.maybe_cache("search", big("unmistakable ")))
    answer = agent.call("list_outputs")
    assert [entry["id"] for entry in answer["entries"]] == [id]
    assert "unmistakable" not in json.dumps(answer)


def test_07_delete_is_true_and_then_there_is_nothing_to_read(outputs: SessionOutputs, agent: Server) -> None:
    id = id_in(outputs.maybe_cache("search", ROWS))
    assert outputs.delete(id) is True
    with pytest.raises(errors.NotFound, match="is gone"):
        outputs.read(id)
    assert "This is final" in agent.refusal("read_output", {"id": id})


def test_08_clear_counts_what_there_was(outputs: SessionOutputs) -> None:
    outputs.maybe_cache("a", big("a"))
    outputs.maybe_cache("b", big("b"))
    assert (outputs.clear(), outputs.clear()) == (2, 0)


def test_09_stats_count_entries_bytes_and_times(outputs: SessionOutputs, clock: Clock, agent: Server) -> None:
    outputs.maybe_cache("a", big("a"))
    clock.now += 5_000
    outputs.maybe_cache("b", big("b"))
    stats = outputs.stats()
    assert (stats.entries, stats.total_bytes, stats.oldest, stats.newest) == (2, 10_000, NOON, NOON + 5_000)
    assert agent.call("list_outputs")["stats"]["total_bytes"] == 10_000


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        pytest.param(ROWS, "json", id="10 JSON"),
        pytest.param("# Title\n\nwords\n\n## Part\n\nmore words\n" * 120, "markdown", id="11 Markdown"),
        pytest.param("of course C# is fine, as # 5 is\n" * 200, "text", id="11 a sharp is no Markdown"),
        pytest.param("{ this is not JSON ] " * 300, "text", id="10 a brace is no JSON"),
    ],
)
def test_10_and_11_the_shape_is_recognised(outputs: SessionOutputs, content: str, shape: str) -> None:
    assert outputs.read(id_in(outputs.maybe_cache("x", content))).output.shape == shape


def test_12_the_preview_of_an_array_says_how_many_items_it_has(outputs: SessionOutputs) -> None:
    text = outputs.maybe_cache("x", json.dumps([{"n": n, "pad": "y" * 60} for n in range(100)]))
    assert "array of 100" in text


# --- what was not -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "cached"), [(THRESHOLD - 1, False), (THRESHOLD, True), (THRESHOLD + 1, True)])
def test_a_size_equal_to_the_threshold_is_cached(outputs: SessionOutputs, size: int, cached: bool) -> None:
    assert outputs.maybe_cache("x", big(size=size)).startswith(MASK) == cached


@pytest.mark.parametrize(("count", "cached"), [(THRESHOLD // 3, False), (THRESHOLD // 3 + 1, True)])
def test_sizes_are_bytes_not_characters(outputs: SessionOutputs, count: int, cached: bool) -> None:
    text = outputs.maybe_cache("x", "記" * count)
    assert text.startswith(MASK) == cached
    if cached:
        assert outputs.stats().total_bytes == 3 * count
        assert outputs.read_content(id_in(text)) == "記" * count


def test_old_entries_are_pruned_by_age_without_being_asked(given: Set, clock: Clock, agent: Server) -> None:
    outputs = given(max_age=60)
    old = id_in(outputs.keep("make", big("a"), call="make all").text)
    clock.now += 60_001
    id_in(outputs.maybe_cache("x", big("b")))
    assert outputs.stats().entries == 1
    assert "the call was make all" in agent.refusal("read_output", {"id": old})


def test_entries_are_pruned_by_size_least_recently_used_first(given: Set, clock: Clock) -> None:
    outputs = given(max_cache_size=15_000)
    ids = []
    for letter in "abc":
        clock.now += 1
        ids.append(id_in(outputs.maybe_cache("x", big(letter))))
    clock.now += 1
    outputs.read(ids[0], lines="1-1")
    clock.now += 1
    ids.append(id_in(outputs.maybe_cache("x", big("d"))))
    assert {output.id for output in outputs.list().outputs} == {ids[0], ids[2], ids[3]}


@pytest.mark.parametrize("keys", [3, 5, 6, 30])
def test_the_preview_of_an_object_names_its_keys(outputs: SessionOutputs, keys: int) -> None:
    text = outputs.maybe_cache("x", json.dumps({f"key_{n}": ["v"] * 2_000 for n in range(keys)}))
    assert all(f"key_{n}" in text for n in range(min(keys, 10)))


def damage(store: str, sql: str, values: tuple[str, ...]) -> None:
    file = apsw.Connection(store)
    file.execute(sql, values)
    file.close()


def test_damaged_bytes_are_named_never_shown_and_mended_by_the_same_content(
    outputs: SessionOutputs, store: str
) -> None:
    bad, good = (id_in(outputs.maybe_cache("x", big(letter))) for letter in "ab")
    damage(store, "UPDATE output_chunks SET body = zeroblob(length(body)) WHERE id = ?", (bad,))
    assert {output.id for output in outputs.list().outputs} == {bad, good}  # what is known of it is sound
    with pytest.raises(errors.StoreDamaged, match=bad):
        outputs.read_content(bad)
    with pytest.raises(errors.StoreDamaged, match=bad):
        outputs.read(bad)
    assert outputs.read_content(good) == big("b")
    assert id_in(outputs.maybe_cache("x", big("a"))) == bad
    assert outputs.read_content(bad) == big("a")


def test_deleting_what_is_not_there_is_false(outputs: SessionOutputs) -> None:
    assert outputs.delete("0" * 12) is False


def test_without_a_preview_the_reference_stays(given: Set) -> None:
    text = given(include_preview="false").maybe_cache("x", big("secretly long "))
    assert "secretly" not in text
    assert "read_output" in text


def test_disabled_nothing_is_cached(given: Set) -> None:
    outputs = given(enabled="false")
    assert outputs.maybe_cache("x", ROWS) == ROWS
    assert outputs.stats().entries == 0


@pytest.mark.parametrize(
    "id", ["", "../../etc/passwd", "..%2f..%2fx", "0" * 11, "z" * 12, "0" * 65, "a\0b", "0" * 12 + "/"]
)
def test_an_invalid_id_is_refused_and_no_path(outputs: SessionOutputs, agent: Server, id: str) -> None:
    outputs.maybe_cache("x", ROWS)
    with pytest.raises(errors.BadInput):
        outputs.read(id)
    with pytest.raises(errors.BadInput):
        outputs.delete(id)
    agent.refusal("read_output", {"id": id})
    assert outputs.stats().entries == 1


def test_an_id_that_another_content_has_is_lengthened_never_shared(outputs: SessionOutputs, store: str) -> None:
    """Two texts whose digests begin with the same twelve digits cannot be made, so one is said to be gone."""
    content = big("c")
    digest = hashlib.sha256(content.encode()).hexdigest()
    other = outputs.keep("x", big("d")).output
    assert other is not None
    outputs.delete(other.id)
    with limpet.open(store, project="demo") as hold:
        stone = next(json.loads(line) for line in hold.export_lines() if line.startswith('{"tombstone"'))
        stone["tombstone"] |= {"id": digest[:12], "digest": digest[:12] + "0" * 52}
        hold.import_lines(['{"limpet":1}', json.dumps(stone)], merge=True)
    id = id_in(outputs.maybe_cache("x", content))
    assert id == digest[:13]
    assert outputs.read_content(id) == content
    with pytest.raises(errors.NotFound, match="is gone"):
        outputs.read(digest[:12])


def test_a_preview_keeps_lines_apart_and_holds_no_control_characters(outputs: SessionOutputs) -> None:
    text = outputs.maybe_cache("x", "\x07\x1b[31mfirst\x1b[0m line\r\n" + "second\r\n" * 800)
    assert "first line\n" in text
    assert not {character for character in text if character < " " and character != "\n"}


@pytest.mark.parametrize(
    ("size", "shown"), [(1, "1B"), (1_023, "1023B"), (1_024, "1.0KB"), (12_595, "12.3KB"), (1 << 20, "1.00MB")]
)
def test_sizes_are_shown_in_bytes_kilobytes_and_megabytes(given: Set, size: int, shown: str) -> None:
    assert given(threshold_bytes=1).maybe_cache("x", big(size=size)).split("\n")[0].endswith(f"({shown})")


KEEPER = """
import sys, limpet
with limpet.open(sys.argv[1], project="demo", session="work") as hold:
    for n in range(10_000):
        kept = hold.session().outputs.keep("x", f"{n} " * 30_000)
        print(kept.output.id, n, flush=True)
"""


@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_crash_in_the_middle_of_keeping_leaves_whole_outputs_or_none(store: str, given: Set, after: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPER, store], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(after)]
    process.send_signal(signal.SIGKILL)  # the next one is being made at this moment
    with process.stdout:  # `communicate` would skip what is in its buffer
        told += [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.wait(60)
    outputs = given(max_age=10**9)
    for id, number in (line.split() for line in told):
        assert outputs.read_content(id) == f"{number} " * 30_000
    for output in outputs.list(limit=1_000).outputs:
        assert hashlib.sha256(outputs.read_content(output.id).encode()).hexdigest() == output.digest
