"""What a store notes around outputs: the last result of a call, the latest reads, and the savings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from contract.kit import NOON, new_scope, stamp
from limpet import limits
from limpet.model import OutputDraft, Scope
from limpet.store import CallRecord, LastResult, ReadRecord, Savings, Store
from limpet.wiring import choose_store

TOKENIZER = "estimate"


def note(call: str = "c", **fields: Any) -> CallRecord:
    plain = CallRecord("s", "grep", call, "a" * 12, "a" * 64, NOON, True, False, TOKENIZER, 1_000, 100)
    return plain._replace(**fields)


def read(what: object = 1, **fields: Any) -> ReadRecord:
    return ReadRecord("s", "grep", "a" * 12, ["lines", what], NOON, TOKENIZER, 50)._replace(**fields)


def test_the_last_result_of_a_call_is_known_by_session(store: Store, scope: Scope) -> None:
    assert store.calls.last_result(scope, "s", "c") is None
    store.calls.record_call(scope, note(), 0)
    store.calls.record_call(scope, note(id="b" * 12, digest="b" * 64, at=NOON + 5), 0)
    assert store.calls.last_result(scope, "s", "c") == LastResult("b" * 12, "b" * 64, NOON + 5)
    for other in ((scope, "t", "c"), (scope, "s", "d"), (new_scope(), "s", "c"), (Scope("x", scope.project), "s", "c")):
        assert store.calls.last_result(*other) is None


def test_a_call_that_nobody_knows_is_counted_and_not_remembered(store: Store, scope: Scope) -> None:
    store.calls.record_call(scope, note(""), 0)
    assert store.calls.last_result(scope, "s", "") is None
    assert store.calls.savings(scope) == (Savings("s", "grep", TOKENIZER, 1, 1, 0, 0, 1_000, 100, 0),)


def test_savings_add_up_by_session_tool_and_tokenizer(store: Store, scope: Scope) -> None:
    store.calls.record_call(scope, note(), 0)
    store.calls.record_call(scope, note(new=False, repeated=True, returned=30), 0)
    store.calls.record_read(scope, read())
    store.calls.record_call(scope, note(tool="cat"), 0)
    store.calls.record_call(scope, note(session="r"), 0)
    store.calls.record_call(scope, note(tokenizer="other"), 0)
    assert store.calls.savings(scope) == (
        Savings("r", "grep", TOKENIZER, 1, 1, 0, 0, 1_000, 100, 0),
        Savings("s", "cat", TOKENIZER, 1, 1, 0, 0, 1_000, 100, 0),
        Savings("s", "grep", TOKENIZER, 2, 1, 1, 1, 2_000, 130, 50),
        Savings("s", "grep", "other", 1, 1, 0, 0, 1_000, 100, 0),
    )
    assert store.calls.savings(scope, "r") == store.calls.savings(scope)[:1]
    assert store.calls.savings(scope)[2].saved == 2_000 - 130 - 50
    assert store.calls.savings(new_scope()) == ()


def test_reads_are_remembered_in_order_and_only_the_latest(store: Store, scope: Scope) -> None:
    most = limits.OUTPUT_READS_NOTED
    for number in range(most + 5):
        earlier = store.calls.record_read(scope, read(number))
        assert [one[1] for one in earlier] == list(range(max(0, number - most), number))
    assert store.calls.record_read(scope, read(session="t")) == ()
    assert store.calls.record_read(scope, read(id="b" * 12)) == ()


def test_a_read_is_a_use(store: Store, scope: Scope) -> None:
    output = store.outputs.keep(scope, OutputDraft("grep"), b"text", stamp()).output
    store.calls.record_read(scope, read(id=output.id, at=NOON + 9))
    assert store.outputs.find(scope, output.id) == output._replace(used_at=NOON + 9, uses=1)
    store.calls.record_read(scope, read(id=output.id, at=NOON - 9))
    assert store.outputs.find(scope, output.id) == output._replace(used_at=NOON + 9, uses=2)


def test_old_notes_go_a_few_at_a_time_and_savings_stay(store: Store, scope: Scope) -> None:
    for number in range(30):
        store.calls.record_call(scope, note(f"old {number}", at=NOON + number), 0)
        store.calls.record_read(scope, read(id=f"{number:012}", at=NOON + number))
    other = new_scope()
    store.calls.record_call(other, note("old 0"), 0)
    store.calls.record_call(scope, note("new", at=NOON + 99), NOON + 25)
    assert store.calls.last_result(scope, "s", "old 0") is None
    assert store.calls.last_result(scope, "s", "old 24") is not None  # not all at once
    store.calls.record_call(scope, note("new", at=NOON + 99), NOON + 25)
    known = [number for number in range(30) if store.calls.last_result(scope, "s", f"old {number}")]
    assert known == [25, 26, 27, 28, 29]
    assert store.calls.record_read(scope, read(id=f"{3:012}")) == ()
    assert len(store.calls.record_read(scope, read(id=f"{27:012}"))) == 1
    assert store.calls.last_result(other, "s", "old 0") is not None
    assert store.calls.savings(scope)[0].calls == 32


def test_notes_are_there_for_another_process(store: Store, store_url: str, scope: Scope) -> None:
    store.calls.record_call(scope, note(), 0)
    store.calls.record_read(scope, read())
    again = choose_store(store_url)
    assert again.calls.last_result(scope, "s", "c") == store.calls.last_result(scope, "s", "c")
    assert again.calls.savings(scope) == store.calls.savings(scope)
    again.close()


def test_a_note_costs_no_sync_and_a_keep_costs_one(tmp_path: Path, scope: Scope) -> None:
    """SQLite asks its file system to sync; a layer in between counts that."""
    syncs: list[int] = []
    plain = apsw.vfs_names()[0]

    class File(apsw.VFSFile):
        def __init__(self, name: Any, flags: list[int]) -> None:
            super().__init__(plain, name, flags)

        def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
            syncs.append(flags)
            super().xSync(flags)

    class Counting(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("counting", plain, makedefault=True)

        def xOpen(self, name: Any, flags: list[int]) -> File:  # noqa: N802
            return File(name, flags)

    vfs = Counting()
    try:
        store = choose_store(str(tmp_path / "limpet.db"))
        output = store.outputs.keep(scope, OutputDraft("grep"), b"text", stamp()).output
        syncs.clear()
        for number in range(5):
            store.calls.record_call(scope, note(f"c{number}"), 0)
            store.calls.record_read(scope, read(number, id=output.id))
        assert syncs == []
        store.outputs.keep(scope, OutputDraft("grep"), b"other", stamp())
        assert len(syncs) == 1
        store.close()
    finally:
        vfs.unregister()
        apsw.set_default_vfs(plain)
