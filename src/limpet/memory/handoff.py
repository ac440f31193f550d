"""The handoff: the text that one session leaves for the next. There is one per line of work, and it is read first."""

# No `from __future__ import annotations`: as strings, the annotations of NamedTuples would be compiled at every start.
from typing import NamedTuple

from limpet import errors, limits
from limpet.catalogue.operation import Caller, Context, Json, a_name, bounded, trust_json
from limpet.model import HANDOFF, Draft, Entry, Handoff, as_handoff, derived, iso, lowest
from limpet.store import Listing
from limpet.text.safe import as_data, without_blank_ends

MAIN = "main"  # the line of work when none is named
HEADING = "## Handoff from the last session"


class LeftHandoff(NamedTuple):
    handoff: Handoff
    replaced: bool


def write_session_handoff(ctx: Context, content: str, line: str = MAIN) -> LeftHandoff:
    return leave(ctx, content, line)


def leave(ctx: Context, content: str, line: str, sources: tuple[str, ...] = ()) -> LeftHandoff:
    """Leave a handoff. `sources` is the provenance of texts that it quotes."""
    origin = lowest(ctx.who, *sources) if sources else ""
    extra = {"written_at": ctx.now, **derived(ctx.who, *sources)}
    draft = Draft(checked(content), ctx.session, extra=extra, origin=origin, anew=True)
    name = a_name("line", line, limits.KEY_MAX_CHARS)
    change = ctx.store.entries.edit(ctx.scope, HANDOFF, name, lambda before: draft, ctx.stamp("write_session_handoff"))
    return LeftHandoff(as_handoff(change.entry), change.before is not None)


def checked(content: str) -> str:
    advice = "Keep what the next session needs first."
    return bounded("handoff", without_blank_ends(content), limits.HANDOFF_MAX_CHARS, advice, blank="Say what is next.")


def read_handoff(ctx: Context, line: str = MAIN) -> Handoff:
    entry = ctx.store.entries.read(ctx.scope, HANDOFF, a_name("line", line, limits.KEY_MAX_CHARS))
    if entry is None:
        raise errors.no_entry("handoff for", line, "write_session_handoff leaves one.")
    return as_handoff(entry)


def waiting(ctx: Context, line: str = MAIN) -> Handoff | None:
    """The handoff this session should see: one that another session left and that no third session has used."""
    entry = ctx.store.entries.read(ctx.scope, HANDOFF, line)
    if entry is None or entry.session == ctx.session:
        return None
    handoff = as_handoff(entry)
    return handoff if handoff.used_by in (None, ctx.session) else None


def use_handoff(ctx: Context, handoff: Handoff) -> None:
    """Mark it used by this session. Called after the context with it was really served."""

    def decide(before: Entry | None) -> Draft | None:
        # A newer handoff may have been written since; that one has not been read and stays.
        if before is None or before.done or as_handoff(before) != handoff:
            return None
        extra = {**before.extra, "used_by": ctx.session}
        return Draft(before.content, before.session, before.tags, True, before.pinned, extra)

    if handoff.used_by is None:
        ctx.store.entries.edit(ctx.scope, HANDOFF, handoff.line, decide, ctx.stamp("use_handoff"))


def other_lines(ctx: Context, line: str = MAIN) -> tuple[str, ...]:
    """Other lines of work for which a handoff from another session waits."""
    page = ctx.store.entries.list(ctx.scope, Listing((HANDOFF,), limit=limits.NOTES_SHOWN))
    return tuple(entry.key for entry in page.entries if entry.key != line and entry.session != ctx.session)


def section(handoff: Handoff | None, others: tuple[str, ...] = ()) -> str:
    """The prompt section; empty when nothing waits. Handoffs of other lines are named, not quoted."""
    parts = [] if handoff is None else [f"{HEADING}\n{as_data(handoff.content, handoff.origin)}"]
    if others:
        parts.append(f"A handoff also waits for: {', '.join(others)} (`limpet handoff show --line NAME`).")
    return "\n\n".join(parts)


# --- answers ----------------------------------------------------------------------------------------------------------


def handoff_json(value: Handoff) -> Json:
    return {
        "content": value.content,
        "line": value.line,
        "written_by": value.written_by,
        "written_at": iso(value.written_at),
        "used_by": value.used_by,
        **trust_json(value.origin),
    }


def written_json(value: LeftHandoff) -> Json:
    return {"status": "ok", "replaced": value.replaced}


class SessionHandoff:
    """`session.handoff`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def write(self, content: str, line: str = MAIN) -> Handoff:
        return self._session.do(write_session_handoff, content=content, line=line).handoff

    def read(self, line: str = MAIN) -> Handoff:
        return self._session.do(read_handoff, line=line)
