"""Handoffs: the text that a session leaves for the next, which reads it first.

A handoff belongs to a line of work (a worktree, or the line named) and to the session that left it. That session
replaces its own; those of other sessions wait beside it until they are used. A handoff is used up when a session whose
model has seen all of it has done work since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from limpet import errors, limits
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Caller, Context, Json, a_name, bounded, trust_json
from limpet.light import TYPE_CHECKING
from limpet.model import (
    HANDOFF,
    MAIN_LINE,
    MEMORY,
    NOTE,
    SESSION,
    Draft,
    Entry,
    Handoff,
    Validity,
    as_handoff,
    derived,
    epoch_ms,
    iso,
    lowest,
    moment,
)
from limpet.platform import sha256
from limpet.record import NamedTuple
from limpet.store import Decide, Listing
from limpet.text import brief
from limpet.text.safe import as_data, as_name, visible, without_blank_ends

HEADING = "## Handoff from the last session"
ANOTHER = "## Handoff from another session: {session}"
CUT = "[… cut to fit; read_handoff shows all of it]"
DRAFT = "(Drafted by Limpet after the last turn of a session that wrote no handoff.)"
EARLIER_DRAFT = "(Drafted by Limpet: the session ended without a handoff of its own.)"
FIELDS: Mapping[str, str] = {  # the title of each in the text
    "done": "Done",
    "next": "Next",
    "failed": "Tried and failed",
    "decisions": "Decisions",
    "questions": "Open questions",
}
ROOM = limits.HANDOFF_MAX_CHARS + 200  # the longest one and its heading
SENTENCES = 10  # handoffs that are named by their first sentence
SENTENCE_CHARS = 160
RECENT = 50  # handoffs among which a session finds again those that it has seen

if TYPE_CHECKING:
    from limpet.memory import anchors as anchoring
    from limpet.memory import corrections
else:
    anchoring = LateModule("memory.anchors")  # most handoffs cite nothing
    corrections = LateModule("memory.corrections")  # where no handoff waits, nothing is compared

Measure = Callable[[str], int]


class LeftHandoff(NamedTuple):
    handoff: Handoff
    replaced: bool


class Waiting(NamedTuple):
    """What a session should see, newest first: unused handoffs of other sessions, and those that it has seen before."""

    own: tuple[Handoff, ...] = ()  # of its line of work
    others: tuple[Handoff, ...] = ()  # of other lines


class HandoffSection(NamedTuple):
    text: str
    in_full: tuple[Handoff, ...] = ()  # those that the text holds as a whole


class ReadHandoff(NamedTuple):
    handoff: Handoff
    others: tuple[Handoff, ...]  # that wait besides
    since: tuple[str, ...] = ()  # what has changed since it was written, a sentence each


# --- leaving one ------------------------------------------------------------------------------------------------------


def write_session_handoff(
    ctx: Context, /, content: str, line: str | None = None, anchors: Sequence[str] = (), **fields: Sequence[str]
) -> LeftHandoff:
    return leave(ctx, with_fields(content, fields), line, cited=anchors)


def leave(
    ctx: Context, content: str, line: str | None = None, sources: tuple[str, ...] = (), *, cited: Sequence[str] = ()
) -> LeftHandoff:
    """Leave a handoff. `sources` is the provenance of texts that it quotes, `cited` are places it names."""
    origin = lowest(ctx.who, *sources) if sources else ""
    name = line_of(ctx, line)
    holds = Validity(anchors=anchoring.cited(ctx, cited) if cited else ())
    extra = holds.into({"line": name, "written_at": ctx.now, **derived(ctx.who, *sources)})
    draft = Draft(checked(content), ctx.session, extra=extra, origin=origin, anew=True)
    stamp = ctx.stamp("write_session_handoff")
    change = ctx.store.entries.edit(ctx.scope, HANDOFF, own_key(ctx, name), lambda before: draft, stamp)
    return LeftHandoff(as_handoff(change.entry), change.before is not None)


def checked(content: str) -> str:
    advice = "Keep what the next session needs first."
    return bounded("handoff", without_blank_ends(content), limits.HANDOFF_MAX_CHARS, advice, blank="Say what is next.")


def line_of(ctx: Context, line: str | None) -> str:
    """The line of work that is named, or else that of the folder where one works."""
    if line is not None:
        return a_name("line", line, limits.KEY_MAX_CHARS)
    return MAIN_LINE if ctx.data is None else ctx.data.line


def own_key(ctx: Context, line: str) -> str:
    """The key of this session's handoff for a line. It keeps one that earlier versions gave: the line alone, or both
    names with their slashes, which could be those of another line and session."""
    for earlier_key in (line, f"{line}/{ctx.session}"):
        entry = ctx.store.entries.read(ctx.scope, HANDOFF, earlier_key)
        if entry is not None and (as_handoff(entry).line, entry.session) == (line, ctx.session):
            return earlier_key
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in (line, ctx.session))


def with_fields(content: str, fields: Mapping[str, Iterable[str]]) -> str:
    """The text with its fields as lists below it."""
    parts = [without_blank_ends(content)]
    for name, title in FIELDS.items():
        if items := [words for item in fields.get(name, ()) if (words := " ".join(item.split()))]:
            parts.append("\n".join([f"{title}:", *(f"- {item}" for item in items)]))
    return "\n\n".join(part for part in parts if part)


def fields_of(content: str) -> dict[str, list[str]]:
    """The fields that a text has: the reverse of `with_fields`."""
    names = {f"{title}:": name for name, title in FIELDS.items()}
    fields: dict[str, list[str]] = {}
    for part in content.split("\n\n"):
        title, *items = part.split("\n")
        if title in names and items and all(item.startswith("- ") for item in items):
            fields.setdefault(names[title], []).extend(item.removeprefix("- ") for item in items)
    return fields


# --- reading ----------------------------------------------------------------------------------------------------------


def read_handoff(ctx: Context, line: str | None = None, id: str | None = None) -> ReadHandoff:
    """The handoff with this id, or else the newest of the line, used or not."""
    if id is not None:
        entry = ctx.store.entries.read(ctx.scope, HANDOFF, id)
        if entry is None:
            raise errors.no_entry("handoff", id, "read_handoff without id gives the newest and names the others.")
        return _read(ctx, as_handoff(entry))
    name = line_of(ctx, line)
    ofline = [handoff for handoff in _listed(ctx, limits.LIST_MAX, used_too=True) if handoff.line == name]
    if not ofline:
        advice = "write_session_handoff leaves one."
        sentences = _sentences((), [handoff for handoff in _listed(ctx, limits.LIST_MAX) if handoff.line != name])
        raise errors.no_entry("handoff for", name, f"{advice} {' '.join(sentences.split())}".rstrip())
    return _read(ctx, ofline[0])


def _read(ctx: Context, handoff: Handoff) -> ReadHandoff:
    besides = tuple(item for item in _listed(ctx, limits.LIST_MAX) if item.id != handoff.id)
    return ReadHandoff(handoff, besides, changes_since(ctx, handoff))


def waiting(ctx: Context, line: str | None = None, *, since: int | None = None) -> Waiting:
    """What a session should see. With `since`, in milliseconds, also its own from before: it was resumed then."""
    open_ones = _listed(ctx, limits.LIST_MAX)
    again = [handoff for handoff in _listed(ctx, RECENT, used_too=True) if was_seen(ctx, handoff)]
    if not (open_ones or again) or _is_child(ctx):
        return Waiting()  # a child goes on with the work of its parent
    handoffs = {handoff.id: handoff for handoff in (*open_ones, *again) if _is_news(ctx, handoff, since)}
    name = line_of(ctx, line)
    newest_first = sorted(handoffs.values(), key=lambda handoff: handoff.written_at, reverse=True)
    others = (handoff for handoff in newest_first if handoff.line != name and handoff.used_by is None)
    return Waiting(tuple(handoff for handoff in newest_first if handoff.line == name), tuple(others))


def _is_news(ctx: Context, handoff: Handoff, since: int | None) -> bool:
    return handoff.written_by != ctx.session or (since is not None and handoff.written_at <= moment(since))


def was_seen(ctx: Context, handoff: Handoff) -> bool:
    """Whether this session's model has seen it before."""
    return handoff.used_by == ctx.session or ctx.session in handoff.shown_to


