"""Bad input through the library, the command line and MCP: the same sentence everywhere, and nothing changed.

The table has one row a case. A row says how the case looks for an operation and how a person types it; where a door
cannot be given the case at all, the row says why instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import limpet
from doors.cli_runner import Ran, run, run_child, sentence
from journeys.stdio import Server
from limpet import errors
from limpet.api import Limpet
from limpet.catalogue.table import for_people

PAD = "# Plan\n- [ ] Parse casts\n"
MEGABYTES = "x" * 10_000_000
NO_NUMBERS = "on a command line every argument is a text"
NO_OPTION = "an option is not an argument; see test_an_unknown_option_is_refused"


class Case(NamedTuple):
    id: str
    operation: str
    arguments: dict[str, Any]
    code: str
    cli: tuple[str, ...] | str  # what is typed, or why it cannot be
    stdin: bytes = b""
    mcp: str = ""  # why MCP cannot be given it


def tagged(*tags: str) -> tuple[str, ...]:
    return tuple(word for tag in tags for word in ("--tag", tag))


ELEVEN = [f"t{number}" for number in range(11)]
CASES = [
    Case("empty content", "add_note", {"content": ""}, "empty", ("note", "add", "")),
    Case("blank content", "add_note", {"content": " \t "}, "empty", ("note", "add", " \t ")),
    Case("empty memory", "write_memory", {"key": "k", "content": " "}, "empty", ("memory", "write", "k", " ")),
    Case("empty key", "write_memory", {"key": " ", "content": "x"}, "empty", ("memory", "write", " ", "x")),
    Case("empty handoff", "write_session_handoff", {"content": ""}, "empty", ("handoff", "write", "")),
    Case("empty query", "search_memory", {"query": " "}, "empty", ("memory", "search", " ")),
    Case("long note", "add_note", {"content": "é" * 4_001}, "too_long", ("note", "add", "é" * 4_001)),
    Case(
        "long handoff",
        "write_session_handoff",
        {"content": "x" * 20_001},
        "too_long",
        ("handoff", "write", "-"),
        b"x" * 20_001,
    ),
    Case("10 MB note", "add_note", {"content": MEGABYTES}, "too_long", ("note", "add", "-"), MEGABYTES.encode()),
    Case("10 MB pad", "write_notepad", {"content": MEGABYTES}, "too_long", ("pad", "write"), MEGABYTES.encode()),
    Case(
        "10 MB memory",
        "write_memory",
        {"key": "k", "content": MEGABYTES},
        "too_long",
        ("memory", "write", "k"),
        MEGABYTES.encode(),
    ),
    Case(
        "11 tags", "add_note", {"content": "x", "tags": ELEVEN}, "too_many_tags", ("note", "add", "x", *tagged(*ELEVEN))
    ),
    Case(
        "blank tag",
        "add_note",
        {"content": "x", "tags": ["good", " "]},
        "blank_tag",
        ("note", "add", "x", *tagged("good", " ")),
    ),
    Case(
        "long tag",
        "add_note",
        {"content": "x", "tags": ["t" * 101]},
        "too_long",
        ("note", "add", "x", *tagged("t" * 101)),
    ),
    Case("unknown id", "update_note", {"id": "note_1", "content": "x"}, "no_note", ("note", "update", "note_1", "x")),
    Case("unknown id deleted", "delete_note", {"id": "note_1"}, "no_note", ("note", "delete", "note_1")),
    Case("no change", "update_note", {"id": "note_1"}, "nothing_to_update", ("note", "update", "note_1")),
    Case("number as content", "add_note", {"content": 7}, "wrong_type", NO_NUMBERS),
    Case("text as tags", "add_note", {"content": "x", "tags": "a,b"}, "wrong_type", NO_NUMBERS),
    Case("numbers as tags", "add_note", {"content": "x", "tags": [1]}, "wrong_type", NO_NUMBERS),
    Case("text as truth", "update_note", {"id": "note_1", "done": "yes"}, "wrong_type", NO_NUMBERS),
    Case("object as content", "write_notepad", {"content": {"a": 1}}, "wrong_type", NO_NUMBERS),
    Case("text as limit", "list_notes", {"limit": "many"}, "wrong_type", ("note", "list", "--limit", "many")),
    Case("unknown argument", "add_note", {"content": "x", "text": "y"}, "unknown_argument", NO_OPTION),
    Case("missing argument", "add_note", {}, "missing", "without a text it is read from standard input"),
    Case("NUL", "add_note", {"content": "a\x00b"}, "unstorable", ("note", "add"), b"a\x00b"),
    Case("NUL in the pad", "write_notepad", {"content": "\x00"}, "unstorable", ("pad", "write"), b"\x00"),
    Case("half a character", "add_note", {"content": "a\udcffb"}, "unstorable", ("note", "add"), b"a\xffb"),
    Case(
        "half a character in a tag",
        "add_note",
        {"content": "x", "tags": ["\udcff"]},
        "unstorable",
        ("note", "add", "x", *tagged("\udcff")),
    ),
    Case(
        "find text not present",
        "update_notepad",
        {"operation": "find_replace", "find": "- [x] parse casts", "replace": "y"},
        "text_not_found",
        ("pad", "edit", "--find", "- [x] parse casts", "--replace", "y"),
    ),
    Case(
        "delete text not present",
        "update_notepad",
        {"operation": "delete", "content": "$&"},
        "text_not_found",
        ("pad", "edit", "--delete", "$&"),
    ),
    Case(
        "compare and swap",
        "write_notepad",
        {"content": "mine", "expected_version": 7},
        "version_moved",
        ("pad", "write", "mine", "--if-version", "7"),
    ),
    Case(
        "reserved key",
        "write_memory",
        {"key": "Scratchpad", "content": "x"},
        "reserved_key",
        ("memory", "write", "Scratchpad", "x"),
    ),
    Case(
        "reserved log",
        "write_memory",
        {"key": "activity-log-2026-03-03", "content": "x"},
        "reserved_key",
        ("memory", "write", "activity-log-2026-03-03", "x"),
    ),
    Case("limit 0", "list_notes", {"limit": 0}, "out_of_range", ("note", "list", "--limit", "0")),
    Case("limit 10,000", "search_notes", {"limit": 10_000}, "out_of_range", ("note", "search", "--limit", "10000")),
    Case("limit below 0", "list_notes", {"limit": -1}, "out_of_range", ("note", "list", "--limit", "-1")),
    Case(
        "unknown mode",
        "scratch_note",
        {"mode": "erase", "content": "x"},
        "not_one_of",
        ("scratch", "x", "--mode", "erase"),
    ),
    Case(
        "bad session",
        "list_notes",
        {"session_id": "two\nlines"},
        "bad_name",
        ("note", "list", "--session", "two\nlines"),
    ),
    Case("unknown version", "restore_notepad", {"version": 9}, "no_version", ("pad", "restore", "9"), mcp="no tool"),
    Case("unknown change", "undo", {"seq": 999}, "no_event", ("undo", "999"), mcp="no tool"),
    Case("endless number", "undo", {"seq": 10**30}, "out_of_range", ("undo", str(10**30)), mcp="no tool"),
    Case("unknown session", "show_session", {"id": "none"}, "no_entry", ("session", "show", "none"), mcp="no tool"),
    Case("unknown key", "read_memory", {"key": "none"}, "no_entry", ("memory", "show", "none"), mcp="no tool"),
]
SYNTAX = [
    '"',
    "AND",
    "a AND",
    "NOT",
    "NEAR(",
    "x*",
    "^x",
    "col:x",
    "(",
    ")",
    "{a b}",
    "-",
    "+",
    "'; DROP TABLE entries; --",
    "%_",
    "\\",
]


def refused(hold: Limpet, case: Case) -> errors.LimpetError:
    with pytest.raises(errors.LimpetError) as caught:
        hold.call(case.operation, case.arguments)
    return caught.value


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("bad_input") / "limpet.db")


@pytest.fixture(scope="module")
def hold(store: str) -> Iterator[Limpet]:
    with limpet.open(store, project="demo", session="one") as opened:
        work = opened.session()
        work.notes.add("a note", ["tag"])
        work.notepad.write(PAD)
        work.memory.write("goal", "parse casts")
        yield opened


@pytest.fixture(scope="module")
def server(hold: Limpet, store: str) -> Iterator[Server]:
    with Server(store, "--session", "one") as running:
        yield running


@pytest.fixture
def typed(store: str) -> tuple[str, ...]:
    """The options that lead the command line to the same place."""
    return ("--store", store, "--project", "demo", "--session", "one", "--json")


# --- one sentence at every door ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_every_door_says_the_same_and_changes_nothing(
    case: Case, hold: Limpet, server: Server, typed: tuple[str, ...]
) -> None:
    before = list(hold.export_lines())
    problem = refused(hold, case)
    assert problem.code == case.code
    assert len(problem.message) < 1_000
    if not case.mcp:
        # Of an argument that is not there, a server lists those that it shows.
        begin = problem.message.partition(" It takes ")[0]
        assert server.refusal(case.operation, case.arguments).startswith(begin)
        assert case.code == "unknown_argument" or begin == problem.message
    if isinstance(case.cli, tuple):
        ran = run(*typed, *case.cli, stdin=case.stdin)
        assert (ran.code, sentence(ran)) == (problem.exit_code, problem.message)
    assert list(hold.export_lines()) == before


@pytest.mark.parametrize(
    "id",
    ["empty content", "10 MB note", "11 tags", "NUL", "half a character", "compare and swap", "unknown id", "limit 0"],
)
def test_a_real_command_says_it_on_one_line(id: str, hold: Limpet, typed: tuple[str, ...]) -> None:
    (case,) = [case for case in CASES if case.id == id]
    assert isinstance(case.cli, tuple)
    before = list(hold.export_lines())
    problem = refused(hold, case)
    ran = run_child(*typed[:-1], *case.cli, stdin=case.stdin)
    words = " ".join(case.cli[:2])
    assert ran == Ran(problem.exit_code, "", f"limpet: {for_people(problem.message, words)}\n")
    assert list(hold.export_lines()) == before


def test_a_person_reads_of_commands_and_not_of_tools(typed: tuple[str, ...]) -> None:
    for words, advice in (
        (
            ("note", "delete", "list_notes"),
            "no note 'list_notes'. `limpet note search` gives",
        ),
        (("memory", "show", "nope"), "`limpet memory search` finds the keys"),
        (("state", "get", "nope"), "`limpet state keys` lists"),
        (("handoff", "show"), "`limpet handoff write` leaves one"),
        (("output", "read", "abcdefabcdef"), "`limpet output list` gives the ids"),
    ):
        assert advice in run(*typed[:-1], *words).err


def test_an_unknown_option_is_refused(hold: Limpet, typed: tuple[str, ...]) -> None:
    before = list(hold.export_lines())
    for args in (
        ("note", "add", "x", "--text", "y"),
        ("note", "forget"),
        ("note", "add", "x", "y"),
        ("note", "delete"),
    ):
        ran = run(*typed, *args)
        assert ran.code == 2
        assert ran.out == ""
    assert list(hold.export_lines()) == before


@pytest.mark.parametrize("query", SYNTAX)
def test_a_query_is_text_and_never_syntax(query: str, hold: Limpet, server: Server, typed: tuple[str, ...]) -> None:
    before = list(hold.export_lines())
    for operation, words in (("search_notes", ("note", "search")), ("search_memory", ("memory", "search"))):
        answer = hold.call(operation, {"query": query})
        assert answer["query"] == query
        reply = server.call(operation, query=query)
        reply.pop("context", None)  # of the first result of a session
        assert reply == answer
        ran = run(*typed, *words, "--", query)
        assert (ran.code, json.loads(ran.out)) == (0, answer)
    assert list(hold.export_lines()) == before


@pytest.mark.parametrize("limit", [0, 10_000, -1])
def test_search_memory_clamps_its_limit(limit: int, hold: Limpet, server: Server, typed: tuple[str, ...]) -> None:
    answer = hold.call("search_memory", {"query": "casts", "limit": limit})
    assert answer["match_count"] == 1
    assert server.call("search_memory", query="casts", limit=limit) == answer
    ran = run(*typed, "memory", "search", "casts", "--limit", str(limit))
    assert (ran.code, json.loads(ran.out)) == (0, answer)
