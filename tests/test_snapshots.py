"""Every word agents and people get from Limpet, as files in tests/snapshots, so that each change is seen in review.

`UPDATE_SNAPSHOTS=1 pytest tests/test_snapshots.py` writes them anew. (Its name does not begin with LIMPET_, because
the tests forget all such variables.)
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet import errors
from limpet.api import Limpet
from limpet.catalogue.table import OPERATIONS, PROFILES, SMALL, profile
from limpet.protocol.jsonrpc import RpcError
from limpet.protocol.mcp_server import ClientState, Surface
from limpet.protocol.revisions import HANDSHAKE

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = os.environ.get("UPDATE_SNAPSHOTS") == "1"
NOON = 1_772_539_200_000  # 2026-03-03T12:00:00Z

KINDS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.LimpetError)}

# One call of every maker of a problem. A new one without a row here fails the test below.
PROBLEMS: list[errors.LimpetError] = [
    errors.empty("note content", "Write down what is worth keeping."),
    errors.too_long("note content", 4_001, 4_000, "Split it into several notes."),
    errors.not_json("agent_state", "value"),
    errors.sandbox_failed(
        "ZeroDivisionError: division by zero", " at line 3, 'total / count'", "It had changed nothing."
    ),
    errors.sandbox_limit(
        "it ran longer than 5 seconds",
        "Do less at a time: outputs.lines(id, first, last) reads a part.",
        "What it wrote to the notepad before that stands (2 changes). It had printed: '1\\n2'.",
    ),
    errors.skill_exists("deploy"),
    errors.skill_not_saved("deploy", "Read-only file system"),
    errors.no_skills_folder(),
    errors.sandbox_forked(),
    errors.no_sandbox("no more processes"),
    errors.unstorable("content", "a NUL character (U+0000) at position 1"),
    errors.missing("add_note", "content"),
    errors.not_your_session("main"),
    errors.no_such_session("mian", "the nearest is 'main'"),
    errors.unknown_argument("add_note", "text", ["content", "tags", "session_id"]),
    errors.unknown_argument("tick", "text", []),
    errors.wrong_type("add_note", "content", 7, "a string"),
    errors.wrong_type("add_note", "tags", "x" * 100, "a list of strings"),
    errors.wrong_type("add_note", "content", None, "a string"),
    errors.wrong_type("list_notes", "limit", 1.5, "a whole number"),
    errors.wrong_type("list_notes", "limit", True, "a whole number"),
    errors.wrong_type("add_note", "content", ["a"], "a string"),
    errors.wrong_type("add_note", "content", {"a": 1}, "a string"),
    errors.not_one_of("write_memory", "mode", "prepend", ("replace", "append")),
    errors.out_of_range("list_notes", "limit", 0, 1, 1_000),
    errors.too_many_tags(11, 10),
    errors.blank_tag(2),
    errors.nothing_to_update("update_note", "content, tags or done"),
    errors.needs("update_notepad", "operation append", "content (not empty)"),
    errors.not_used("update_notepad", "operation append", "find and replace"),
    errors.reserved_key("scratchpad", "Use scratch_note with a mode to work on the scratchpad."),
    errors.secret_in_name("memory"),
    errors.bad_name("key", "two\nlines", "it must be one line of visible characters"),
    errors.unknown_profile("tiny", ("core", "full")),
    errors.unknown_operation("forget", "Those that exist: add_note."),
    errors.not_distributed("postgresql://db.example.org/limpet", "its role does not own the table entries"),
    errors.bad_setting("note_max_chars", "many", "it must be a whole number above 0"),
    errors.unknown_setting("outputs.max_ages", "outputs.max_age", "LIMPET_SET"),
    errors.foreign_home("/home/ana", 1_000, 0),
    errors.home_unusable("/home/ana/.local/share/limpet", "Read-only file system"),
    errors.not_ours("/home/ana/.local/share/limpet/projects", "it is a link"),
    errors.untrusted_option("--store team.db", "limpet trust --store team.db"),
    errors.memory_in_the_way("/home/ana/parser", "3f2a9c1d"),
    errors.needs_a_person("trust in /home/ana/parser", "limpet trust --show"),
    errors.not_trustable("/home/ana/parser/.limpet", "config.toml is not TOML (at line 2, column 7)"),
    errors.ambiguous_project("parser", ["3f2a9c1d", "77e03f9a"]),
    errors.unknown_project("parsr", "Did you mean parser? "),
    errors.no_project_in_store("parsr", "team.db", "Did you mean parser? "),
    errors.no_store("tema.db", "Did you mean team.db? "),
    errors.bad_import(3, "it is not a JSON object"),
    errors.no_such_extra("Cursor", "guidance", "user"),
    errors.plugin_installed("Claude Code"),
    errors.not_a_transcript("x.jsonl", "none of its 12 lines is known", ["claude-code", "codex"]),
    errors.no_transcript("codex", "/home/me/project", "Name a file instead."),
    errors.peer_not_readable("mem0", "all.json", "the file: it is not JSON"),
    errors.peer_too_big("mem0", "all.json", 300_000_000, 268_435_456),
    errors.text_not_found("notepad", "casts", "It is empty: append writes to it."),
    errors.no_note("note_1"),
    errors.no_entry("memory", "goal", "search_memory finds the keys that exist."),
    errors.no_version("notepad", 9, 2),
    errors.no_event(99),
    errors.nothing_to_undo(),
    errors.version_moved("notepad", 1, 2),
    errors.key_used("7f3a"),
    errors.retry_erased(7),
    errors.already_replaced("note_1", "note_2"),
    errors.replaced_in_a_circle("db", "database"),
    errors.no_layer("person"),
    errors.no_team(),
    errors.not_for_files("pinned"),
    errors.secret_in_shared_file("key"),
    errors.shared_file_changed("database.md"),
    errors.shared_file_left_out("database.md", "it is new or changed"),
    errors.no_shared_text("database", "it has a control character", "change the text"),
    errors.shared_file_unusable(".limpet/memory", "it is a link, or not yours"),
    errors.no_proposal("proposal_1"),
    errors.queue_full(200),
    errors.layer_is_a_persons("style"),
    errors.no_anchor_in_layer("README.md:1"),
    errors.replaces_itself("db"),
    errors.in_the_past("expires", "2026-01-01"),
    errors.bad_anchor("../x.py:1", "it is outside the project"),
    errors.no_note_or_memory("note_1"),
    errors.of_another_layer("db", "team"),
    errors.current_version("note_1", 2),
    errors.only_forever("note_1", 1),
    errors.changed_since(4, "notepad", "one"),
    errors.change_erased(4),
    errors.import_conflict("memory", "goal"),
    errors.tool_not_approved("files", "read", "its definition is not the one that was pinned (description)"),
    errors.sessions_stay("port the parser"),
    errors.tree_too_deep(3),
    errors.too_many_children(10),
    errors.not_a_child("port the parser"),
    errors.session_over("sub_0a1b2c", "completed"),
    errors.bad_config_file("settings.json", "line 3: a comma is missing"),
    errors.config_file_changed("settings.json"),
    errors.no_project_files("Goose", "goose"),
    errors.unknown_client("emacs", ["claude-code", "codex"]),
    errors.appended_before("message", "one#00000003"),
    errors.no_open_task("end"),
    errors.tasks_too_deep(4),
    errors.too_many_pins(50),
    errors.nothing_folded("the messages 120 to 130", "90 messages"),
    errors.bad_limit(-5),
    errors.request_too_big(40_125, 32_000, "user", 40_010),
    errors.request_stays_too_big(1_232, 500, "pins", 1_189),
    errors.tools_too_big(5_155, 4_000),
    errors.output_too_big(70_000_000, 67_108_864),
    errors.ambiguous_output("3f9a1c2b"),
    errors.no_output("3f9a1c2b77e0"),
    errors.output_gone("3f9a1c2b77e0", "pytest, 212.0KB, kept 2026-03-02, dropped 2026-03-09 (too old)"),
    errors.one_of("read_output", ["lines", "match"]),
    errors.bad_slice("lines 'many' cannot be read: a range is written 100-150. Write it so."),
    errors.journal_missing("NOTES.md"),
    errors.journal_not_begun("NOTES.md"),
    errors.journal_emptied("NOTES.md"),
    errors.journal_outside("../NOTES.md"),
    errors.journal_not_a_file("NOTES.md"),
    errors.journal_too_big("NOTES.md", 70_000_000, 67_108_864),
    errors.journal_unwritable("NOTES.md", "Permission denied"),
    errors.journal_unconfirmed("NOTES.md", "Input/output error"),
    errors.journal_contested("NOTES.md", 10.0),
    errors.journal_link("NOTES.md", ".git/hooks/pre-commit"),
    errors.journal_state_unsafe("/home/me/app/.limpet/journal", "it is a link or not a folder"),
    errors.journal_log_unknown("/home/me/app/.limpet/journal/log"),
    errors.journal_busy("NOTES.md", 30.0),
    errors.journal_stays(7),
    errors.folder_in_use("notes"),
    errors.target_in_export("notes/memory/style.md"),
    errors.no_import("memory.json", "transcript, store, mem0"),
    errors.nothing_of_yours(42, "add_note", "agent/mcp"),
    errors.journal_changed(7, "NOTES.md"),
    errors.output_stays("3f9a1c2b77e0"),
    errors.import_stays(7),
    errors.bad_evidence("a.py:99", "a.py has no words at these lines"),
    errors.few_scenarios(1, 3),
    errors.no_item("question", "casts"),
    errors.ambiguous_item("goal", "casts", 2),
    errors.path_outside("/etc/passwd", "/memories"),
    errors.path_refused("/memories/../x", "none of its names may be empty, '.' or '..'"),
    errors.no_file("/memories/plan.md"),
    errors.not_a_file("/memories/notes"),
    errors.file_exists("/memories/plan.md"),
    errors.file_read_only(
        "/memories/outputs/3f9a1c2b77e0.txt", "outputs are kept as they were. Write what matters of them to a file"
    ),
    errors.text_not_there("/memories/plan.md", "casts"),
    errors.text_not_unique("/memories/plan.md", "casts", [1, 4]),
    errors.bad_insert_line(9, 3),
    errors.bad_view_range([3, 1], 9),
    errors.project_not_empty("demo"),
    errors.nothing_to_back_up("/data/limpet.db"),
    errors.answer_lost("No space left on device"),
    errors.target_exists("backup.db"),
    errors.not_a_store("limpet.db", "the file is not an SQLite database"),
    errors.store_too_new("limpet.db", 7, 1),
    errors.store_read_only("limpet.db", "Permission denied"),
    errors.store_full("limpet.db"),
    errors.over_quota(100_000, "entries", 100_000),
    errors.store_moved("limpet.db"),
    errors.no_descriptors("limpet.db"),
    errors.not_loaded("recall.recall", "Input/output error"),
    errors.store_busy("process 4242", "limpet.db", 30.0),
    errors.store_without_locks("limpet.db", "No locks available"),
    errors.writes_waiting(6),
    errors.store_damaged("limpet.db", "note 'note_1'"),
    errors.store_broken("limpet.db", "disk I/O error"),
    errors.store_gone("postgresql://db", "connection refused"),
    errors.not_installed("a PostgreSQL store", "postgres"),
    errors.no_model(),
    errors.bad_model("/models/granite.hmsemb", "it cannot be read"),
    errors.sqlite_too_old("3.40.1"),
    errors.backup_unreadable("memory.db", "there is no such file"),
    errors.foreign_store("theirs.db", "its tables are not those that Limpet makes"),
    errors.backup_damaged("memory.db", "checksums: note 'note_1' of project 'home'"),
    errors.store_not_empty("postgresql://db"),
]


def check(name: str, text: str) -> None:
    """The text against its file; with UPDATE_SNAPSHOTS=1, the file from the text."""
    path = SNAPSHOTS / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == kept, (
        f"{name} is not as it was. If it should be so, run again with UPDATE_SNAPSHOTS=1 and look at it."
    )


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Limpet]:
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="one", clock=lambda: NOON) as opened:
        yield opened


@pytest.mark.parametrize("name", PROFILES)
def test_tool_lists(name: str) -> None:
    parts = []
    for operation in profile(name):
        shown = {
            "name": operation.name,
            "description": operation.description(),
            "input": operation.input_schema(small=name in SMALL),
            "output": operation.output_schema(),
            "annotations": operation.annotations(),
        }
        parts.append(json.dumps(shown, indent=1, ensure_ascii=False))
    check(f"tools_{name}.json", "[\n" + ",\n".join(parts) + "\n]\n")


def test_operations_beyond_the_profiles() -> None:
    """They are commands and no tools, but their words are read too."""
    given = {operation.name for name in PROFILES for operation in profile(name)}
    lines = [f"{name}: {operation.description()}" for name, operation in OPERATIONS.items() if name not in given]
    check("operations.txt", "\n".join(lines) + "\n")


def test_error_sentences() -> None:
    lines = [
        f"[{type(problem).__name__} {problem.code}, exit {problem.exit_code}]\n{problem.message}\n"
        for problem in PROBLEMS
    ]
    check("errors.txt", "\n".join(lines))


def makers() -> dict[str, list[str]]:
    """What makes a problem, by its code, with the names of its values: rows of the table and a few functions."""
    rows = {name: row.fields() for name, row in vars(errors).items() if isinstance(row, errors.Sentence)}
    functions = {
        name: list(inspect.signature(function).parameters)
        for name, function in inspect.getmembers(errors, inspect.isfunction)
        if str(function.__annotations__.get("return")) in KINDS
    }
    return rows | functions


def test_every_error_has_a_sentence_here() -> None:
    assert makers().keys() == {problem.code for problem in PROBLEMS}, "Give the new one a row in PROBLEMS."


def test_every_sentence_uses_every_value_it_is_given() -> None:
    for row in vars(errors).values():
        if isinstance(row, errors.Sentence):
            assert set(row.fields()) == set(re.findall(r"{(\w+)", row.sentence)), row.code


def test_every_error_gets_as_many_values_as_its_sentence_has() -> None:
    """The rows of the table take any values, so the type checker does not see a missing one."""
    expected = makers()
    for path in sorted(Path(limpet.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="errors"), attr=name)) if name in expected:
                    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
                    assert not node.keywords, f"{path}:{node.lineno} gives {name} values by keyword"
                    assert starred or len(node.args) == len(expected[name]), f"{path}:{node.lineno} {name}"


def test_every_error_is_a_full_sentence_with_a_next_step() -> None:
    for problem in PROBLEMS:
        assert problem.message.endswith("."), problem.message
        assert str(problem) == problem.message
        assert "\n" not in problem.message


@pytest.mark.parametrize("name", PROFILES)
def test_guidance(name: str, hold: Limpet) -> None:
    check(f"guidance_{name}.md", hold.guidance(name) + "\n")


def test_notepad_sections(hold: Limpet) -> None:
    pad = hold.session().notepad
    check("notepad_empty.md", pad.section() + "\n")
    pad.write("# Plan\n- [x] lexer\n- [ ] casts\n")
    check("notepad_filled.md", pad.section() + "\n")


def test_the_context_of_a_session(hold: Limpet) -> None:
    first = hold.session("one")
    first.memory.write("goal", "A parser that accepts casts.")
    first.memory.write("style", "Small functions.")
    first.memory.pin("goal")
    for number in range(9):
        first.memory.write(f"chapter {number}", f"What chapter {number} says. " * 40)
    first.handoff.write("Casts are next; see the failing test in test_casts.")
    work = hold.session("two")
    check("context_new.md", work.context() + "\n")
    work.notepad.write("# Plan\n- [ ] casts\n")
    work.scratch("tried: lookahead of two", "replace")
    work.used()
    check("context_at_work.md", work.context() + "\n")
    check("instructions.md", hold.instructions("core", "two").text + "\n")
    assert "Casts are next" not in hold.session("three").context()


# --- the book: what an agent meets, from its first request to its last error ------------------------------------------

# Calls in an order in which each finds what it needs; a profile skips those it has no tool for.
TALK: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add_note", {"content": "Casts break LL(1): they need two tokens of lookahead", "tags": ["grammar", "casts"]}),
    ("add_note", {"content": "Casts break LL(1): they need two tokens of lookahead", "tags": "grammar"}),
    ("add_note", {"content": "The lexer is done\nand has tests", "tags": []}),
    ("search_notes", {"query": "casts"}),
    ("search_notes", {"query": "lookahead tokens", "limit": "1"}),
    ("search_notes", {"query": "quince"}),
    ("list_notes", {"tag": "grammar"}),
    ("list_tags", {}),
    ("update_note", {"id": "n4", "done": "true"}),
    ("update_note", {"id": "n4"}),
    ("update_note", {"id": "n99", "done": True}),
    ("delete_note", {"id": "n6"}),
    ("delete_note", {"id": "note_1"}),
    ("scratch_note", {"content": "a quick thought"}),
    ("scratch_note", {"mode": "replace", "content": "tried: lookahead of two"}),
    ("scratch_note", {"mode": "append"}),
    ("read_notepad", {}),
    ("write_notepad", {"content": "# Plan\n- [x] lexer\n- [ ] casts\n"}),
    ("update_notepad", {"operation": "find_replace", "find": "[ ] casts", "replace": "[x] casts"}),
    ("update_notepad", {"operation": "find_replace", "find": "[ ] cats", "replace": "x"}),
    ("write_notepad", {"content": "late", "expected_version": 1}),
    ("read_notepad", {}),
    ("read_notepad", {"session_id": "main"}),
    ("write_memory", {"key": "style", "content": "Small functions, no recursion."}),
    ("write_memory", {"key": "scratchpad", "content": "x"}),
    ("write_memory", {"key": "token", "content": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}),
    ("search_memory", {"query": "style"}),
    ("search_memory", {"query": ""}),
    ("recall", {"query": "what do casts need?"}),
    ("recall", {"query": "quince"}),
    ("recall", {"query": "casts", "kinds": ["dreams"]}),
    ("write_session_handoff", {"content": "Casts work. Next: nested ones."}),
    ("write_session_handoff", {"content": "Casts work. Next: nested casts."}),
    ("read_handoff", {}),
    ("read_handoff", {"id": "nobody's"}),
    ("list_outputs", {}),
    ("read_output", {"id": "{output}", "lines": "1-3"}),
    ("read_output", {"id": "{output}", "match": "line 99 "}),
    ("read_output", {"id": "{output}", "tokens": 60}),
    ("read_output", {"id": "000000000000"}),
    ("agent_state", {"action": "set", "key": "build", "value": {"number": 7}}),
    ("agent_state", {"action": "get", "key": "build"}),
    ("agent_state", {"action": "get", "key": "nothing"}),
    ("agent_state", {"action": "keys"}),
    ("read_system_prompt", {}),
    ("edit_system_prompt", {"operation": "append", "content": "Answer in English.\n"}),
    ("list_skills", {}),
    ("read_skill", {"name": "deploy"}),
    ("run_sandbox_code", {"code": "print(2 + 2)\n[1, 2]"}),
    ("uncompact", {"first": 1}),
    ("add_note", {}),
    ("add_note", {"content": "x", "color": "red"}),
    ("add_note", {"content": "x" * 4_001}),
    ("add_note", {"content": "x", "tags": [str(number) for number in range(11)]}),
)


def said(surface: Surface, client: ClientState, tool: str, arguments: dict[str, Any]) -> str:
    params: dict[str, object] = {"name": tool, "arguments": arguments}
    revision = HANDSHAKE[-1]
    try:
        result: dict[str, Any] = surface.handler("tools/call", params, revision)(params, client, revision)
    except RpcError as problem:
        return f"protocol error: {problem.message}"
    texts = [part["text"] for part in result["content"]]
    return ("refused: " if result.get("isError") else "") + "\n---\n".join(texts)


@pytest.mark.parametrize("name", ["core", "coding", "full"])
def test_the_book_of_what_an_agent_meets(name: str, tmp_path: Path) -> None:
    place, big = str(tmp_path / "limpet.db"), "\n".join(f"line {number} of the log" for number in range(400))
    with limpet.open(place, project="demo", session="zero", folder=str(tmp_path), clock=lambda: NOON) as hold:
        hold.session().handoff.write("Port the parser. Casts are next.")
        kept = hold.session().outputs.keep("make", big)
        assert kept.output is not None
    with limpet.open(place, project="demo", session="one", folder=str(tmp_path), clock=lambda: NOON) as hold:
        surface, client = Surface(hold, name), ClientState(revision=HANDSHAKE[-1], since=NOON)
        asked: dict[str, object] = {"protocolVersion": HANDSHAKE[-1], "capabilities": {}, "clientInfo": {}}
        hello = surface.handler("initialize", asked, HANDSHAKE[-1])(asked, client, HANDSHAKE[-1])
        listing: dict[str, Any] = surface.handler("tools/list", {}, HANDSHAKE[-1])({}, client, HANDSHAKE[-1])
        tools = listing["tools"]
        pages = [f"# Instructions\n\n{hello['instructions']}", "# Tools"]
        for tool in tools:
            params = {key: part.get("description", "") for key, part in tool["inputSchema"]["properties"].items()}
            listed = "".join(f"\n  {key}: {words}" if words else f"\n  {key}" for key, words in params.items())
            pages.append(f"{tool['name']}: {tool['description']}{listed}")
        names = {tool["name"] for tool in tools}
        pages += [f"# A result that was too big\n\n{kept.text}"] if "read_output" in names else []
        pages.append("# Calls and answers")
        for tool, arguments in (*TALK, ("no_such_tool", {})):
            if tool in names or tool == "no_such_tool":
                filled = {key: kept.output.id if value == "{output}" else value for key, value in arguments.items()}
                written = json.dumps(filled, ensure_ascii=False)
                call = f"> {tool} {written if len(written) < 200 else written[:199] + '…'}"
                pages.append(f"{call}\n{said(surface, client, tool, filled)}")
    text = "\n\n".join(pages).replace(kept.output.id, "3f9a1c2b77e0") + "\n"
    others = {tool for tool in OPERATIONS if "_" in tool} - names - {"begin_session"}
    assert [line for line in text.split("\n") if others & set(re.findall(r"\w+", line))] == []
    check(f"book_{name}.md", text)


# Of the agents that Limpet's library runs, which have a window of their own and may begin sub-sessions.
OWN_TALK: tuple[tuple[str, dict[str, Any]], ...] = (
    ("begin_task", {"description": "Try casts with two tokens"}),
    ("end_task", {"summary": "Two tokens are enough."}),
    ("end_task", {"summary": "Once more."}),
    ("begin_task", {"description": "Try three"}),
    ("cancel_task", {"reason": "Slower, and no better."}),
    ("show_window", {}),
    ("compact_window", {}),
    ("uncompact", {"first": 1}),
    ("uncompact", {"first": 8, "last": 20}),
    ("spawn_session", {"task": "Measure the parser"}),
    ("spawn_session", {"task": "Measure the parser", "notes": ["n99"]}),
    ("fork_session", {"task": "Write its tests"}),
    ("wait_for_sessions", {"ids": ["sub_1"], "seconds": 0}),
    ("report_result", {"result": "It is done."}),
)


def test_the_book_of_an_agent_of_the_library(hold: Limpet) -> None:
    work = hold.session("one")
    tools = {tool.name: tool for tool in work.tools("agent")}
    over_mcp = {row.name for row in profile("full") if not row.own_window}
    pages = [f"# Guidance\n\n{hold.guidance('agent')}", "# Tools that only it has"]
    for tool in tools.values():
        if tool.name not in over_mcp:
            params = {key: part.get("description", "") for key, part in tool.parameters["properties"].items()}
            listed = "".join(f"\n  {key}: {words}" if words else f"\n  {key}" for key, words in params.items())
            pages.append(f"{tool.name}: {tool.description}{listed}")
    pages.append("# Calls and answers")
    for name, arguments in OWN_TALK:
        if name in tools:
            try:
                result = tools[name].handler(arguments)
                answer = result if isinstance(result, str) else json.dumps(result)
            except errors.LimpetError as problem:
                answer = f"refused: {problem.message}"
            pages.append(f"> {name} {json.dumps(arguments)}\n{answer}")
    assert "`limpet" not in "".join(pages)
    text = re.sub(r"sub_[0-9a-f]{12}", "sub_0a1b2c3d4e5f", "\n\n".join(pages)) + "\n"
    check("book_agent.md", text)