def taken_up(ctx: Context) -> list[Handoff]:
    """The handoffs that this session has used up, the newest first."""
    return [handoff for handoff in _listed(ctx, RECENT, used_too=True) if handoff.used_by == ctx.session]


def _listed(ctx: Context, limit: int, *, used_too: bool = False) -> list[Handoff]:
    page = ctx.store.entries.list(ctx.scope, Listing((HANDOFF,), include_done=used_too, limit=limit))
    return sorted(map(as_handoff, page.entries), key=lambda handoff: handoff.written_at, reverse=True)


def _is_child(ctx: Context) -> bool:
    entry = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    return entry is not None and bool(entry.session)


# --- using them up ----------------------------------------------------------------------------------------------------


def mark_shown(ctx: Context, handoffs: Iterable[Handoff]) -> None:
    """Record that this session's model has seen them. Called when it really has."""

    def mark(handoff: Handoff) -> Decide:
        def decide(before: Entry | None) -> Draft | None:
            if before is None or not _same(before, handoff) or ctx.session in as_handoff(before).shown_to:
                return None
            return before.revised(extra={**before.extra, "shown_to": [*as_handoff(before).shown_to, ctx.session]})

        return decide

    _mark(ctx, [handoff for handoff in handoffs if not was_seen(ctx, handoff)], mark, "show_handoff")


