"""Texts join the word index of the embedded store in batches. A search sees them from the moment they are written."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import limpet
from contract.kit import NOON, NOTES, always, delete, keys, put, stamp
from contract.test_waiting import held
from limpet.model import MEMORY, NOTE, Draft, Scope
from limpet.store import Listing, Words
from limpet.stores.sqlite.entries import INDEXED_TOGETHER
from limpet.stores.sqlite.store import SqliteStore

WORDS = ("parser", "lexer", "casts", "grammar", "building", "release", "Straße", "tokens", "日本", "x" * 40, "branch-7")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limpet.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(str(path))
    yield store
    store.close()


def waiting(path: Path) -> int:
    sql = "SELECT count(*) FROM entries WHERE content <> '' AND rowid > (SELECT last FROM indexed)"
    return int(str(apsw.Connection(str(path)).execute(sql).fetchall()[0][0]))


def fill(store: SqliteStore, scope: Scope, count: int, seed: int = 1) -> None:
    chance = random.Random(seed)
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=5)) + f" number{number}"
        kind = MEMORY if number % 5 == 0 else NOTE
        put(store, scope, f"k{seed}-{number}", text, kind=kind, tags=(f"tag{number % 3}",), now=NOON + number)


def everything_asked(store: SqliteStore, scope: Scope) -> list[Any]:
    """What every read that needs the word index answers."""
    both = Listing((NOTE, MEMORY), limit=500)
    found: list[Any] = [store.entries.list(scope, both._replace(tags=("tag1",), limit=most)) for most in (3, 500)]
    found += [store.entries.list(scope, both._replace(tags=("tag1", "tag2")))]
    found += [store.entries.list(scope, both._replace(tags_any=("tag1", "tag2"), session="s"))]
    for needle in ("parser", "arse", "lexer casts", "er", "x" * 30, "straße", "本", "branch-7", "number7", "nothing"):
        found.append(store.entries.containing(scope, both, needle, Words(((needle,),))))
        found.append(store.entries.containing(scope, both._replace(tags=("tag2",)), needle))
    for words in ((("builds",),), (("parsers",), ("token",)), (("nothing",),)):
        found.append(store.entries.matching(scope, both, Words(words)))
        found.append(sorted(keys(store.entries.matching(scope, both, Words(words, every=False)))))
    return found


def test_a_text_is_found_from_the_moment_it_is_written(store: SqliteStore, path: Path, scope: Scope) -> None:
    for number in range(130):
        put(store, scope, f"k{number}", f"word{number} of many", now=NOON + number)
        if number % 17 == 0:
            assert keys(store.entries.matching(scope, NOTES, Words(((f"word{number}",),)))) == [f"k{number}"]
            assert store.entries.containing(scope, NOTES, f"ord{number} of").total == 1
            assert waiting(path) == 0
        assert waiting(path) < INDEXED_TOGETHER
    assert store.entries.containing(scope, NOTES, "ord12").total == 11  # 12 and 120 to 129


def test_no_more_than_a_batch_waits(store: SqliteStore, path: Path, scope: Scope) -> None:
    most = 0
    for number in range(3 * INDEXED_TOGETHER):
        put(store, scope, None, f"text {number}", now=NOON + number)
        most = max(most, waiting(path))
    assert most == INDEXED_TOGETHER - 1
    drafts = [(f"m{number}", Draft(f"many {number}", "s")) for number in range(3 * INDEXED_TOGETHER)]
    store.entries.append(scope, NOTE, drafts, stamp(NOON + 1_000))
    assert waiting(path) == 0


@pytest.mark.parametrize("indexed", [0, 30, 100])
def test_what_waits_is_found_while_nobody_can_index_it(path: Path, indexed: int) -> None:
    scope = Scope("local", "p")
    store = SqliteStore(str(path))
    fill(store, scope, indexed, seed=1)
    store.entries.settle()
    fill(store, scope, 40, seed=2)
    fill(store, scope._replace(project="other"), 5, seed=3)
    with held(path):
        beside = everything_asked(store, scope)
        assert "k2-7" in recalled(path, scope)
        assert waiting(path) == 45
    assert everything_asked(store, scope) == beside
    assert "k2-7" in recalled(path, scope)
    assert waiting(path) == 0
    store.close()


def recalled(path: Path, scope: Scope) -> list[str]:
    with limpet.open(str(path), project=scope.project, session="s") as hold:
        return [hit["id"] for hit in hold.call("recall", {"query": "number7 of the parser"})["hits"]]


def test_what_changes_while_it_waits_is_indexed_as_it_is_now(store: SqliteStore, path: Path, scope: Scope) -> None:
    for key in ("changed", "deleted", "again"):
        put(store, scope, key, f"osprey in {key}", tags=("bird",))
    put(store, scope, "changed", "heron", tags=("water",))
    delete(store, scope, "deleted")
    delete(store, scope, "again")
    put(store, scope, "again", "osprey once more")
    assert waiting(path) == 2
    assert keys(store.entries.matching(scope, NOTES, Words((("osprey",),)))) == ["again"]
    assert keys(store.entries.matching(scope, NOTES, Words((("heron",),)))) == ["changed"]
    assert keys(store.entries.list(scope, Listing((NOTE,), tags=("bird",))).entries) == []
    assert keys(store.entries.list(scope, Listing((NOTE,), tags=("water",))).entries) == ["changed"]
    assert all(finding.ok for finding in store.check())


def test_a_number_that_is_used_again_is_indexed(store: SqliteStore, scope: Scope) -> None:
    put(store, scope, "first", "osprey")
    store.entries.settle()
    delete(store, scope, "first")  # SQLite gives its number to the next one
    put(store, scope, "second", "heron")
    assert keys(store.entries.matching(scope, NOTES, Words((("heron",),)))) == ["second"]
    assert store.entries.matching(scope, NOTES, Words((("osprey",),))) == ()
    assert all(finding.ok for finding in store.check())


def test_a_rolled_back_write_leaves_nothing_to_index(store: SqliteStore, path: Path, scope: Scope) -> None:
    put(store, scope, "kept", "osprey")

    def fails(before: object) -> Draft:
        raise ValueError("no")

    edits = [(NOTE, "new", always(Draft("heron", "s"))), (NOTE, "bad", fails)]
    with pytest.raises(ValueError, match="no"):
        store.entries.edit_all(scope, edits, stamp())
    assert waiting(path) == 1
    assert store.entries.matching(scope, NOTES, Words((("heron",),))) == ()
    put(store, scope, "new", "heron")
    assert keys(store.entries.matching(scope, NOTES, Words((("heron",),)))) == ["new"]


def test_what_waits_travels_with_a_backup_and_is_checked(store: SqliteStore, path: Path, scope: Scope) -> None:
    fill(store, scope, 20)
    assert waiting(path) == 20
    assert all(finding.ok for finding in store.check())
    copy = str(path) + ".copy"
    assert all(finding.ok for finding in store.backup(copy))
    again = SqliteStore(str(path) + ".again")
    again.restore(copy)
    assert everything_asked(again, scope) == everything_asked(store, scope)
    again.close()
    assert os.path.exists(copy)
