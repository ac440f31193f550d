"""What is deleted is in no index, and what is purged for ever is nowhere: checked by reading the files themselves."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import limpet
from contract.kit import always
from limpet.api import Limpet
from limpet.limits import OUTPUT_CATCH_UP_BYTES
from limpet.model import FOLD, MEMORY, NOTE, Draft
from limpet.session import hook_state
from limpet.store import DELETE, Listing
from limpet.window.messages import Call, assistant, result, user
from operations.conftest import Clock, Opener
from postgres import as_admin
from profiles import fewer_examples

WORD = "zyxquwodlon"  # no other word begins like it, so an index that shortens what is alike has it whole
SQLITE_INDEXES = ("pieces", "terms_data", "terms_idx", "output_terms_data", "output_terms_idx", "output_pieces")
POSTGRES_INDEXES = ("entries", "entry_tags", "output_pieces", "outputs", "output_calls", "output_reads")


def holding(store_url: str, tables: tuple[str, ...]) -> set[str]:
    """Those of the tables in which the word stands anywhere."""
    found = set()
    if "://" in store_url:
        with psycopg.connect(as_admin(store_url)) as con:  # who owns the tables sees no rows but a tenant's
            for table in tables:
                rows = con.execute(f"SELECT t::text FROM {table} t").fetchall()
                if any(WORD in row[0] for row in rows):
                    found.add(table)
        return found
    file = apsw.Connection(store_url, flags=apsw.SQLITE_OPEN_READONLY)
    for table in tables:
        rows = file.execute(f"SELECT * FROM {table}").fetchall()
        if any(
            WORD.encode() in (cell if isinstance(cell, bytes) else str(cell).encode()) for row in rows for cell in row
        ):
            found.add(table)
    file.close()
    return found


def indexes(store_url: str) -> tuple[str, ...]:
    return POSTGRES_INDEXES if "://" in store_url else SQLITE_INDEXES


def fill(hold: Limpet) -> tuple[str, str]:
    """Texts that stay, and a note, a memory entry and an output with the word. The ids of the note and the output."""
    work = hold.session("here")
    for number in range(40):
        work.notes.add(f"note {number} about parsers and casts")
    id = work.notes.add(f"a note with {WORD}", [WORD]).id
    for number in range(40):
        work.notes.add(f"another note {number} about lexers")
    work.memory.write("fact", f"memory with {WORD}")
    work.memory.write("fact", f"memory with {WORD} twice {WORD}")
    kept = work.outputs.keep("web_fetch", f"page with {WORD}\n" + "more of it\n" * 500, call=f"fetch {WORD}").output
    assert kept is not None
    hold.call("read_output", {"id": kept.id, "query": WORD})
    hold.store.outputs.index(hold.scope, OUTPUT_CATCH_UP_BYTES)
    return id, kept.id


def repeat(hold: Limpet) -> None:
    """The word wherever a session's work is told again: handoff, journal, task, compaction and checkpoint."""
    work = hold.session("here")
    work.handoff.write(f"next comes {WORD}")
    work.hold.call("update_journal", {"section": "goal", "text": f"peel the {WORD}"}, session=work.id)
    work.hold.call("begin_task", {"description": f"fetch the {WORD}"}, session=work.id)
    call = assistant(f"I decided to take {WORD}.", Call("c1", "shell", f'{{"command": "echo {WORD}"}}'))
    said = [user(f"bring {WORD}"), call, result("c1", f"Error: {WORD}"), *[user("more " * 400), assistant("ok")] * 12]
    work.window.next(said, limit=4_000)
    work.window.next([*said, assistant("saved")], limit=4_000)
    work.hold.call("end_task", {"summary": f"no {WORD}"}, session=work.id)
    folds = [
        record for what, record in hold.store.entries.dump(hold.scope) if what == "entry" and record["kind"] == FOLD
    ]
    assert any(WORD in record["content"] for record in folds), "the test would prove less"
    ctx = hold.context("here", "agent/hook")
    for number in range(3):
        hook_state.before_compact(ctx, f"Failed {number}: {WORD}", "tool")


