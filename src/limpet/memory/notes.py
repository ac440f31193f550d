"""Notes: short tagged texts that an agent writes down in a session and finds again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from limpet import errors, limits
from limpet.catalogue.ids import short_id, short_ids
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Caller, Context, Json, bounded, trust_json
from limpet.model import NOTE, Draft, Entry, Note, TagCount, Tally, as_note, epoch_ms, iso
from limpet.recall.duplicates import Twin, twin, twin_json, twin_text
from limpet.record import NamedTuple
from limpet.store import DELETE, Delete, Listing, Words
from limpet.text import brief
from limpet.text.words import fold, words

if TYPE_CHECKING:
    from limpet.recall import recall
else:
    recall = LateModule("recall.recall")  # a search needs it, a write does not


class WrittenNote(NamedTuple):
    note: Note
    tally: Tally
    twin: Twin | None = None  # another note that says the same


class NoteMatches(NamedTuple):
    notes: tuple[Note, ...]
    related: tuple[Note, ...]
    total: int  # of those that match, shown or not
    query: str
    tags: tuple[str, ...]
    session: str  # that asks; notes of another session name it

    @property
    def left_out(self) -> int:
        return min(self.total, limits.NOTES_COUNTED) - len(self.notes)


class NoteList(NamedTuple):
    notes: tuple[Note, ...]
    left_out: int
    tag: str | None
    session: str


class Tags(NamedTuple):
    tags: tuple[TagCount, ...]
    total_notes: int


def add_note(ctx: Context, content: str, tags: Sequence[str] = (), operation: str = "add_note") -> WrittenNote:
    draft = Draft(checked(ctx, content), ctx.session, clean_tags(tags, ctx.bounds.note_max_tags))
    duplicate = twin(ctx, NOTE, content)
    change = ctx.store.entries.edit(ctx.scope, NOTE, None, lambda before: draft, ctx.stamp(operation))
    return WrittenNote(as_note(change.entry), _tally(ctx), duplicate)


def _tally(ctx: Context) -> Tally:
    """Of all open notes of the project."""
    return ctx.store.entries.tally(ctx.scope, NOTE, "")


def update_note(
    ctx: Context, id: str, content: str | None = None, tags: Sequence[str] | None = None, done: bool | None = None
) -> WrittenNote:
    if content is None and tags is None and done is None:
        raise errors.nothing_to_update("update_note", "content, tags or done")
    if content is not None:
        checked(ctx, content)
    cleaned = None if tags is None else clean_tags(tags, ctx.bounds.note_max_tags)

    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise errors.no_note(id)
        return Draft(
            before.content if content is None else content,
            before.session,
            before.tags if cleaned is None else cleaned,
            before.done if done is None else done,
            before.pinned,
            before.extra,
        )

    change = ctx.store.entries.edit(ctx.scope, NOTE, id, decide, ctx.stamp("update_note"))
    return WrittenNote(as_note(change.entry), _tally(ctx))


def delete_note(ctx: Context, id: str) -> WrittenNote:
    def decide(before: Entry | None) -> Delete:
        if before is None:
            raise errors.no_note(id)
        return DELETE

    change = ctx.store.entries.edit(ctx.scope, NOTE, id, decide, ctx.stamp("delete_note"))
    return WrittenNote(as_note(change.entry), _tally(ctx))


def list_notes(
    ctx: Context,
    tag: str | None = None,
    include_done: bool = False,
    limit: int = limits.NOTES_SHOWN,
    this_session: bool = False,
) -> NoteList:
    """Notes of every session of the project, or of this one alone."""
    tags = () if tag is None else tuple(map(fold, clean_tags((tag,), 1)))
    page = ctx.store.entries.list(ctx.scope, Listing((NOTE,), _looked_in(ctx, this_session), tags, include_done, limit))
    return NoteList(tuple(map(as_note, page.entries)), page.total - len(page.entries), tag, ctx.session)


def search_notes(
    ctx: Context,
    query: str = "",
    tags: Sequence[str] = (),
    include_done: bool = False,
    limit: int = limits.NOTES_SHOWN,
    this_session: bool = False,
) -> NoteMatches:
    """Notes that contain the query literally, then those with every word of it, then what recall relates to it."""
    bounded("query", query, limits.QUERY_MAX_CHARS, "Ask for the few words that matter.")
    clean = clean_tags(tags, ctx.bounds.note_max_tags)
    listing = Listing((NOTE,), _looked_in(ctx, this_session), tuple(map(fold, clean)), include_done, limit)
    if not query.strip():
        page = ctx.store.entries.list(ctx.scope, listing)
        return NoteMatches(tuple(map(as_note, page.entries)), (), page.total, query, clean, ctx.session)
    page = ctx.store.entries.containing(ctx.scope, listing, query.strip())
    more = _with_every_word(ctx, query, listing, page.total)
    notes = [*page.entries, *more][:limit]
    room = min(limits.RELATED_SHOWN, limit - len(notes))
    related: list[Entry] = []
    if room and len(notes) < limits.RELATED_SHOWN:  # with more hits it would distract
        besides = frozenset(entry.key for entry in notes)
        related = recall.related(ctx, query, NOTE, tags=listing.tags, include_done=include_done, besides=besides)
        if this_session:
            related = [entry for entry in related if entry.session == ctx.session]
    total = page.total + len(more)
    matches, others = tuple(map(as_note, notes)), tuple(map(as_note, related[:room]))
    return NoteMatches(matches, others, total, query, clean, ctx.session)


def _looked_in(ctx: Context, this_session: bool) -> str | None:
    return ctx.one_session() if this_session else None


def _with_every_word(ctx: Context, query: str, listing: Listing, exact: int) -> list[Entry]:
    """The newest notes with all the words of the query that do not contain it literally. They are counted, so all of
    them are read, up to the number at which counting ends."""
    distinct = list(dict.fromkeys(words(fold(query))))
    if not distinct or exact >= limits.NOTES_COUNTED:
        return []
    needle = fold(query.strip())
    anywhere = listing._replace(limit=limits.NOTES_COUNTED + 1)
    entries = ctx.store.entries.matching(ctx.scope, anywhere, Words(tuple((word,) for word in distinct)))
    return [entry for entry in entries if needle not in fold(entry.content)]


def list_tags(ctx: Context, this_session: bool = False) -> Tags:
    session = _looked_in(ctx, this_session) or ""  # the store counts all of the project under the empty session
    return Tags(
        ctx.store.entries.tags(ctx.scope, NOTE, session), ctx.store.entries.tally(ctx.scope, NOTE, session).total
    )


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


def note_json(note: Note, session: str | None = None) -> Json:
    record: Json = {"id": note.id, "content": note.content, "tags": list(note.tags)}
    if note.done:
        record["done"] = True
    if session is not None and note.session != session:
        record["session"] = note.session
    return record | {"created_at": iso(note.created_at), "updated_at": iso(note.updated_at)} | trust_json(note.origin)


def written_json(value: WrittenNote) -> Json:
    answer: Json = {"note_id": value.note.id, "total_notes": value.tally.total, "total_tags": value.tally.tags}
    return answer | twin_json(value.twin)


def updated_json(value: WrittenNote) -> Json:
    return written_json(value) | {"note": note_json(value.note)}


def search_json(value: NoteMatches) -> Json:
    answer: Json = {
        "notes": [note_json(note, value.session) for note in value.notes],
        "result_count": min(value.total, limits.NOTES_COUNTED),
        "query": value.query,
        "tags": list(value.tags),
    }
    if value.total > limits.NOTES_COUNTED:
        answer["more"] = True
    if value.left_out:
        answer["left_out"] = value.left_out
    if value.related:
        answer["related"] = [note_json(note, value.session) for note in value.related]
    return answer


def note_lines(ctx: Context, notes: Sequence[Note]) -> tuple[list[str], str]:
    """A line per note, and what is the same of all, for the closing line."""
    ids = short_ids(ctx, NOTE, (note.id for note in notes))
    ages, of_all = brief.ages((epoch_ms(note.updated_at) for note in notes), ctx.now)
    return [_note_line(ids[note.id], age, note) for note, age in zip(notes, ages, strict=True)], of_all


def _note_line(id: str, age: str, note: Note) -> str:
    head = (id, age, "done" if note.done else "", brief.tagged(note.tags))
    return brief.item(head, note.content, note.origin)


def written_text(ctx: Context, value: WrittenNote) -> str:
    id = short_id(ctx, NOTE, value.note.id)
    return brief.lines((f"{id} kept; {_totals(value)}.",), twin_text(ctx, value.twin, NOTE))


def updated_text(ctx: Context, value: WrittenNote) -> str:
    lines, _ = note_lines(ctx, (value.note,))
    return brief.lines(lines, f"Changed; {_totals(value)}.")


def deleted_text(ctx: Context, value: WrittenNote) -> str:
    return f"{short_id(ctx, NOTE, value.note.id)} deleted; {_totals(value)}."


def _totals(value: WrittenNote) -> str:
    return f"{brief.counted(value.tally.total, 'note')}, {brief.counted(value.tally.tags, 'tag')}"


def search_text(ctx: Context, value: NoteMatches) -> str:
    lines, of_all = note_lines(ctx, (*value.notes, *value.related))
    if value.related:
        lines.insert(len(value.notes), "related:")
    count = min(value.total, limits.NOTES_COUNTED)
    closing = f"{brief.counted(count, 'note')}{' or more' if value.total > limits.NOTES_COUNTED else ''}"
    if not count:
        closing = "No note has these words" if value.query.strip() else "No notes"
    if value.left_out:
        closing += f", {value.left_out:,} not shown: narrow the query or raise limit"
    return brief.lines(lines, f"{closing}{of_all}.")


def list_text(ctx: Context, value: NoteList) -> str:
    closing = brief.counted(len(value.notes) + value.left_out, "note") if value.notes else "No notes"
    if value.left_out:
        closing += f", {value.left_out:,} not shown: raise limit"
    lines, of_all = note_lines(ctx, value.notes)
    return brief.lines(lines, f"{closing}{of_all}.")


def tags_text(_ctx: Context, value: Tags) -> str:
    tags = ", ".join(f"{item.tag} {item.notes}" for item in value.tags)
    return brief.lines((tags,), f"{brief.counted(len(value.tags), 'tag')}, {brief.counted(value.total_notes, 'note')}.")


def list_json(value: NoteList) -> Json:
    answer: Json = {
        "notes": [note_json(note, value.session) for note in value.notes],
        "note_count": len(value.notes),
        "tag_filter": value.tag,
    }
    return answer | ({"left_out": value.left_out} if value.left_out else {})


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

    def add(self, content: str, tags: Sequence[str] = ()) -> Note:
        return self._session.do(add_note, content=content, tags=tags).note

    def search(self, query: str = "", tags: Sequence[str] = (), **options: Any) -> NoteMatches:
        return self._session.do(search_notes, query=query, tags=tags, **options)

    def list(self, tag: str | None = None, **options: Any) -> tuple[Note, ...]:
        return self._session.do(list_notes, tag=tag, **options).notes

    def update(
        self, id: str, content: str | None = None, tags: Sequence[str] | None = None, done: bool | None = None
    ) -> Note:
        return self._session.do(update_note, id=id, content=content, tags=tags, done=done).note

    def delete(self, id: str) -> Note:
        return self._session.do(delete_note, id=id).note

    def tags(self, **options: Any) -> tuple[TagCount, ...]:
        return self._session.do(list_tags, **options).tags
