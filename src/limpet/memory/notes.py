"""Notes: short tagged texts that an agent writes down in a session and finds again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from limpet import errors, limits
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Caller, Context, Json, bounded, trust_json
from limpet.model import NOTE, Draft, Entry, Note, TagCount, Tally, as_note, iso
from limpet.recall.duplicates import Twin, twin, twin_json
from limpet.store import DELETE, Delete, Listing, Words
from limpet.text.words import fold, words

if TYPE_CHECKING:
    from limpet.recall import recall
else:
    recall = LateModule("recall.recall")  # a search needs it, a write does not

FEW_WORDS = 3  # a query of so few words is first searched with all of them


class WrittenNote(NamedTuple):
    note: Note
    tally: Tally
    twin: Twin | None = None  # another note that says the same


class NoteMatches(NamedTuple):
    notes: tuple[Note, ...]
    related: tuple[Note, ...]
    left_out: int
    query: str
    tags: tuple[str, ...]
    session: str  # that was searched; notes of another session name it


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
    return WrittenNote(as_note(change.entry), change.tally, duplicate)


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
    return WrittenNote(as_note(change.entry), change.tally)


def delete_note(ctx: Context, id: str) -> WrittenNote:
    def decide(before: Entry | None) -> Delete:
        if before is None:
            raise errors.no_note(id)
        return DELETE

    change = ctx.store.entries.edit(ctx.scope, NOTE, id, decide, ctx.stamp("delete_note"))
    return WrittenNote(as_note(change.entry), change.tally)


def list_notes(
    ctx: Context, tag: str | None = None, include_done: bool = False, limit: int = limits.NOTES_SHOWN
) -> NoteList:
    tags = () if tag is None else tuple(map(fold, clean_tags((tag,), 1)))
    page = ctx.store.entries.list(ctx.scope, Listing((NOTE,), ctx.one_session(), tags, include_done, limit))
    return NoteList(tuple(map(as_note, page.entries)), page.total - len(page.entries), tag, ctx.session)


def search_notes(
    ctx: Context,
    query: str = "",
    tags: Sequence[str] = (),
    include_done: bool = False,
    limit: int = limits.NOTES_SHOWN,
) -> NoteMatches:
    bounded("query", query, limits.QUERY_MAX_CHARS, "Ask for the few words that matter.")
    clean = clean_tags(tags, ctx.bounds.note_max_tags)
    listing = Listing((NOTE,), ctx.one_session(), tuple(map(fold, clean)), include_done, limit)
    if not query.strip():
        page = ctx.store.entries.list(ctx.scope, listing)
        return NoteMatches(
            tuple(map(as_note, page.entries)), (), page.total - len(page.entries), query, clean, ctx.session
        )
    page = ctx.store.entries.containing(ctx.scope, listing, query.strip())
    room = min(limits.RELATED_SHOWN, limit - len(page.entries))
    more: list[Entry] = []
    if room:
        exact = frozenset(entry.key for entry in page.entries)
        more = _with_every_word(ctx, query, listing, exact)
        if len(more) < room:
            more = recall.related(ctx, query, NOTE, tags=listing.tags, include_done=include_done, besides=exact)
    left_out = page.total - len(page.entries)
    notes, others = tuple(map(as_note, page.entries)), tuple(map(as_note, more[:room]))
    return NoteMatches(notes, others, left_out, query, clean, ctx.session)


def _with_every_word(ctx: Context, query: str, listing: Listing, exact: frozenset[str]) -> list[Entry]:
    """The newest notes of any session with all the words of a short query. If they fill the answer, recall is not
    needed: that keeps a search among very many notes fast, and nothing could fit better than every word."""
    distinct = list(dict.fromkeys(words(fold(query))))
    if not 0 < len(distinct) <= FEW_WORDS:
        return []
    anywhere = listing._replace(session=None, limit=len(exact) + limits.RELATED_SHOWN)
    entries = ctx.store.entries.matching(ctx.scope, anywhere, Words(tuple((word,) for word in distinct)))
    return [entry for entry in entries if entry.key not in exact]


def list_tags(ctx: Context) -> Tags:
    session = ctx.one_session() or ""  # the store counts all of the project under the empty session
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
        "result_count": len(value.notes),
        "query": value.query,
        "tags": list(value.tags),
    }
    if value.left_out:
        answer["left_out"] = value.left_out
    if value.related:
        answer["related"] = [note_json(note, value.session) for note in value.related]
    return answer


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
    """`session.notes`."""

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

    def tags(self) -> tuple[TagCount, ...]:
        return self._session.do(list_tags).tags
