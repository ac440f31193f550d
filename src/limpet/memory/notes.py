"""Notes: short tagged texts that an agent writes down in a session and finds again."""

from __future__ import annotations

from collections.abc import Sequence

from limpet import errors, limits
from limpet.catalogue.ids import short_id, short_ids
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Caller, Context, Json, bounded, trust_json
from limpet.light import TYPE_CHECKING, Any
from limpet.memory import validity
from limpet.memory.gate import note_remark
from limpet.model import (
    NOTE,
    Change,
    Draft,
    Entry,
    EntryName,
    Note,
    TagCount,
    Tally,
    Validity,
    as_note,
    epoch_ms,
    iso,
)
from limpet.recall.duplicates import Twin, twin, twin_json, twin_text
from limpet.record import NamedTuple
from limpet.store import DELETE, Delete, Edit, Listing, Words
from limpet.text import brief
from limpet.text.words import cut, fold, words

if TYPE_CHECKING:
    from limpet.memory import anchors as anchoring
    from limpet.memory import corrections
    from limpet.recall import recall
else:
    corrections = LateModule("memory.corrections")  # of what is written or searched
    recall = LateModule("recall.recall")  # a search needs it, a write does not
    anchoring = LateModule("memory.anchors")  # most notes cite nothing


class WrittenNote(NamedTuple):
    note: Note
    tally: Tally
    twin: Twin | None = None  # another note that says the same
    corrects: EntryName | None = None  # what it seems to correct, which is not hidden
    remark: str = ""
    unchanged: bool = False  # it was as it was to be already


class NoteMatches(NamedTuple):
    notes: tuple[Note, ...]
    related: tuple[Note, ...]
    total: int  # of those that match, shown or not
    more: bool  # whether there may be more than these
    query: str
    tags: tuple[str, ...]
    session: str  # that asks; notes of another session name it
    now: int  # when it was asked

    @property
    def left_out(self) -> int:
        return self.total - len(self.notes)


class NoteList(NamedTuple):
    notes: tuple[Note, ...]
    left_out: int
    more: bool  # whether more may be left out than these
    tag: str | None
    session: str
    now: int


class Tags(NamedTuple):
    tags: tuple[TagCount, ...]
    total_notes: int


def add_note(
    ctx: Context,
    content: str,
    tags: Sequence[str] = (),
    replaces: str | None = None,
    expires: str | None = None,
    anchors: Sequence[str] = (),
    operation: str = "add_note",
) -> WrittenNote:
    text, labels = checked(ctx, content), clean_tags(tags, ctx.bounds.note_max_tags)
    old = None if replaces is None else validity.to_replace(ctx, NOTE, replaces)
    holds = Validity(old, None, *_limits(ctx, expires, anchors))
    duplicate = twin(ctx, NOTE, content)
    repeated = _same_note(ctx, duplicate, text, labels, holds)
    if repeated is not None and ctx.retry is None and (old is None or old == (NOTE, repeated.key)):
        return WrittenNote(as_note(repeated), _tally(ctx), duplicate)
    draft = Draft(text, ctx.session, labels, extra=holds.into({}))

    def decide(before: Entry | None) -> Draft:
        return draft if before is None else before.revised(extra=_successor(before, holds))

    edits: list[Edit] = [(NOTE, None if repeated is None else repeated.key, decide)]
    if old is not None:
        edits.append((*old, validity.retiring(ctx, old)))
    stamp = ctx.stamp(operation, validity.detail(old))
    change = ctx.store.entries.edit_all(ctx.scope, edits, stamp)[0]
    if change.replayed:
        return WrittenNote(as_note(change.entry), change.tally)
    corrected = None if old is not None else corrections.proposed(ctx, NOTE, text, change.entry.key)
    same = duplicate if duplicate is None or old is None or duplicate.key not in (old.key, change.entry.key) else None
    return WrittenNote(as_note(change.entry), _tally(ctx), same, corrected, note_remark(text))


def _limits(ctx: Context, expires: str | None, anchors: Sequence[str]) -> tuple[int | None, tuple[Any, ...]]:
    """When an entry expires and what it cites, as its writer says."""
    at = None if expires is None else validity.expiry(expires, ctx.now)
    return at, anchoring.cited(ctx, anchors) if anchors else ()