def use(ctx: Context, handoffs: Iterable[Handoff]) -> None:
    """Mark them used by this session: its model has seen them, and it has worked since."""

    def mark(handoff: Handoff) -> Decide:
        def decide(before: Entry | None) -> Draft | None:
            # A newer text may have been written since; that one has not been read and stays.
            if before is None or before.done or not _same(before, handoff):
                return None
            return before.revised(done=True, extra={**before.extra, "used_by": ctx.session})

        return decide

    _mark(ctx, [handoff for handoff in handoffs if handoff.used_by is None], mark, "use_handoff")


def use_shown(ctx: Context) -> None:
    """This session has done work: what its model was shown is used."""
    use(ctx, [handoff for handoff in _listed(ctx, limits.LIST_MAX) if ctx.session in handoff.shown_to])


def _mark(ctx: Context, handoffs: list[Handoff], mark: Callable[[Handoff], Decide], operation: str) -> None:
    if handoffs:
        edits = [(HANDOFF, handoff.id, mark(handoff)) for handoff in handoffs]
        ctx.store.entries.edit_all(ctx.scope, edits, ctx.stamp(operation))


def _same(entry: Entry, handoff: Handoff) -> bool:
    now = as_handoff(entry)
    return (now.content, now.written_at) == (handoff.content, handoff.written_at)


# --- the section of a prompt ------------------------------------------------------------------------------------------


def section(ctx: Context, waiting: Waiting, room: int = ROOM, measure: Measure = len) -> HandoffSection:
    """The prompt section; empty when nothing waits.

    Handoffs of the line are quoted in full as far as there is room, and the newest is cut if it alone is too long. All
    others are named by their first sentence.
    """
    parts: list[str] = []
    quoted: list[Handoff] = []
    named: list[Handoff] = []
    for handoff in waiting.own:
        heading = ANOTHER.format(session=as_name(handoff.written_by)) if parts else HEADING
        body = "\n".join((as_shown(handoff), *changes_since(ctx, handoff)))
        text = f"{heading}\n{body}{_also_shown(ctx, handoff)}"
        if measure(text) <= room:
            quoted.append(handoff)
        elif parts:
            named.append(handoff)
            continue
        else:
            text = f"{_within(text, room - measure(CUT) - 1, measure)}\n{CUT}"
        parts.append(text)
        room -= measure(text) + 1
    if sentences := _sentences(named, waiting.others):
        parts.append(sentences)
    return HandoffSection("\n\n".join(parts), tuple(quoted))


def as_shown(handoff: Handoff) -> str:
    """Its text for a model: quoted where a tool may have said it, but for what a person typed."""
    chars = handoff.typed.partition(" ")[0]
    # Nothing was typed, or the text was changed since.
    if not chars.isdecimal() or handoff.typed != typed_mark(handoff.content, chars):
        return as_data(handoff.content, handoff.origin)
    own, rest = handoff.content[: int(chars)].rstrip(), handoff.content[int(chars) :].lstrip()
    return f"{own}\n\n{as_data(rest, handoff.origin)}" if rest else own


def typed_mark(content: str, chars: str) -> str:
    """What says that a person typed so many characters at the beginning of this text."""
    return f"{chars} {sha256(content.encode(errors='replace')).hexdigest()[:24]}"


def changes_since(ctx: Context, handoff: Handoff) -> tuple[str, ...]:
    """What has changed since it was written: sources that it cites, and facts that were corrected."""
    lines = [anchoring.label(look) for look in anchoring.looks(ctx, handoff.anchors)] if handoff.anchors else []
    lines += [
        f'(Corrected since, in {entry.kind} {as_name(entry.key)}: "{visible(" ".join(entry.content.split()))}")'
        for entry in corrected_since(ctx, handoff)
    ]
    return tuple(filter(None, lines))


