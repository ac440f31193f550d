"""What was read is what was written, or it is not shown at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from contract.kit import NOON, NOTES, everything, new_scope, put, raw
from limpet import errors
from limpet.model import NOTE, Scope
from limpet.store import EventQuery, Store, Words
from limpet.wiring import choose_store

# One change for each kept field. `done` and `pinned` are numbers in one store and booleans in the other.
DAMAGES = {
    "content": "content = replace(content, 'precious', 'preciovs')",
    "session": "session = 'another'",
    "tags": "tags = replace(tags, 'tag', 'tog')",
    "tags cut": "tags = '[\"ta'",
    "tags of another type": "tags = '7'",
    "extra": "extra = replace(extra, '1', '2')",
    "extra cut": "extra = '{\"a\"'",
    "extra of another type": "extra = '[1]'",
    "origin": "origin = 'human'",
    "version": "version = 7",
    "created_at": "created_at = created_at + 1",
    "updated_at": "updated_at = updated_at + 1",
    "done": "done = NOT done",
    "pinned": "pinned = NOT pinned",
    "hash": "hash = substr(hash, 2)",
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_entry_is_never_shown(store: Store, store_url: str, scope: Scope, damage: str) -> None:
    put(store, scope, "bad", "something precious", tags=("tag",), extra={"a": 1})
    put(store, scope, "good", "something else")
    raw(store_url, f"UPDATE entries SET {DAMAGES[damage]} WHERE key = 'bad'")
    with pytest.raises(errors.StoreDamaged, match="note 'bad'") as caught:
        store.entries.read(scope, NOTE, "bad")
    assert caught.value.code == "store_damaged"
    good = store.entries.read(scope, NOTE, "good")
    assert good is not None
    assert good.content == "something else"
    findings = {finding.name: finding for finding in store.check()}
    assert not findings["checksums"].ok
    assert "'bad'" in findings["checksums"].detail
    assert "'good'" not in findings["checksums"].detail
    assert put(store, scope, "new", "still works").seq


READS: dict[str, Callable[[Store, Scope], object]] = {
    "list": lambda store, scope: store.entries.list(scope, NOTES),
    "containing": lambda store, scope: store.entries.containing(scope, NOTES, "some"),
    "matching": lambda store, scope: store.entries.matching(scope, NOTES, Words((("someth",),))),
    "events": lambda store, scope: store.entries.events(scope, EventQuery()),
    "dump": everything,
    "edit": lambda store, scope: put(store, scope, "bad", "overwritten"),
}


@pytest.mark.parametrize("name", list(READS))
def test_no_way_of_reading_shows_damage(store: Store, store_url: str, scope: Scope, name: str) -> None:
    put(store, scope, "bad", "something precious")
    raw(store_url, "UPDATE entries SET content = 'something forged' WHERE key = 'bad'")
    with pytest.raises(errors.StoreDamaged, match="note 'bad'"):
        READS[name](store, scope)
    assert raw(store_url, "SELECT content FROM entries WHERE key = 'bad'") == [("something forged",)]


@pytest.mark.parametrize("damage", ["tags cut", "tags of another type"])
def test_what_is_damaged_and_has_expired_leaves_the_others_listed(
    store: Store, store_url: str, scope: Scope, damage: str
) -> None:
    put(store, scope, "bad", "something", tags=("tag",), extra={"expires_at": NOON + 1})
    for key in ("one", "two"):
        put(store, scope, key, "something else", tags=("tag",))
    raw(store_url, f"UPDATE entries SET {DAMAGES[damage]} WHERE key = 'bad'")
    page = store.entries.list(scope, NOTES._replace(limit=1, now=NOON + 60_000))
    assert (len(page.entries), page.total) == (1, 2)
    assert store.entries.list(scope, NOTES._replace(limit=1, now=NOON + 60_000, tags=("tag",))).entries == page.entries
    assert [counted.tag for counted in store.entries.tags(scope, NOTE, "", NOON + 60_000)] == ["tag"]


@pytest.mark.one_server
def test_an_entry_of_another_project_is_damage(store: Store, store_url: str, scope: Scope) -> None:
    """The checksum covers whose entry it is, so a row that wandered over is not shown to the wrong people."""
    put(store, scope, "k", "secret")
    other = new_scope("somebody else")
    raw(store_url, "UPDATE entries SET tenant = ?, project = ? WHERE kind = 'note'", tuple(other))
    with pytest.raises(errors.StoreDamaged):
        store.entries.read(other, NOTE, "k")


@pytest.mark.parametrize(
    "damage",
    ["replace(before, 'first', 'worst')", "substr(before, 1, 20)", "'[]'", "'{}'", "'7'"],
    ids=["content", "cut", "list", "empty", "number"],
)
def test_a_damaged_change_is_never_shown(store: Store, store_url: str, scope: Scope, damage: str) -> None:
    put(store, scope, "bad", "first")
    put(store, scope, "bad", "second")
    put(store, scope, "good", "text")
    raw(store_url, f"UPDATE events SET before = {damage} WHERE before IS NOT NULL")
    with pytest.raises(errors.StoreDamaged):
        store.entries.events(scope, EventQuery())
    with pytest.raises(errors.StoreDamaged):
        everything(store, scope)
    assert store.entries.events(scope, EventQuery(key="good"))[0].after is not None
    current = store.entries.read(scope, NOTE, "bad")
    assert current is not None
    assert current.content == "second"
    findings = {finding.name: finding for finding in store.check()}
    assert not findings["checksums"].ok
    assert "'bad'" in findings["checksums"].detail


@pytest.mark.parametrize("byte", [b"v", b"\xff"], ids=["another letter", "no letter at all"])
def test_a_byte_that_changed_on_disk_is_noticed(tmp_path: Path, scope: Scope, byte: bytes) -> None:
    path = tmp_path / "limpet.db"
    store = choose_store(str(path))
    put(store, scope, "bad", "something precious")
    put(store, scope, "good", "something else")
    store.close()
    kept = path.read_bytes()
    assert b"something precious" in kept
    path.write_bytes(kept.replace(b"something precious", b"something precio" + byte + b"s"))
    store = choose_store(str(path))
    with pytest.raises(errors.StoreDamaged):
        store.entries.read(scope, NOTE, "bad")
    for look in READS.values():
        with pytest.raises(errors.StoreDamaged):
            look(store, scope)
    good = store.entries.read(scope, NOTE, "good")
    assert good is not None
    assert put(store, scope, "good", "still works").seq
    findings = {finding.name: finding for finding in store.check()}
    assert not findings["checksums"].ok
    assert "'bad'" in findings["checksums"].detail
    store.close()


def test_an_index_that_leads_to_another_entry_is_noticed(tmp_path: Path, scope: Scope) -> None:
    """After a flipped bit in the index the row that is found may be whole, and not the one that was asked for."""
    path = str(tmp_path / "limpet.db")
    store = choose_store(path)
    keys = [f"k{number}" for number in range(12)]
    for key in keys:
        put(store, scope, key, f"of {key}")
    store.close()
    ((page,),) = raw(path, "SELECT rootpage FROM sqlite_schema WHERE name LIKE 'sqlite_autoindex_entries%'")
    ((size,),) = raw(path, "PRAGMA page_size")
    whole = Path(path).read_bytes()
    at = whole.find(scope.tenant.encode(), (page - 1) * size)
    while 0 <= at < page * size:
        damaged = bytearray(whole)
        damaged[at] ^= 16
        Path(path).write_bytes(bytes(damaged))
        store = choose_store(path)
        for key in keys:
            with suppress(errors.StoreDamaged):
                entry = store.entries.read(scope, NOTE, key)
                assert entry is None or entry.key == key
        store.close()
        at = whole.find(scope.tenant.encode(), at + 1)
