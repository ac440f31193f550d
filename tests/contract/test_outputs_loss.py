"""Outputs that are damaged or gone: nothing wrong is ever shown, and something says what they were."""

from __future__ import annotations

import hashlib
import random

import pytest

from contract.kit import NOON, always, new_scope, put, raw, stamp
from contract.outputs_kit import CHUNK, DRAFT, ids, keep, log, whole
from limpet import errors
from limpet.model import MEMORY, Draft, Scope
from limpet.store import Store

# --- damage -----------------------------------------------------------------------------------------------------------


def flip(url: str, where: str, at: int, bit: int) -> None:
    ((body,),) = raw(url, f"SELECT body FROM output_chunks WHERE {where}")
    changed = bytearray(body)
    changed[at % len(changed)] ^= 1 << bit
    raw(url, f"UPDATE output_chunks SET body = ? WHERE {where}", (bytes(changed),))


def test_a_flipped_bit_is_never_returned(store: Store, store_url: str, scope: Scope) -> None:
    body = log(3 * CHUNK)
    output = keep(store, scope, body)
    dice = random.Random(3)
    for _ in range(20):
        at, bit = dice.randrange(1 << 20), dice.randrange(8)
        flip(store_url, "number = 1", at, bit)
        with pytest.raises(errors.StoreDamaged, match=f"the output '{output.id}'"):
            whole(store, scope, output)
        with pytest.raises(errors.StoreDamaged):
            store.outputs.read_bytes(scope, output.id, CHUNK + 5, CHUNK + 6)
        assert store.outputs.read_bytes(scope, output.id, 0, 99) == body[:99]
        flip(store_url, "number = 1", at, bit)
    assert whole(store, scope, output) == body
    flip(store_url, "number = 1", 77, 3)
    finding = store.check()[-1]
    assert not finding.ok
    assert output.id in finding.detail


@pytest.mark.parametrize(
    "damage",
    [
        *("UPDATE outputs SET tool = 'other'", "UPDATE outputs SET preview = ''", "UPDATE outputs SET size = size - 1"),
        *("UPDATE outputs SET lines = lines + 1", "UPDATE outputs SET line_starts = '[1,1,1]'"),
        *("UPDATE outputs SET id = '0123456789ab'", "UPDATE outputs SET created_at = 0"),
    ],
)
def test_a_damaged_row_is_never_shown(store: Store, store_url: str, scope: Scope, damage: str) -> None:
    keep(store, scope, log(2 * CHUNK))
    raw(store_url, damage)
    ((id,),) = raw(store_url, "SELECT id FROM outputs")
    for look in (
        lambda: store.outputs.find(scope, id),
        lambda: store.outputs.list(scope, 5),
        lambda: store.outputs.read_bytes(scope, id, 0, 5),
        lambda: store.outputs.read_lines(scope, id, 1, 5),
        lambda: store.outputs.touch(scope, id, NOON),
    ):
        with pytest.raises(errors.StoreDamaged):
            look()
    assert not store.check()[-1].ok
    assert store.outputs.delete(scope, id, stamp())  # and it can be got rid of
    stone = store.outputs.tombstone(scope, id)
    assert stone is not None
    assert (stone.tool, stone.call) == ("", "")
    assert store.check()[-1].ok


@pytest.mark.parametrize(
    "damage",
    [
        *("UPDATE output_chunks SET number = -1 - number", "DELETE FROM output_chunks WHERE number = 1"),
        *("DELETE FROM output_chunks", "UPDATE outputs SET tool = 'x'", "UPDATE output_chunks SET hash = body"),
    ],
)
def test_keeping_damaged_content_again_mends_it(store: Store, store_url: str, scope: Scope, damage: str) -> None:
    body = log(3 * CHUNK)
    output = keep(store, scope, body)
    other = keep(store, new_scope(), body)
    raw(store_url, f"{damage}{' AND' if 'WHERE' in damage else ' WHERE'} project = ?", (scope.project,))
    with pytest.raises(errors.StoreDamaged):
        whole(store, scope, output)
    again = store.outputs.keep(scope, DRAFT, body, stamp(NOON + 1))
    assert again.new
    assert again.output.id == output.id == other.id
    assert whole(store, scope, output) == body
    assert store.check()[-1].ok


def test_a_damaged_tombstone_is_never_shown(store: Store, store_url: str, scope: Scope) -> None:
    output = keep(store, scope, b"x")
    store.outputs.delete(scope, output.id, stamp())
    raw(store_url, "UPDATE output_tombstones SET what = replace(what, 'grep', 'curl')")
    with pytest.raises(errors.StoreDamaged):
        store.outputs.tombstone(scope, output.id)
    assert not store.check()[-1].ok


# --- going ------------------------------------------------------------------------------------------------------------