def _same_note(ctx: Context, duplicate: Twin | None, text: str, tags: tuple[str, ...], holds: Validity) -> Entry | None:
    """The note of this session that says exactly the same: a repeated call adds no second one."""
    if duplicate is None or not duplicate.exact:
        return None
    entry = ctx.store.entries.read(ctx.scope, NOTE, duplicate.key)
    if entry is None or entry.session != ctx.session or entry.done or entry.content != ctx.masked(text):
        return None
    own = Validity.of(entry.extra)
    same = set(map(fold, entry.tags)) == set(map(fold, tags)) and own.expires_at == holds.expires_at
    return entry if same and [item.place for item in own.anchors] == [item.place for item in holds.anchors] else None


def _successor(before: Entry, holds: Validity) -> dict[str, Any]:
    """A note that was written before, and now says what it replaces."""
    return dict(Validity.of(before.extra)._replace(replaces=holds.replaces).into(before.extra))


def _tally(ctx: Context) -> Tally:
    """Of all open notes of the project."""
    return ctx.store.entries.tally(ctx.scope, NOTE, "", ctx.now)


def update_note(
    ctx: Context,
    id: str,
    content: str | None = None,
    tags: Sequence[str] | None = None,
    done: bool | None = None,
    expires: str | None = None,
    anchors: Sequence[str] | None = None,
    expected_version: int | None = None,
) -> WrittenNote:
    if all(value is None for value in (content, tags, done, expires, anchors)):
        raise errors.nothing_to_update("update_note", "content, tags, done, expires or anchors")
    if content is not None:
        checked(ctx, content)
    cleaned = None if tags is None else clean_tags(tags, ctx.bounds.note_max_tags)
    expires_at, places = _limits(ctx, expires, anchors or ())

    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise errors.no_note(id)
        if expected_version is not None and expected_version != before.version:
            raise errors.version_moved(f"note {id}", expected_version, before.version)
        holds = Validity.of(before.extra)
        holds = holds if expires is None else holds._replace(expires_at=expires_at)
        holds = holds if anchors is None else holds._replace(anchors=places)
        holds = holds if done is not False else holds._replace(replaced_by=None)  # reopened: it holds again
        return Draft(
            before.content if content is None else content,
            before.session,
            before.tags if cleaned is None else cleaned,
            before.done if done is None else done,
            before.pinned,
            holds.into(before.extra),
        )

    change = ctx.store.entries.edit(ctx.scope, NOTE, id, decide, ctx.stamp("update_note"))
    return _answer(ctx, change)


def _answer(ctx: Context, change: Change) -> WrittenNote:
    tally = change.tally if change.replayed else _tally(ctx)
    return WrittenNote(as_note(change.entry), tally, unchanged=not change.seq)


def delete_note(ctx: Context, id: str, expected_version: int | None = None) -> WrittenNote:
    def decide(before: Entry | None) -> Delete:
        if before is None:
            raise errors.no_note(id)
        if expected_version is not None and expected_version != before.version:
            raise errors.version_moved(f"note {id}", expected_version, before.version)
        return DELETE

    return _answer(ctx, ctx.store.entries.edit(ctx.scope, NOTE, id, decide, ctx.stamp("delete_note")))


def list_notes(
    ctx: Context,
    tag: str | None = None,
    include_done: bool = False,
    limit: int = limits.NOTES_SHOWN,
    this_session: bool = False,
    tags_any: Sequence[str] = (),
    include_replaced: bool = False,
) -> NoteList:
    """Notes of every session of the project, or of this one alone."""
    tags = () if tag is None else tuple(map(fold, clean_tags((tag,), 1)))
    which = Listing((NOTE,), _looked_in(ctx, this_session), tags, include_done, limit, _any_of(tags_any))
    page = ctx.store.entries.list(ctx.scope, which._replace(include_replaced=include_replaced, now=ctx.now))
    notes = tuple(map(as_note, page.entries))
    return NoteList(notes, page.total - len(notes), page.more, tag, ctx.session, ctx.now)