def test_what_is_deleted_is_in_no_index(opened: Opener, store_url: str) -> None:
    hold = opened()
    id, output = fill(hold)
    assert holding(store_url, indexes(store_url)), "the test would prove nothing"
    hold.session("here").notes.delete(id)
    hold.store.entries.edit(hold.scope, MEMORY, "fact", lambda _: DELETE, hold.context().stamp("delete"))
    hold.call("delete_output", {"id": output})
    hold.close()
    left = {"output_calls", "output_reads"}  # notes about calls and reads, which are no index
    assert holding(store_url, indexes(store_url)) <= left
    assert holding(store_url, ("events",)) == {"events"}, "so that undo can bring it back"


def test_a_text_that_is_masked_by_an_edit_is_in_no_index(opened: Opener, store_url: str) -> None:
    hold = opened()
    work = hold.session()
    id = work.notes.add(f"the key is {WORD}").id
    work.notes.update(id, content="the key is [redacted]")
    hold.close()
    assert holding(store_url, ("pieces",) if "://" not in store_url else POSTGRES_INDEXES) == set()
    again = opened()
    found = again.session().notes.search(WORD)
    assert (found.notes, found.related) == ((), ())
    assert again.recall(WORD).hits == ()


def test_what_is_purged_for_ever_is_nowhere(opened: Opener, store_url: str, tmp_path: Path) -> None:
    hold = opened()
    id, _ = fill(hold)
    repeat(hold)
    hold.session("here").notes.delete(id)
    for origin in ("agent", "tool", "person"):  # of the person: what the user said in the conversation
        answer = hold.call("purge", {"origin": origin, "session": "here", "forever": True}, by="person/cli")
        assert answer["counts"]
    assert all(finding.ok for finding in hold.check())
    kept = [line for line in hold.export_lines() if WORD in line]
    assert kept == []
    hold.close()
    beside = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith("limpet.db")]
    assert tmp_path / "NOTES.md" in beside
    assert [path for path in beside if WORD in path.read_text(errors="replace")] == []
    if "://" in store_url:
        assert (
            holding(store_url, (*POSTGRES_INDEXES, "events", "tallies", "output_tombstones", "output_chunks")) == set()
        )
        return
    for path in glob.glob(f"{store_url}*"):
        raw = Path(path).read_bytes()
        assert WORD.encode() not in raw, path
        assert WORD[3:].encode() not in raw, path


def test_the_test_would_see_it(tmp_path: Path, clock: Clock) -> None:
    """Without `forever` the file holds the word: reading it the same way finds it."""
    path = str(tmp_path / "limpet.db")
    with limpet.open(path, project="demo", session="one", clock=clock) as hold:
        fill(hold)
        hold.call("purge", {"origin": "agent"}, by="person/cli")
    assert any(WORD.encode() in Path(name).read_bytes() for name in glob.glob(f"{path}*"))


WORDS = ("parser", "parsing", "lexer", "lexers", "exe", "grammar")
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 3), st.sets(st.sampled_from(WORDS), max_size=3)), max_size=24
)


@settings(max_examples=fewer_examples(2), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_two_processes_that_forget_words_still_find_everything(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, set[str]]]
) -> None:
    """Each remembers which words are in the index, and the other may take them out."""
    path = str(tmp_path_factory.mktemp("forget") / "limpet.db")
    holds = [limpet.open(path, project="demo", session="one") for _ in range(2)]
    holds[0].store.create()
    kept: dict[str, str] = {}
    for who, key, words in steps:
        store, scope = holds[who].store, holds[who].scope
        text = " ".join(sorted(words))
        draft: Any = Draft(text, "one") if words else DELETE
        store.entries.edit(scope, NOTE, f"n{key}", always(draft), holds[who].context().stamp("test"))
        kept.pop(f"n{key}", None)
        if words:
            kept[f"n{key}"] = text
    for hold in holds:
        for sought in (*WORDS, "pars", "xer", "amm", "ing"):
            page = hold.store.entries.containing(hold.scope, Listing((NOTE,)), sought)
            assert {entry.key for entry in page.entries} == {key for key, text in kept.items() if sought in text}
    con = apsw.Connection(path)
    indexed = {row[0] for row in con.execute("SELECT word FROM pieces WHERE piece <> ''")} - {"one"}
    con.close()
    assert indexed == {word for text in kept.values() for word in text.split()}
    for hold in holds:
        hold.close()