def corrected_since(ctx: Context, handoff: Handoff) -> list[Entry]:
    """Notes and memory that correct a fact in it."""
    return corrections.since(ctx, handoff.content, handoff.written_at) if _later(ctx, handoff) else []


def _later(ctx: Context, handoff: Handoff) -> bool:
    """Whether anything was written after it that may correct it; comparing texts takes modules that load slowly."""
    newest = ctx.store.entries.list(ctx.scope, Listing((NOTE, MEMORY), limit=1, now=ctx.now)).entries
    return any(moment(entry.updated_at) > handoff.written_at for entry in newest)


def _also_shown(ctx: Context, handoff: Handoff) -> str:
    """A sentence about sessions at work that have seen it too, so that two do not do the same work."""
    if handoff.used_by == ctx.session:
        return ""
    others = [as_name(name) for name in handoff.shown_to if name != ctx.session and _at_work(ctx, name)]
    return f"\n(It was also shown to session {', '.join(others)}: do not do the same work twice.)" if others else ""


def _at_work(ctx: Context, session: str) -> bool:
    entry = ctx.store.entries.read(ctx.scope, SESSION, session)
    return entry is not None and not entry.done


def _sentences(same_line: Sequence[Handoff], other_lines: Sequence[Handoff]) -> str:
    lines = [
        f'- from session {as_name(item.written_by)}: "{begins(item)}" (read_handoff id="{_argument(item.id)}")'
        for item in same_line
    ]
    lines += [
        f'- {as_name(item.line)}: "{begins(item)}" (read_handoff line="{_argument(item.line)}")' for item in other_lines
    ]
    if len(lines) > SENTENCES:
        lines[SENTENCES:] = [f"- and {len(lines) - SENTENCES} more (read_handoff names them)"]
    return "\n".join(["Handoffs also wait, quoted as data:", *lines]) if lines else ""


def _argument(name: str) -> str:
    return as_name(name).replace('"', '\\"')


def begins(handoff: Handoff) -> str:
    """Its first sentence, in one line."""
    text = visible(" ".join(handoff.content.removeprefix(EARLIER_DRAFT).removeprefix(DRAFT).split()))
    end = min((at + 1 for mark in (". ", "! ", "? ") if (at := text.find(mark)) >= 0), default=len(text))
    sentence = text[:end]
    return sentence if len(sentence) <= SENTENCE_CHARS else f"{sentence[: SENTENCE_CHARS - 1]}…"


def _within(text: str, room: int, measure: Measure) -> str:
    while (size := measure(text)) > max(room, 0) and text:
        text = text[: min(len(text) - 1, len(text) * max(room, 0) // size)]
    return text


# --- answers ----------------------------------------------------------------------------------------------------------


def handoff_json(value: ReadHandoff) -> Json:
    handoff = value.handoff
    answer: Json = {
        "content": handoff.content,
        "id": handoff.id,
        "line": handoff.line,
        "written_by": handoff.written_by,
        "written_at": iso(handoff.written_at),
        "used_by": handoff.used_by,
        **fields_of(handoff.content),
        **trust_json(handoff.origin),
    }
    if value.since:
        answer["since"] = list(value.since)
    if value.others:
        answer["others"] = [
            {"id": item.id, "line": item.line, "written_by": item.written_by, "begins": begins(item)}
            for item in value.others
        ]
    return answer


def written_json(value: LeftHandoff) -> Json:
    return {"status": "ok", "replaced": value.replaced}


def handoff_text(ctx: Context, value: ReadHandoff) -> str:
    handoff = value.handoff
    line = "" if handoff.line == MAIN_LINE else f" of {as_name(handoff.line)}"
    used = ", used" if handoff.used_by else ""
    age = brief.ago(epoch_ms(handoff.written_at), ctx.now)
    text = "\n".join((f"Handoff{line} ({age}{used}):", as_shown(handoff), *value.since))
    return "\n\n".join(filter(None, (text, _sentences(value.others, ()))))


def written_text(_ctx: Context, value: LeftHandoff) -> str:
    return "Handoff left for the next session" + ("; it replaces your earlier one." if value.replaced else ".")


class SessionHandoff:
    """`session.handoff`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def write(self, content: str, line: str | None = None, **fields: Sequence[str]) -> Handoff:
        """Leave it. `done`, `next`, `failed`, `decisions` and `questions` are lists beside the text."""
        return self._session.do(write_session_handoff, content=content, line=line, **fields).handoff

    def read(self, line: str | None = None, id: str | None = None) -> Handoff:
        return self._session.do(read_handoff, line=line, id=id).handoff