def search_notes(
    ctx: Context,
    query: str = "",
    tags: Sequence[str] = (),
    include_done: bool = False,
    limit: int = limits.NOTES_SHOWN,
    this_session: bool = False,
    tags_any: Sequence[str] = (),
    include_replaced: bool = False,
) -> NoteMatches:
    """Notes with every word of the query, then those that contain it inside words, then those with the words by stem
    or tag; where there are none, what recall relates to it."""
    bounded("query", query, limits.QUERY_MAX_CHARS, "Ask for the few words that matter.")
    clean = clean_tags(tags, ctx.bounds.note_max_tags)
    listing = Listing((NOTE,), _looked_in(ctx, this_session), tuple(map(fold, clean)), include_done, limit)
    listing = listing._replace(tags_any=_any_of(tags_any), include_replaced=include_replaced, now=ctx.now)
    if not query.strip():
        page = ctx.store.entries.list(ctx.scope, listing)
        return NoteMatches(
            tuple(map(as_note, page.entries)), (), page.total, page.more, query, clean, ctx.session, ctx.now
        )
    every = Words(tuple((word,) for word in dict.fromkeys(cut(words(fold(query))))))
    page = ctx.store.entries.containing(ctx.scope, listing, query.strip(), every)
    notes = corrections.newest_first(page.entries, query)
    # Beside notes with every word, looser ones would distract.
    related = [] if notes else _related(ctx, query, listing)[: min(limits.RELATED_SHOWN, limit)]
    matches, others = tuple(map(as_note, notes)), tuple(map(as_note, related))
    return NoteMatches(matches, others, page.total, page.more, query, clean, ctx.session, ctx.now)


def _related(ctx: Context, query: str, listing: Listing) -> list[Entry]:
    related = recall.related(
        ctx,
        query,
        NOTE,
        tags=listing.tags,
        tags_any=listing.tags_any,
        include_done=listing.include_done,
        include_replaced=listing.include_replaced,
    )
    return related if listing.session is None else [entry for entry in related if entry.session == ctx.session]


def _any_of(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(fold, clean_tags(tags, limits.LIST_MAX)))


def _looked_in(ctx: Context, this_session: bool) -> str | None:
    return ctx.one_session() if this_session else None


def list_tags(ctx: Context, this_session: bool = False) -> Tags:
    session = _looked_in(ctx, this_session) or ""  # the store counts all of the project under the empty session
    counts = ctx.store.entries.tags(ctx.scope, NOTE, session, ctx.now)
    return Tags(counts, ctx.store.entries.tally(ctx.scope, NOTE, session, ctx.now).total)


def clean_tags(tags: Sequence[str], most: int) -> tuple[str, ...]:
    """Trimmed, each once (the first spelling wins), none blank."""
    by_folded: dict[str, str] = {}
    for position, tag in enumerate(tags, 1):
        name = " ".join(tag.split())
        if not name:
            raise errors.blank_tag(position)
        if len(name) > limits.TAG_MAX_CHARS:
            raise errors.too_long(f"tag {position}", len(name), limits.TAG_MAX_CHARS, "Use a word or two.")
        by_folded.setdefault(fold(name), name)
    if len(by_folded) > most:
        raise errors.too_many_tags(len(by_folded), most)
    return tuple(by_folded.values())


def checked(ctx: Context, content: str) -> str:
    return bounded(
        "note content",
        content,
        ctx.bounds.note_max_chars,
        "Split it into several notes, or write the long part to the notepad.",
        blank="Write down what is worth keeping.",
    )


# --- answers ----------------------------------------------------------------------------------------------------------


def note_json(note: Note, session: str | None = None, now: int = 0) -> Json:
    record: Json = {"id": note.id, "content": note.content, "tags": list(note.tags)}
    if note.done and note.validity.replaced_by is None:
        record["done"] = True
    if session is not None and note.session != session:
        record["session"] = note.session
    record |= {"created_at": iso(note.created_at), "updated_at": iso(note.updated_at), "version": note.version}
    return record | validity.validity_json(note.validity, now) | trust_json(note.origin)


def written_json(value: WrittenNote) -> Json:
    answer: Json = {"note_id": value.note.id, "total_notes": value.tally.total, "total_tags": value.tally.tags}
    answer |= twin_json(value.twin) | corrections.proposal_json(value.corrects, value.note.validity.replaces)
    return answer | ({"remark": value.remark} if value.remark else {})


def updated_json(value: WrittenNote) -> Json:
    return written_json(value) | {"note": note_json(value.note)}


def search_json(value: NoteMatches) -> Json:
    answer: Json = {
        "notes": [note_json(note, value.session, value.now) for note in value.notes],
        "result_count": value.total,
        "query": value.query,
        "tags": list(value.tags),
    }
    if value.more:
        answer["more"] = True
    if value.left_out:
        answer["left_out"] = value.left_out
    if value.related:
        answer["related"] = [note_json(note, value.session, value.now) for note in value.related]
    return answer


def note_lines(ctx: Context, notes: Sequence[Note]) -> tuple[list[str], str]:
    """A line per note, and what is the same of all, for the closing line."""
    ids = short_ids(ctx, NOTE, (note.id for note in notes))
    ages, of_all = brief.ages((epoch_ms(note.updated_at) for note in notes), ctx.now)
    lines = [_note_line(ctx, ids[note.id], age, note) for note, age in zip(notes, ages, strict=True)]
    return lines, of_all


