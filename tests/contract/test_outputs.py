"""Outputs: kept once and whole, under a name of their own, and read in parts."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.kit import NOON, everything, new_scope, per_example, raw, stamp
from contract.outputs_kit import CHUNK, DRAFT, ids, keep, log, naive_lines, whole
from limpet import errors, limits
from limpet.model import Output, OutputDraft, Scope
from limpet.store import Store, StoredOutput
from limpet.stores.shared.chunks import FIELDS

# --- keeping ----------------------------------------------------------------------------------------------------------


def test_an_output_comes_back_as_it_was(store: Store, scope: Scope) -> None:
    body = "first\nzweite größer\n記憶".encode()
    digest = hashlib.sha256(body).hexdigest()
    kept = store.outputs.keep(scope, DRAFT, body, stamp(session="s1"))
    expected = Output(
        *(digest[:12], digest, "grep", "s1", '{"q":"ü"}', len(body), 3, "text", "a preview", 2, NOON, NOON, 0)
    )
    assert kept == StoredOutput(expected, True)
    assert store.outputs.find(scope, digest[:12]) == expected
    assert whole(store, scope, expected) == body
    assert store.outputs.list(scope, 10) == ((expected,), 1)
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
    assert store.outputs.read_lines(scope, output.id, 1, output.lines) == body
    for start, stop in (
        (0, 1),
        (CHUNK - 1, CHUNK + 1),
        (CHUNK, CHUNK),
        (len(body) - 2, len(body) + 9),
        (-5, 3),
        (4, 2),
    ):
        expected = body[max(0, start) : max(0, stop)] if start < stop else b""
        assert store.outputs.read_bytes(scope, output.id, start, stop) == expected
    assert store.check()[-1] == ("outputs", True, "1 outputs and 0 tombstones are as they were written")


def test_the_same_content_is_kept_once(store: Store, scope: Scope) -> None:
    first = keep(store, scope, b"same", NOON)
    other = OutputDraft("another tool", "{}", "json", "another preview", 0)
    again = store.outputs.keep(scope, other, b"same", stamp(NOON + 5, session="later"))
    assert again == (first._replace(used_at=NOON + 5, uses=1), False)
    late = store.outputs.keep(scope, other, b"same", stamp(NOON - 5))
    assert late.output == first._replace(used_at=NOON + 5, uses=2)
    assert store.outputs.stats(scope)[:2] == (1, 4)
    assert store.outputs.list(scope, 10).total == 1


def test_tenants_and_projects_keep_their_own(store: Store, store_url: str) -> None:
    scopes = [Scope("local", "p"), Scope("local", "P"), Scope("other", "p"), Scope("localp", ""), Scope("", "localp")]
    kept = [store.outputs.keep(scope, DRAFT, b"same", stamp()) for scope in scopes]
    assert all(new for _, new in kept)
    id = kept[0].output.id
    assert store.outputs.delete(scopes[0], id, stamp())
    assert store.outputs.find(scopes[0], id) is None
    assert [store.outputs.read_bytes(scope, id, 0, 9) for scope in scopes[1:]] == [b"same"] * 4
    assert [store.outputs.tombstone(scope, id) is not None for scope in scopes] == [True, False, False, False, False]
    # A row that wandered over is damage, not somebody else's output.
    raw(store_url, "UPDATE outputs SET project = 'stolen' WHERE project = 'P'")
    raw(store_url, "UPDATE output_chunks SET project = 'stolen' WHERE project = 'P'")
    with pytest.raises(errors.StoreDamaged):
        store.outputs.read_bytes(Scope("local", "stolen"), id, 0, 9)


def test_too_much_is_refused(store: Store, scope: Scope) -> None:
    with pytest.raises(errors.BadInput, match=r"67,108,865 bytes; the limit is 67,108,864") as caught:
        keep(store, scope, bytes(limits.OUTPUT_MAX_BYTES + 1))
    assert caught.value.code == "output_too_big"
    assert store.outputs.list(scope, 5) == ((), 0)
    assert store.projects(scope.tenant) == ()
    output = keep(store, scope, bytes(limits.OUTPUT_MAX_BYTES))
    assert store.outputs.read_bytes(scope, output.id, output.size - 3, output.size) == bytes(3)


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
    kept = store.outputs.keep(scope, DRAFT, b"mine", stamp())
    assert kept.new
    assert kept.output.id == digest[:14]
    assert whole(store, scope, kept.output) == b"mine"
    assert store.outputs.keep(scope, DRAFT, b"mine", stamp()).output.id == digest[:14]
    for name in (digest, digest[:14], digest[:30], digest[:30].upper()):
        assert store.outputs.find(scope, name) == store.outputs.find(scope, digest[:14])
    with pytest.raises(errors.StoreDamaged):  # the forged one, and not mine
        store.outputs.find(scope, digest[:12])
    with pytest.raises(errors.BadInput, match="more than one output") as caught:
        store.outputs.find(scope, digest[:11])
    assert caught.value.code == "ambiguous_output"


def test_an_id_is_never_given_to_another_content(store: Store, store_url: str, scope: Scope) -> None:
    """Who wrote down the id of what is gone must not be shown what begins alike."""
    digest = hashlib.sha256(b"mine").hexdigest()
    forge(store_url, scope, digest[:12], flipped(digest, 20))
    assert store.outputs.delete(scope, digest[:12], stamp())
    output = keep(store, scope, b"mine")
    assert output.id == digest[:13]
    assert store.outputs.find(scope, digest[:12]) is None
    assert store.outputs.tombstone(scope, digest[:12]) is not None
    assert store.outputs.find(scope, digest[:11]) == output


@pytest.mark.parametrize("name", ["", "abc", "../../etc", "g" * 12, "a" * 65, "hold://abcdefabcdef", "%" * 12, "a\0b"])
def test_what_is_no_id_names_nothing(store: Store, scope: Scope, name: str) -> None:
    keep(store, scope, b"x")
    assert store.outputs.find(scope, name) is None
    assert store.outputs.cited(scope, [name]) == frozenset()


def test_an_output_that_is_not_there(store: Store, scope: Scope) -> None:
    id = "0" * 12
    assert store.outputs.find(scope, id) is None
    assert store.outputs.tombstone(scope, id) is None
    assert not store.outputs.touch(scope, id, NOON)
    assert not store.outputs.delete(scope, id, stamp())
    assert store.outputs.clear(scope, stamp()) == 0
    assert store.outputs.prune(scope, now=NOON, max_age_ms=0, max_bytes=0) == (0, 0)
    assert store.outputs.stats(scope) == (0, 0, 0, None, None)
    for read in (store.outputs.read_bytes, store.outputs.read_lines):
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
        assert store.outputs.read_lines(scope, output.id, first, last) == naive_lines(body, first, last)
        start = data.draw(st.integers(0, len(body) + 2))
        stop = start + data.draw(st.integers(0, 5_000))
        assert store.outputs.read_bytes(scope, output.id, start, stop) == body[start:stop]


def test_slices_around_every_border(store: Store, scope: Scope) -> None:
    body = log(4 * CHUNK + 11, 7)
    output = keep(store, scope, body)
    for border in range(CHUNK, len(body), CHUNK):
        line = body.count(b"\n", 0, border) + 1
        for first in range(line - 3, line + 4):
            for last in range(first, first + 3):
                assert store.outputs.read_lines(scope, output.id, first, last) == naive_lines(body, first, last)
    step = 100
    pages = [store.outputs.read_lines(scope, output.id, at, at + step - 1) for at in range(1, output.lines + 1, step)]
    assert b"".join(pages) == body


def test_a_slice_reads_only_the_chunks_it_needs(store: Store, store_url: str, scope: Scope) -> None:
    body = log(5 * CHUNK)
    output = keep(store, scope, body)
    raw(store_url, "DELETE FROM output_chunks WHERE number <> 2")
    line = body.count(b"\n", 0, 2 * CHUNK) + 3
    assert store.outputs.read_lines(scope, output.id, line, line + 50) == naive_lines(body, line, line + 50)
    assert store.outputs.read_bytes(scope, output.id, 2 * CHUNK, 3 * CHUNK) == body[2 * CHUNK : 3 * CHUNK]
    with pytest.raises(errors.StoreDamaged):
        store.outputs.read_bytes(scope, output.id, 2 * CHUNK, 3 * CHUNK + 1)


def test_the_last_used_come_first(store: Store, scope: Scope) -> None:
    kept = [keep(store, scope, b"%d" % n, NOON + n).id for n in range(5)]
    assert ids(store, scope) == kept[::-1]
    assert store.outputs.find(scope, kept[0]) is not None  # looking is no use
    assert ids(store, scope) == kept[::-1]
    assert store.outputs.touch(scope, kept[0], NOON + 10)
    assert store.outputs.touch(scope, kept[1], NOON - 10)  # a clock that went back makes nothing older
    assert ids(store, scope) == [kept[0], kept[4], kept[3], kept[2], kept[1]]
    touched = store.outputs.list(scope, 2)
    assert [(output.id, output.used_at, output.uses) for output in touched.outputs] == [
        (kept[0], NOON + 10, 1),
        (kept[4], NOON + 4, 0),
    ]
    assert touched.total == 5
    stats = store.outputs.stats(scope)
    assert stats[:2] == (5, 5)
    assert stats.stored_bytes > 0
    assert stats[3:] == (NOON, NOON + 4)