def test_what_is_deleted_leaves_a_tombstone(store: Store, store_url: str, scope: Scope) -> None:
    output = keep(store, scope, b"precious")
    store.outputs.touch(scope, output.id, NOON + 1)
    assert store.outputs.tombstone(scope, output.id) is None
    assert store.outputs.delete(scope, output.id, stamp(NOON + 2, by="human/cli"))
    assert not store.outputs.delete(scope, output.id, stamp(NOON + 3))
    assert store.outputs.find(scope, output.id) is None
    stone = store.outputs.tombstone(scope, output.id)
    assert stone is not None
    same = {name: value for name, value in output._asdict().items() if name not in ("preview", "redacted", "uses")}
    gone = {"used_at": NOON + 1, "gone_at": NOON + 2, "why": "deleted", "by": "human/cli"}
    assert stone._asdict() == same | gone
    assert raw(store_url, "SELECT count(*) FROM output_chunks") == [(0,)]
    again = store.outputs.keep(scope, DRAFT, b"precious", stamp(NOON + 4))
    assert again == (output._replace(created_at=NOON + 4, used_at=NOON + 4), True)
    assert store.outputs.tombstone(scope, output.id) is None


def test_clearing_leaves_tombstones_of_all(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n) for n in range(3)]
    put(store, scope, "k", f"see {kept[0].id}")
    assert store.outputs.clear(scope, stamp(NOON + 1)) == 3
    assert store.outputs.clear(scope, stamp(NOON + 1)) == 0
    assert store.outputs.list(scope, 5) == ((), 0)
    stones = [store.outputs.tombstone(scope, output.id) for output in kept]
    assert [stone.why for stone in stones if stone] == ["cleared"] * 3


def test_pruning_by_age_is_by_last_use(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n, NOON + n).id for n in range(5)]
    store.outputs.touch(scope, kept[0], NOON + 100)
    assert store.outputs.prune(scope, now=NOON + 103, max_age_ms=102, max_bytes=None) == (0, 0)  # equal is not older
    assert store.outputs.prune(scope, now=NOON + 103, max_age_ms=100, max_bytes=None) == (2, 2)
    assert ids(store, scope) == [kept[0], kept[4], kept[3]]
    stone = store.outputs.tombstone(scope, kept[1])
    assert stone is not None
    assert (stone.why, stone.by, stone.gone_at) == ("too old", "", NOON + 103)
    assert store.outputs.prune(scope, now=NOON + 103, max_age_ms=None, max_bytes=None) == (0, 0)


def test_pruning_by_size_takes_the_least_recently_used(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n * 100, NOON + n).id for n in range(6)]
    store.outputs.touch(scope, kept[0], NOON + 100)
    assert store.outputs.prune(scope, now=NOON, max_age_ms=None, max_bytes=600) == (0, 0)
    assert store.outputs.prune(scope, now=NOON, max_age_ms=None, max_bytes=599) == (1, 100)
    assert store.outputs.prune(scope, now=NOON, max_age_ms=None, max_bytes=350) == (2, 200)
    assert ids(store, scope) == [kept[0], kept[5], kept[4]]
    stone = store.outputs.tombstone(scope, kept[1])
    assert stone is not None
    assert stone.why == "no room"


def test_pruning_does_a_bounded_amount_of_work(store: Store, scope: Scope) -> None:
    for n in range(10):
        keep(store, scope, b"%d" % n, NOON + n)
    done = [store.outputs.prune(scope, now=NOON + 50, max_age_ms=1, max_bytes=0, most=most) for most in (0, 4, 4, 4, 4)]
    assert [pruned.deleted for pruned in done] == [0, 4, 4, 2, 0]


def test_what_is_cited_is_never_pruned(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n, NOON + n).id for n in range(130)]
    put(store, scope, None, f"the trace is in {kept[0]}, look there")
    put(store, scope, "k", f"hold://{kept[3].upper()}#/a/b", kind=MEMORY, done=True)
    put(store, scope, kept[5], "named by its key", kind=MEMORY)
    put(store, scope, None, f"digest {hashlib.sha256(b'7').hexdigest()}, glued x{kept[9]}y and é{kept[11]}")
    put(store, new_scope(), None, f"somebody else's {kept[20]}")
    stay = {kept[n] for n in (0, 3, 5, 7, 9, 11)}
    assert store.outputs.cited(scope, kept) == stay
    assert store.outputs.cited(scope, []) == frozenset()
    for most in (1, 50, 200):
        store.outputs.prune(
            scope, now=NOON * 2, max_age_ms=1, max_bytes=0, most=most, keep=frozenset([kept[25], "another"])
        )
    assert set(ids(store, scope)) == stay | {kept[25]}
    assert store.outputs.prune(scope, now=NOON * 2, max_age_ms=1, max_bytes=0).deleted == 1
    store.entries.edit(scope, MEMORY, "k", always(Draft("no more")), stamp())
    assert store.outputs.prune(scope, now=NOON * 2, max_age_ms=1, max_bytes=0).deleted == 1
    assert set(ids(store, scope)) == stay - {kept[3]}