def _note_line(ctx: Context, id: str, age: str, note: Note) -> str:
    state = validity.state_of(ctx, note.validity) or ("done" if note.done else "")
    head = (id, age, state, brief.tagged(note.tags))
    return brief.item(head, note.content, note.origin)


def written_text(ctx: Context, value: WrittenNote) -> str:
    id = short_id(ctx, NOTE, value.note.id)
    proposal = corrections.proposal_text(ctx, value.corrects, value.note.validity.replaces)
    done = f"{id} kept; {_totals(value)}."
    return brief.lines((done, twin_text(ctx, value.twin, NOTE), proposal, value.remark))


def updated_text(ctx: Context, value: WrittenNote) -> str:
    lines, _ = note_lines(ctx, (value.note,))
    done = "Nothing to change, it was so already" if value.unchanged else "Changed"
    return brief.lines(lines, f"{done}; {_totals(value)}.")


def deleted_text(ctx: Context, value: WrittenNote) -> str:
    return f"{short_id(ctx, NOTE, value.note.id)} deleted; {_totals(value)}."


def _totals(value: WrittenNote) -> str:
    return f"{brief.counted(value.tally.total, 'note')}, {brief.counted(value.tally.tags, 'tag')}"


def search_text(ctx: Context, value: NoteMatches) -> str:
    lines, of_all = note_lines(ctx, (*value.notes, *value.related))
    if value.related:
        lines.insert(len(value.notes), "related:")
    closing = f"{brief.counted(value.total, 'note')}{' or more' if value.more else ''}"
    if not value.total:
        closing = "No note has these words; recall looks into all that is kept" if value.query.strip() else "No notes"
    if value.left_out:
        closing += f", {value.left_out:,} not shown: narrow the query or raise limit"
    return brief.lines(lines, f"{closing}{of_all}.")


def list_text(ctx: Context, value: NoteList) -> str:
    closing = brief.counted(len(value.notes) + value.left_out, "note") if value.notes else "No notes"
    closing += " or more" if value.more else ""
    if value.left_out:
        closing += f", {value.left_out:,} not shown: raise limit"
    lines, of_all = note_lines(ctx, value.notes)
    return brief.lines(lines, f"{closing}{of_all}.")


def tags_text(_ctx: Context, value: Tags) -> str:
    tags = ", ".join(f"{item.tag} {item.notes}" for item in value.tags)
    return brief.lines((tags,), f"{brief.counted(len(value.tags), 'tag')}, {brief.counted(value.total_notes, 'note')}.")


def list_json(value: NoteList) -> Json:
    answer: Json = {
        "notes": [note_json(note, value.session, value.now) for note in value.notes],
        "note_count": len(value.notes),
        "tag_filter": value.tag,
    }
    answer |= {"left_out": value.left_out} if value.left_out else {}
    return answer | ({"more": True} if value.more else {})


def tags_json(value: Tags) -> Json:
    return {
        "tags": [{"tag": item.tag, "count": item.notes} for item in value.tags],
        "tag_count": len(value.tags),
        "total_notes": value.total_notes,
    }


class SessionNotes:
    """`session.notes`. Notes are looked for in every session; with `this_session=True` in this one alone."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def add(self, content: str, tags: Sequence[str] = (), **options: Any) -> Note:
        """Options: replaces=, expires=, anchors= and idempotency_key=. `corrects` of the answer is for `replaces`."""
        written = self._session.do(add_note, content=content, tags=tags, **options)
        return written.note._replace(corrects=written.corrects.key if written.corrects else "")

    def search(self, query: str = "", tags: Sequence[str] = (), **options: Any) -> NoteMatches:
        return self._session.do(search_notes, query=query, tags=tags, **options)

    def list(self, tag: str | None = None, **options: Any) -> tuple[Note, ...]:
        return self._session.do(list_notes, tag=tag, **options).notes

    def update(
        self,
        id: str,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        done: bool | None = None,
        **options: Any,
    ) -> Note:
        """Options: expires=, anchors=, expected_version= and idempotency_key=."""
        return self._session.do(update_note, id=id, content=content, tags=tags, done=done, **options).note

    def delete(self, id: str, **options: Any) -> Note:
        """Options: expected_version= and idempotency_key=."""
        return self._session.do(delete_note, id=id, **options).note

    def tags(self, **options: Any) -> tuple[TagCount, ...]:
        return self._session.do(list_tags, **options).tags
