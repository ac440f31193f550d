"""Outputs: kept once and whole, read in parts, and when they go, something says what they were."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.kit import NOON, always, everything, new_scope, note, per_example, put, raw, stamp
from contract.test_concurrency import at_once
from holdfast import errors, limits
from holdfast.model import MEMORY, NOTE, Draft, Output, OutputDraft, Scope
from holdfast.store import Kept, Store
from holdfast.stores import postgres_schema, rows, sqlite_file
from holdfast.stores.output_rows import FIELDS
from holdfast.wiring import choose_store

CHUNK = limits.OUTPUT_CHUNK_BYTES
DRAFT = OutputDraft("grep", '{"q":"ü"}', "text", "a preview", 2)


def keep(store: Store, scope: Scope, body: bytes, now: int = NOON, draft: OutputDraft = DRAFT) -> Output:
    return store.keep_output(scope, draft, body, stamp(now)).output


def whole(store: Store, scope: Scope, output: Output) -> bytes:
    return store.output_bytes(scope, output.id, 0, output.size)


def ids(store: Store, scope: Scope) -> list[str]:
    return [output.id for output in store.outputs(scope, 1_000).outputs]


def log(size: int, seed: int = 0) -> bytes:
    """Text of about this size with lines of all lengths, also of characters that take several bytes."""
    dice = random.Random(seed)
    lines = []
    while size > 0:
        line = f"{dice.getrandbits(60):x} größer 記憶 {'x' * dice.choice((0, 3, 40, 900))}\n".encode()
        lines.append(line)
        size -= len(line)
    return b"".join(lines)


def naive_lines(body: bytes, first: int, last: int) -> bytes:
    parts = body.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
    return b"".join(lines[max(0, first - 1) : max(0, last)])


# --- keeping ----------------------------------------------------------------------------------------------------------


def test_an_output_comes_back_as_it_was(store: Store, scope: Scope) -> None:
    body = "first\nzweite größer\n記憶".encode()
    digest = hashlib.sha256(body).hexdigest()
    kept = store.keep_output(scope, DRAFT, body, stamp(session="s1"))
    expected = Output(
        *(digest[:12], digest, "grep", "s1", '{"q":"ü"}', len(body), 3, "text", "a preview", 2, NOON, NOON, 0)
    )
    assert kept == Kept(expected, True)
    assert store.output(scope, digest[:12]) == expected
    assert whole(store, scope, expected) == body
    assert store.outputs(scope, 10) == ((expected,), 1)
    assert store.projects(scope.tenant) == (scope.project,)
    assert everything(store, scope) == []


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"\n", b"x", b"\n\n", b"a\nb", b"a\r\nb\r\n", "größer\n".encode() * 9, b"\xff\x00\xfe" * 100),
        *(b"y" * (CHUNK - 1), b"y" * CHUNK, b"y" * (CHUNK + 1), b"y" * (CHUNK - 1) + b"\n", b"\n" * (CHUNK + 1)),
        *("ü".encode() * CHUNK, b"z" * CHUNK * 2, log(3 * CHUNK)),
        random.Random(1).randbytes(2 * CHUNK + 7),
    ],
    ids=lambda body: f"{len(body)} {body[:3]!r}",
)
def test_any_bytes_of_any_length(store: Store, scope: Scope, body: bytes) -> None:
    output = keep(store, scope, body)
    assert (output.size, output.lines) == (len(body), len(body.split(b"\n")) - (body[-1:] in (b"", b"\n")))
    assert whole(store, scope, output) == body
    assert store.output_lines(scope, output.id, 1, output.lines) == body
    for start, stop in (
        (0, 1),
        (CHUNK - 1, CHUNK + 1),
        (CHUNK, CHUNK),
        (len(body) - 2, len(body) + 9),
        (-5, 3),
        (4, 2),
    ):
        expected = body[max(0, start) : max(0, stop)] if start < stop else b""
        assert store.output_bytes(scope, output.id, start, stop) == expected
    assert store.check()[-1] == ("outputs", True, "1 outputs and 0 tombstones are as they were written")


def test_the_same_content_is_kept_once(store: Store, scope: Scope) -> None:
    first = keep(store, scope, b"same", NOON)
    other = OutputDraft("another tool", "{}", "json", "another preview", 0)
    again = store.keep_output(scope, other, b"same", stamp(NOON + 5, session="later"))
    assert again == (first._replace(used_at=NOON + 5, uses=1), False)
    late = store.keep_output(scope, other, b"same", stamp(NOON - 5))
    assert late.output == first._replace(used_at=NOON + 5, uses=2)
    assert store.output_stats(scope)[:2] == (1, 4)
    assert store.outputs(scope, 10).total == 1


def test_tenants_and_projects_keep_their_own(store: Store, store_url: str) -> None:
    scopes = [Scope("local", "p"), Scope("local", "P"), Scope("other", "p"), Scope("localp", ""), Scope("", "localp")]
    kept = [store.keep_output(scope, DRAFT, b"same", stamp()) for scope in scopes]
    assert all(new for _, new in kept)
    id = kept[0].output.id
    assert store.delete_output(scopes[0], id, stamp())
    assert store.output(scopes[0], id) is None
    assert [store.output_bytes(scope, id, 0, 9) for scope in scopes[1:]] == [b"same"] * 4
    assert [store.tombstone(scope, id) is not None for scope in scopes] == [True, False, False, False, False]
    # A row that wandered over is damage, not somebody else's output.
    raw(store_url, "UPDATE outputs SET project = 'stolen' WHERE project = 'P'")
    raw(store_url, "UPDATE output_chunks SET project = 'stolen' WHERE project = 'P'")
    with pytest.raises(errors.StoreDamaged):
        store.output_bytes(Scope("local", "stolen"), id, 0, 9)


def test_too_much_is_refused(store: Store, scope: Scope) -> None:
    with pytest.raises(errors.BadInput, match=r"67,108,865 bytes; the limit is 67,108,864") as caught:
        keep(store, scope, bytes(limits.OUTPUT_MAX_BYTES + 1))
    assert caught.value.code == "output_too_big"
    assert store.outputs(scope, 5) == ((), 0)
    assert store.projects(scope.tenant) == ()
    output = keep(store, scope, bytes(limits.OUTPUT_MAX_BYTES))
    assert store.output_bytes(scope, output.id, output.size - 3, output.size) == bytes(3)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
@pytest.mark.parametrize("field", ["tool", "call", "shape", "preview"])
def test_what_is_no_text_is_refused(store: Store, scope: Scope, field: str, text: str) -> None:
    with pytest.raises(errors.BadInput, match=f"the {field} of the output"):
        keep(store, scope, b"x", draft=DRAFT._replace(**{field: text}))  # type: ignore[arg-type]


# --- names ------------------------------------------------------------------------------------------------------------


def forge(url: str, scope: Scope, id: str, digest: str) -> None:
    """Another content under this id, as if SHA-256 had begun alike."""
    names = [name.strip() for name in FIELDS.split(",")]
    numbers = {"size", "lines", "redacted", "created_at", "used_at", "uses", "stored", "chunk"}
    fields: dict[str, object] = {name: 0 if name in numbers else "" for name in names}
    fields |= {"id": id, "digest": digest, "line_starts": "[]", "hash": b"?"}
    raw(
        url,
        f"INSERT INTO outputs (tenant, project, {FIELDS}) VALUES (?, ?{', ?' * len(names)})",
        (*scope, *(fields[name] for name in names)),
    )


def flipped(digest: str, at: int) -> str:
    """Another digest that differs from this place on."""
    return digest[:at] + ("0" if digest[at] != "0" else "1") + digest[at + 1 :]


def test_a_clash_of_ids_is_told_apart(store: Store, store_url: str, scope: Scope) -> None:
    digest = hashlib.sha256(b"mine").hexdigest()
    forge(store_url, scope, digest[:12], flipped(digest, 20))
    forge(store_url, scope, digest[:13], flipped(digest, 21))
    kept = store.keep_output(scope, DRAFT, b"mine", stamp())
    assert kept.new
    assert kept.output.id == digest[:14]
    assert whole(store, scope, kept.output) == b"mine"
    assert store.keep_output(scope, DRAFT, b"mine", stamp()).output.id == digest[:14]
    for name in (digest, digest[:14], digest[:30], digest[:30].upper()):
        assert store.output(scope, name) == store.output(scope, digest[:14])
    with pytest.raises(errors.StoreDamaged):  # the forged one, and not mine
        store.output(scope, digest[:12])
    with pytest.raises(errors.BadInput, match="more than one output") as caught:
        store.output(scope, digest[:11])
    assert caught.value.code == "ambiguous_output"


def test_an_id_is_never_given_to_another_content(store: Store, store_url: str, scope: Scope) -> None:
    """Who wrote down the id of what is gone must not be shown what begins alike."""
    digest = hashlib.sha256(b"mine").hexdigest()
    forge(store_url, scope, digest[:12], flipped(digest, 20))
    assert store.delete_output(scope, digest[:12], stamp())
    output = keep(store, scope, b"mine")
    assert output.id == digest[:13]
    assert store.output(scope, digest[:12]) is None
    assert store.tombstone(scope, digest[:12]) is not None
    assert store.output(scope, digest[:11]) == output


@pytest.mark.parametrize("name", ["", "abc", "../../etc", "g" * 12, "a" * 65, "hold://abcdefabcdef", "%" * 12, "a\0b"])
def test_what_is_no_id_names_nothing(store: Store, scope: Scope, name: str) -> None:
    keep(store, scope, b"x")
    assert store.output(scope, name) is None
    assert store.cited(scope, [name]) == frozenset()


def test_an_output_that_is_not_there(store: Store, scope: Scope) -> None:
    id = "0" * 12
    assert store.output(scope, id) is None
    assert store.tombstone(scope, id) is None
    assert not store.touch_output(scope, id, NOON)
    assert not store.delete_output(scope, id, stamp())
    assert store.clear_outputs(scope, stamp()) == 0
    assert store.prune_outputs(scope, now=NOON, max_age_ms=0, max_bytes=0) == (0, 0)
    assert store.output_stats(scope) == (0, 0, 0, None, None)
    for read in (store.output_bytes, store.output_lines):
        with pytest.raises(errors.NotFound, match="no output '000000000000'"):
            read(scope, id, 1, 2)
    assert store.projects(scope.tenant) == ()


# --- reading ----------------------------------------------------------------------------------------------------------

pieces = st.sampled_from(
    [b"\n", b"\r\n", b"a", b"line\n", "größer 記憶".encode(), b"x" * 1_000, b"\n" * 40, b"y" * 97 + b"\n"]
)
bodies = st.lists(st.tuples(pieces, st.integers(1, 400)), max_size=12).map(
    lambda parts: b"".join(piece * times for piece, times in parts)
)


@given(body=bodies, data=st.data())
@per_example
def test_slices_are_those_of_the_whole(store: Store, body: bytes, data: st.DataObject) -> None:
    scope = new_scope()
    output = keep(store, scope, body)
    for _ in range(4):
        first = data.draw(st.integers(-2, output.lines + 2))
        last = first + data.draw(st.integers(-1, 60))
        assert store.output_lines(scope, output.id, first, last) == naive_lines(body, first, last)
        start = data.draw(st.integers(0, len(body) + 2))
        stop = start + data.draw(st.integers(0, 5_000))
        assert store.output_bytes(scope, output.id, start, stop) == body[start:stop]


def test_slices_around_every_border(store: Store, scope: Scope) -> None:
    body = log(4 * CHUNK + 11, 7)
    output = keep(store, scope, body)
    for border in range(CHUNK, len(body), CHUNK):
        line = body.count(b"\n", 0, border) + 1
        for first in range(line - 3, line + 4):
            for last in range(first, first + 3):
                assert store.output_lines(scope, output.id, first, last) == naive_lines(body, first, last)
    step = 100
    pages = [store.output_lines(scope, output.id, at, at + step - 1) for at in range(1, output.lines + 1, step)]
    assert b"".join(pages) == body


def test_a_slice_reads_only_the_chunks_it_needs(store: Store, store_url: str, scope: Scope) -> None:
    body = log(5 * CHUNK)
    output = keep(store, scope, body)
    raw(store_url, "DELETE FROM output_chunks WHERE number <> 2")
    line = body.count(b"\n", 0, 2 * CHUNK) + 3
    assert store.output_lines(scope, output.id, line, line + 50) == naive_lines(body, line, line + 50)
    assert store.output_bytes(scope, output.id, 2 * CHUNK, 3 * CHUNK) == body[2 * CHUNK : 3 * CHUNK]
    with pytest.raises(errors.StoreDamaged):
        store.output_bytes(scope, output.id, 2 * CHUNK, 3 * CHUNK + 1)


def test_the_last_used_come_first(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n, NOON + n).id for n in range(5)]
    assert ids(store, scope) == kept[::-1]
    assert store.output(scope, kept[0]) is not None  # looking is no use
    assert ids(store, scope) == kept[::-1]
    assert store.touch_output(scope, kept[0], NOON + 10)
    assert store.touch_output(scope, kept[1], NOON - 10)  # a clock that went back makes nothing older
    assert ids(store, scope) == [kept[0], kept[4], kept[3], kept[2], kept[1]]
    touched = store.outputs(scope, 2)
    assert [(output.id, output.used_at, output.uses) for output in touched.outputs] == [
        (kept[0], NOON + 10, 1),
        (kept[4], NOON + 4, 0),
    ]
    assert touched.total == 5
    stats = store.output_stats(scope)
    assert stats[:2] == (5, 5)
    assert stats.stored_bytes > 0
    assert stats[3:] == (NOON, NOON + 4)


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
            store.output_bytes(scope, output.id, CHUNK + 5, CHUNK + 6)
        assert store.output_bytes(scope, output.id, 0, 99) == body[:99]
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
        lambda: store.output(scope, id),
        lambda: store.outputs(scope, 5),
        lambda: store.output_bytes(scope, id, 0, 5),
        lambda: store.output_lines(scope, id, 1, 5),
        lambda: store.touch_output(scope, id, NOON),
    ):
        with pytest.raises(errors.StoreDamaged):
            look()
    assert not store.check()[-1].ok
    assert store.delete_output(scope, id, stamp())  # and it can be got rid of
    stone = store.tombstone(scope, id)
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
    again = store.keep_output(scope, DRAFT, body, stamp(NOON + 1))
    assert again.new
    assert again.output.id == output.id == other.id
    assert whole(store, scope, output) == body
    assert store.check()[-1].ok


def test_a_damaged_tombstone_is_never_shown(store: Store, store_url: str, scope: Scope) -> None:
    output = keep(store, scope, b"x")
    store.delete_output(scope, output.id, stamp())
    raw(store_url, "UPDATE output_tombstones SET what = replace(what, 'grep', 'curl')")
    with pytest.raises(errors.StoreDamaged):
        store.tombstone(scope, output.id)
    assert not store.check()[-1].ok


# --- going ------------------------------------------------------------------------------------------------------------


def test_what_is_deleted_leaves_a_tombstone(store: Store, store_url: str, scope: Scope) -> None:
    output = keep(store, scope, b"precious")
    store.touch_output(scope, output.id, NOON + 1)
    assert store.tombstone(scope, output.id) is None
    assert store.delete_output(scope, output.id, stamp(NOON + 2, by="human/cli"))
    assert not store.delete_output(scope, output.id, stamp(NOON + 3))
    assert store.output(scope, output.id) is None
    stone = store.tombstone(scope, output.id)
    assert stone is not None
    same = {name: value for name, value in output._asdict().items() if name not in ("preview", "redacted", "uses")}
    gone = {"used_at": NOON + 1, "gone_at": NOON + 2, "why": "deleted", "by": "human/cli"}
    assert stone._asdict() == same | gone
    assert raw(store_url, "SELECT count(*) FROM output_chunks") == [(0,)]
    again = store.keep_output(scope, DRAFT, b"precious", stamp(NOON + 4))
    assert again == (output._replace(created_at=NOON + 4, used_at=NOON + 4), True)
    assert store.tombstone(scope, output.id) is None


def test_clearing_leaves_tombstones_of_all(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n) for n in range(3)]
    put(store, scope, "k", f"see {kept[0].id}")
    assert store.clear_outputs(scope, stamp(NOON + 1)) == 3
    assert store.clear_outputs(scope, stamp(NOON + 1)) == 0
    assert store.outputs(scope, 5) == ((), 0)
    stones = [store.tombstone(scope, output.id) for output in kept]
    assert [stone.why for stone in stones if stone] == ["cleared"] * 3


def test_pruning_by_age_is_by_last_use(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n, NOON + n).id for n in range(5)]
    store.touch_output(scope, kept[0], NOON + 100)
    assert store.prune_outputs(scope, now=NOON + 103, max_age_ms=102, max_bytes=None) == (0, 0)  # equal is not older
    assert store.prune_outputs(scope, now=NOON + 103, max_age_ms=100, max_bytes=None) == (2, 2)
    assert ids(store, scope) == [kept[0], kept[4], kept[3]]
    stone = store.tombstone(scope, kept[1])
    assert stone is not None
    assert (stone.why, stone.by, stone.gone_at) == ("too old", "", NOON + 103)
    assert store.prune_outputs(scope, now=NOON + 103, max_age_ms=None, max_bytes=None) == (0, 0)


def test_pruning_by_size_takes_the_least_recently_used(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n * 100, NOON + n).id for n in range(6)]
    store.touch_output(scope, kept[0], NOON + 100)
    assert store.prune_outputs(scope, now=NOON, max_age_ms=None, max_bytes=600) == (0, 0)
    assert store.prune_outputs(scope, now=NOON, max_age_ms=None, max_bytes=599) == (1, 100)
    assert store.prune_outputs(scope, now=NOON, max_age_ms=None, max_bytes=350) == (2, 200)
    assert ids(store, scope) == [kept[0], kept[5], kept[4]]
    stone = store.tombstone(scope, kept[1])
    assert stone is not None
    assert stone.why == "no room"


def test_pruning_does_a_bounded_amount_of_work(store: Store, scope: Scope) -> None:
    for n in range(10):
        keep(store, scope, b"%d" % n, NOON + n)
    done = [store.prune_outputs(scope, now=NOON + 50, max_age_ms=1, max_bytes=0, most=most) for most in (0, 4, 4, 4, 4)]
    assert [pruned.deleted for pruned in done] == [0, 4, 4, 2, 0]


def test_what_is_cited_is_never_pruned(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n, NOON + n).id for n in range(130)]
    put(store, scope, None, f"the trace is in {kept[0]}, look there")
    put(store, scope, "k", f"hold://{kept[3].upper()}#/a/b", kind=MEMORY, done=True)
    put(store, scope, kept[5], "named by its key", kind=MEMORY)
    put(store, scope, None, f"digest {hashlib.sha256(b'7').hexdigest()}, glued x{kept[9]}y and é{kept[11]}")
    put(store, new_scope(), None, f"somebody else's {kept[20]}")
    stay = {kept[n] for n in (0, 3, 5, 7, 9, 11)}
    assert store.cited(scope, kept) == stay
    assert store.cited(scope, []) == frozenset()
    for most in (1, 50, 200):
        store.prune_outputs(
            scope, now=NOON * 2, max_age_ms=1, max_bytes=0, most=most, keep=frozenset([kept[25], "another"])
        )
    assert set(ids(store, scope)) == stay | {kept[25]}
    assert store.prune_outputs(scope, now=NOON * 2, max_age_ms=1, max_bytes=0).deleted == 1
    store.edit(scope, MEMORY, "k", always(Draft("no more")), stamp())
    assert store.prune_outputs(scope, now=NOON * 2, max_age_ms=1, max_bytes=0).deleted == 1
    assert set(ids(store, scope)) == stay - {kept[3]}


# --- many at once, and stores of old ----------------------------------------------------------------------------------


def test_many_keep_the_same_at_once(store: Store, scope: Scope) -> None:
    body = log(3 * CHUNK)
    kept = at_once(lambda number: store.keep_output(scope, DRAFT, body, stamp(NOON + number)))
    assert all(isinstance(one, Kept) for one in kept)
    assert [one.new for one in kept if isinstance(one, Kept)].count(True) == 1
    (output,) = store.outputs(scope, 9).outputs
    assert output.uses == 7
    assert whole(store, scope, output) == body
    assert store.check()[-1].ok


def test_keeping_reading_and_deleting_at_once(store: Store, scope: Scope) -> None:
    texts = [log(CHUNK + n, n) for n in range(4)]

    def work(number: int) -> None:
        dice = random.Random(number)
        for _ in range(12):
            body = dice.choice(texts)
            output = keep(store, scope, body, NOON + dice.randrange(99))
            try:
                assert whole(store, scope, output) == body
            except errors.NotFound:
                continue  # somebody deleted it in between
            if dice.random() < 0.3:
                store.delete_output(scope, output.id, stamp())
            elif dice.random() < 0.3:
                store.prune_outputs(scope, now=NOON, max_age_ms=None, max_bytes=2 * CHUNK, most=2)

    at_once(work)
    assert all(finding.ok for finding in store.check()), store.check()


def test_outputs_and_entries_share_a_project(store: Store, scope: Scope) -> None:
    keep(store, scope, b"x", NOON)
    assert put(store, scope, None, "note", now=NOON, session="").entry.key == f"note_{NOON}"
    with pytest.raises(errors.Conflict):
        store.load(scope, [], [])


def first_schema(url: str, scope: Scope) -> None:
    """A store as the first version made it, with an entry in it."""
    row = rows.to_row(scope, note("k", "written long ago", NOON))
    if url.startswith("postgresql://"):
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(postgres_schema.migration(1))
        raw(url, "INSERT INTO holdfast_schema (version) VALUES (1)")
        found = "'written long ago', array_to_tsvector(ARRAY['written', 'long', 'ago'])"
        entry = f"INSERT INTO entries VALUES (?{', ?' * 14}, {found})"
        raw(url, entry, (*row[:7], bool(row[7]), bool(row[8]), *row[9:]))
    else:
        raw(url, f"{sqlite_file.migration(1)}; PRAGMA user_version = 1; PRAGMA journal_mode = WAL")
        raw(url, f"PRAGMA application_id = {sqlite_file.APPLICATION_ID}")
        raw(url, f"INSERT INTO entries VALUES (?{', ?' * 14})", row)
        raw(url, "INSERT INTO terms (rowid, text) VALUES (1, 'written long ago')")
    raw(url, "INSERT INTO projects VALUES (?, ?, 0, ?)", (*scope, NOON))


def test_a_store_of_the_first_schema_is_brought_up_to_date(store_url: str, scope: Scope) -> None:
    first_schema(store_url, scope)
    store = choose_store(store_url)
    entry = store.read(scope, NOTE, "k")
    assert entry is not None
    assert entry.content == "written long ago"
    assert store.output_stats(scope).entries == 0
    output = keep(store, scope, b"x")
    put(store, scope, "k", f"now it cites {output.id}")
    assert store.check()[-1].ok
    store.close()
    again = choose_store(store_url)  # and now there is nothing left to do
    assert whole(again, scope, output) == b"x"
    assert all(finding.ok for finding in again.check()), again.check()
    again.close()


def test_many_bring_a_store_up_to_date_at_once(store_url: str, scope: Scope) -> None:
    first_schema(store_url, scope)

    def work(number: int) -> None:
        store = choose_store(store_url)
        assert whole(store, scope, keep(store, scope, b"%d" % number)) == b"%d" % number
        store.close()

    at_once(work)


def test_an_update_does_not_touch_tables_of_others(postgres_url: str) -> None:
    first_schema(postgres_url, new_scope())
    raw(postgres_url, "CREATE TABLE outputs (theirs text)")
    with pytest.raises(errors.NotAStore, match='"outputs" already exists'):
        choose_store(postgres_url)
    assert raw(postgres_url, "SELECT version FROM holdfast_schema") == [(1,)]


def test_a_backup_has_the_outputs(tmp_path: Path, scope: Scope) -> None:
    store = choose_store(str(tmp_path / "one.db"))
    output = keep(store, scope, log(2 * CHUNK))
    store.backup(str(tmp_path / "two.db"))
    copy = choose_store(str(tmp_path / "two.db"))
    assert whole(copy, scope, output) == whole(store, scope, output)
    store.close()
    copy.close()


def test_who_keeps_no_output_does_not_load_the_compressor(tmp_path: Path) -> None:
    script = (
        "import sys; from holdfast.stores.sqlite import SqliteStore; SqliteStore(sys.argv[1]).close(); "
        "sys.exit(any(name.endswith('zstd') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "x.db")], check=False).returncode == 0
