"""What other memory tools kept, read in each one's form and taken in by `limpet import`."""

from __future__ import annotations

import json
import os
import random
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doors.cli_runner import COMMAND
from doors.hook_kit import Json, Place
from limpet import limits
from limpet.importers import memory_tools
from limpet.importers.facts import Fact, SourceFile, Unread
from limpet.model import MEMORY
from limpet.store import Listing

GRAPH = [
    {"type": "entity", "name": "Parser", "entityType": "module", "observations": ["Casts need two tokens", "LL(1)"]},
    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Prefers short names"]},
    {"type": "relation", "from": "Ada", "to": "Parser", "relationType": "maintains"},
]
FACTS: dict[str, list[Json]] = {
    "results": [
        {"id": "9f1c", "memory": "Ada prefers short names", "user_id": "ada", "categories": ["style"], "hash": "x"},
        {"id": "77aa", "memory": "Casts need two tokens", "metadata": {"category": "grammar"}, "score": None},
    ],
    "relations": [{"source": "ada", "relationship": "maintains", "target": "parser"}],
}
NOTE = """---
title: Casts in the grammar
type: note
permalink: grammar/casts
tags:
  - parser
  - "two words"
---

# Casts in the grammar

## Observations
- [decision] Casts need two tokens #lookahead (measured)
- [x] not an observation #nor-a-tag

## Relations
- part_of [[Parser]]
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def written(place: Place, tool: str) -> str:
    """A file or folder as the tool keeps it, and one part of it that is spoilt."""
    folder = place.home / tool
    folder.mkdir()
    if tool == "server-memory":
        (folder / "memory.jsonl").write_text("\n".join([*map(json.dumps, GRAPH), '{"type": "entity", "na', ""]))
        return str(folder / "memory.jsonl")
    if tool == "mem0":
        (folder / "all.json").write_text(json.dumps(FACTS | {"results": [*FACTS["results"], {"id": "empty"}]}))
        return str(folder / "all.json")
    if tool == "basic-memory":
        (folder / "grammar").mkdir()
        (folder / "grammar" / "Casts in the grammar.md").write_text(NOTE)
        (folder / "plain.md").write_text("No front matter: Ada prefers short names.\n")
        (folder / "picture.png").write_bytes(b"\x89PNG")
        return str(folder)
    if tool in RULES:
        (folder / "odd.bin").write_bytes(b"\xff\xfe\x00")
        for path in KEYS[tool]:
            file = folder / path.removeprefix(f"{tool}/")
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"---\napplyTo: '*.py'\n---\nAda, who prefers short names, wrote {file.name}.\n")
        return str(folder)
    (folder / "people").mkdir()
    (folder / "people" / "ada.md").write_text("Prefers short names.\r\n")
    (folder / "grammar.txt").write_text("Casts need two tokens.\n")
    (folder / "odd.bin").write_bytes(b"\xff\xfe\x00")
    return str(folder)


RULES = ("claude-memory", "cursor-rules", "copilot-instructions")
KEYS = {
    "server-memory": {"server-memory/Parser", "server-memory/Ada"},
    "mem0": {"mem0/9f1c", "mem0/77aa", "mem0/relation 240497996587"},
    "basic-memory": {"basic-memory/grammar/casts", "basic-memory/plain"},
    "claude-memory": {"claude-memory/MEMORY.md", "claude-memory/people/ada.md"},
    "cursor-rules": {"cursor-rules/style.mdc"},
    "copilot-instructions": {
        "copilot-instructions/copilot-instructions.md",
        "copilot-instructions/i/x.instructions.md",
    },
    "anthropic-memory": {"anthropic-memory/people/ada.md", "anthropic-memory/grammar.txt"},
}


def taken_in(place: Place, *words: str, refused: bool = False) -> Json:
    done = subprocess.run(
        [*COMMAND, "import", *words, "--json"],
        cwd=place.project,
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert bool(done.returncode) == refused, done.stderr
    found = json.loads(done.stderr)["error"] if refused else json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def kept(place: Place) -> dict[str, tuple[str, tuple[str, ...], str, int]]:
    with place.open() as hold:
        entries = hold.store.entries.list(hold.scope, Listing((MEMORY,))).entries
        return {entry.key: (entry.content, entry.tags, entry.origin, entry.version) for entry in entries}


@pytest.mark.parametrize("tool", KEYS)
def test_each_tool_is_taken_in_once(place: Place, tool: str) -> None:
    source = written(place, tool)
    dry = taken_in(place, tool, source, "--dry-run")
    assert (dry["added"], dry["unread_count"], dry["dry_run"]) == (len(KEYS[tool]), 1, True)
    assert kept(place) == {}

    first = taken_in(place, tool, source)
    assert (first["added"], first["known"], first["updated"], first["kept_count"]) == (len(KEYS[tool]), 0, 0, 0)
    there = kept(place)
    assert there.keys() == KEYS[tool]
    assert {origin for _, _, origin, _ in there.values()} == {"import"}
    with place.open() as hold:
        (hit, *_) = hold.recall("who prefers short names").hits
        assert hit.trust == "data"

    again = taken_in(place, tool, source)
    assert (again["added"], again["known"], again["updated"]) == (0, len(KEYS[tool]), 0)
    assert kept(place) == there


def test_what_is_said_of_a_thing_is_one_text(place: Place) -> None:
    taken_in(place, "server-memory", written(place, "server-memory"))
    taken_in(place, "basic-memory", written(place, "basic-memory"))
    taken_in(place, "mem0", written(place, "mem0"))
    there = kept(place)
    assert there["server-memory/Ada"][:2] == ("Ada (person)\n- Prefers short names\n- maintains → Parser", ("person",))
    content, tags, *_ = there["basic-memory/grammar/casts"]
    assert tags == ("parser", "two words", "lookahead")
    assert content == NOTE.partition("---\n\n")[2].strip()
    assert there["mem0/9f1c"][1] == ("user:ada", "style")


def test_what_changed_there_is_brought_up_to_date_and_what_changed_here_stays(place: Place) -> None:
    file = place.home / "graph.jsonl"
    file.write_text("\n".join(map(json.dumps, GRAPH)))
    taken_in(place, "server-memory", str(file))
    with place.open() as hold:
        hold.memory.write("server-memory/Ada", "Ada left.")
    grown = json.dumps({"type": "entity", "name": "Ada", "entityType": "person", "observations": ["New"]})
    more = json.dumps({"type": "entity", "name": "Parser", "entityType": "module", "observations": ["Faster now"]})
    file.write_text("\n".join([*map(json.dumps, GRAPH), grown, more]))
    done = taken_in(place, "server-memory", str(file))
    assert (done["added"], done["updated"], done["known"], done["kept"]) == (0, 1, 0, ["server-memory/Ada"])
    there = kept(place)
    assert there["server-memory/Ada"][0] == "Ada left."
    assert there["server-memory/Parser"][0].endswith("- Faster now")


def test_a_name_with_a_secret_is_masked_and_the_others_come_too(place: Place) -> None:
    secret, second = ("ghp_" + "".join(random.Random(n).choices(string.ascii_letters, k=34)) + "7x" for n in (1, 2))
    file = place.home / "all.json"
    rows = [(secret, "One."), ("plain", "Two."), (second, "Three."), (f"{secret} again", "Four.")]
    file.write_text(json.dumps({"results": [{"id": name, "memory": text} for name, text in rows]}))
    for expected in ((4, 0), (0, 4)):  # the masked name is the same each time
        done = taken_in(place, "mem0", str(file))
        assert (done["added"], done["known"]) == expected
        assert done["masked"]["kinds"] == ["github-token"]
    there = kept(place)
    assert sorted(content for content, *_ in there.values()) == ["Four.", "One.", "Three.", "Two."]
    assert not any(secret in key or second in key for key in there)
    assert sum(key.startswith("mem0/[redacted:github-token:") for key in there) == 3


def test_two_names_that_are_masked_alike_are_both_kept(place: Place) -> None:
    file = place.home / "all.json"
    rows = [(f"postgres://app:{word}@db/app", f"{word}.") for word in ("hunter2", "letmein9")]
    file.write_text(json.dumps({"results": [{"id": name, "memory": text} for name, text in rows]}))
    assert taken_in(place, "mem0", str(file))["added"] == 2
    assert taken_in(place, "mem0", str(file))["known"] == 2
    assert not any("hunter2" in key or "letmein9" in key for key in kept(place))


def test_a_long_text_is_kept_in_parts_and_nothing_of_it_is_lost(place: Place) -> None:
    lines = [f"line {number} {'x' * 90}" for number in range(3_000)]
    folder = place.home / "memories"
    folder.mkdir()
    (folder / "long.md").write_text("\n".join(lines))
    done = taken_in(place, "anthropic-memory", str(folder))
    there = kept(place)
    assert done["added"] == len(there) == 4
    names = ["anthropic-memory/long.md", *(f"anthropic-memory/long.md ({number})" for number in (2, 3, 4))]
    assert "\n".join(there[name][0] for name in names).split("\n") == lines
    assert taken_in(place, "anthropic-memory", str(folder))["known"] == 4


def test_nothing_outside_the_folder_is_read(place: Place) -> None:
    folder, outside = place.home / "memories", place.home / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.md").write_text("the secret")
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "inner").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (folder / "own.md").write_text("mine")
    os.mkfifo(folder / "pipe.md")
    with (folder / "huge.md").open("wb") as huge:
        huge.truncate(limits.PEER_NOTE_MAX_BYTES + 1)
    deep = folder.joinpath(*["d"] * (limits.PEER_FOLDERS_DEEP + 5))
    deep.mkdir(parents=True)
    (deep / "lost.md").write_text("too deep")
    done = taken_in(place, "anthropic-memory", str(folder))
    assert {key: value[0] for key, value in kept(place).items()} == {"anthropic-memory/own.md": "mine"}
    why = {one["part"]: one["why"] for one in done["unread"]}
    assert {name for name, said in why.items() if "symbolic link" in said} == {"file.md", "inner", "loop"}
    assert (why["pipe.md"], "4,194,305 bytes" in why["huge.md"]) == ("it is not a file", True)
    assert sum("folders deep" in said for said in why.values()) == 1


@pytest.mark.parametrize("tool", KEYS)
def test_what_is_nothing_of_the_tool_is_refused_and_changes_nothing(place: Place, tool: str) -> None:
    folder = place.home / "empty"
    folder.mkdir()
    (folder / "odd").write_bytes(b"\xff")
    wrong = folder / "odd" if memory_tools.READERS[tool].folder else folder
    nothing = folder if memory_tools.READERS[tool].folder else folder / "odd"
    for source in (wrong, nothing, folder / "missing"):
        problem = taken_in(place, tool, str(source), refused=True)
        assert problem["code"] == "peer_not_readable"
        assert tool in problem["message"]
    taken_in(place, tool, str(nothing), "--merge", refused=True)
    taken_in(place, tool, refused=True)
    assert not place.store.exists()


NAMES = (  # noqa: SIM905  A line is easier to read than eighteen quotes.
    "type name entityType observations from to relationType entities relations id memory results memories metadata "
    "categories source relationship target"
).split()
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
bodies = st.binary(max_size=200) | st.lists(values.map(json.dumps), max_size=5).map(lambda all: "\n".join(all).encode())
paths = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=20)
headed = st.text(max_size=60).map(lambda one: f"---\ntags: {one}\n---\n{one}".encode())
notes = st.text(max_size=200).map(str.encode) | headed


@given(
    bodies, st.lists(st.builds(SourceFile, paths | paths.map(lambda one: f"{one}.md"), notes | st.binary()), max_size=4)
)
def test_garbage_is_named_and_what_is_kept_can_be_kept(body: bytes, files: list[SourceFile]) -> None:
    for reader in memory_tools.READERS.values():
        given: object = files if reader.folder else body
        for one in reader.read(given):  # type: ignore[arg-type]
            assert isinstance(one, Fact | Unread)
            if isinstance(one, Fact):
                assert one.key.startswith(f"{reader.tool}/")
                assert one.key.isprintable()
                assert len(one.key) <= limits.KEY_MAX_CHARS - limits.PEER_PART_CHARS
                assert one.text.strip()
                assert one.text.encode()
                assert len(one.tags) <= limits.NOTE_MAX_TAGS
            else:
                assert one.why
