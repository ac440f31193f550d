"""Sessions that another program runs: what its hooks have to remember from one call to the next.

A coding agent has its own window and compacts it when it likes; its hooks are processes that live for a moment. What
one of them leaves for a later one stands in the session's own entry: that the context has to be given back, the
checkpoint made before a compaction, and which version of the notepad the model has seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.memory import handoff
from limpet.model import HANDOFF, SESSION, Draft, Entry, Handoff, as_handoff, derived, lowest

NAME = "hosted"  # the member of the entry's extra that is ours


class Hosted(NamedTuple):
    restore: bool = False  # a compaction took the context away, and nobody has given it back yet
    checkpoint: str = ""  # what the conversation said before it was last compacted
    source: str = ""  # whose word that is, and when it was kept
    at: int = 0
    pad: int = 0  # the version of the notepad that the model was last shown
    archived: bool = False


def look(ctx: Context) -> Hosted:
    return _hosted(ctx.store.read(ctx.scope, SESSION, ctx.session))


def lost(ctx: Context, checkpoint: str, source: str) -> None:
    """The context is about to be compacted away. An earlier checkpoint stays where there is no new one."""

    def change(before: Hosted) -> Hosted:
        if not checkpoint:
            return before._replace(restore=True)
        return before._replace(restore=True, checkpoint=checkpoint, source=lowest(ctx.who, source), at=ctx.now)

    _edit(ctx, change, "before_compact")


def take(ctx: Context) -> bool:
    """Whether the context is to be given back now. Of many who ask at once, one is told so."""
    if not look(ctx).restore:
        return False
    taken: list[bool] = []

    def change(before: Hosted) -> Hosted:
        taken[:] = [before.restore]  # decided inside the transaction, where nobody comes between
        return before._replace(restore=False)

    _edit(ctx, change, "take_restore")
    return taken == [True]


def shown(ctx: Context, pad: int) -> None:
    """The context was given, with this version of the notepad. A session that was archived is active again."""
    before = look(ctx)
    if before._replace(restore=False, pad=pad, archived=False) != before:
        _edit(ctx, lambda one: one._replace(restore=False, pad=pad, archived=False), "show_context")


def can_draft(ctx: Context) -> bool:
    """Whether a draft would be kept, before anybody goes to the trouble of making one."""
    return _free(ctx, ctx.store.read(ctx.scope, HANDOFF, handoff.MAIN))


def draft_handoff(ctx: Context, content: str, source: str) -> None:
    """Leave a handoff for a session that wrote none. Never in place of one that somebody wrote and nobody has read."""
    text = content.strip()[: limits.HANDOFF_MAX_CHARS]

    def decide(before: Entry | None) -> Draft | None:
        if not _free(ctx, before) or (before is not None and not before.done and before.content == text):
            return None
        extra = {"written_at": ctx.now, "draft": True, **derived(ctx.who, source)}
        return Draft(text, ctx.session, extra=extra, origin=lowest(ctx.who, source))

    ctx.store.edit(ctx.scope, HANDOFF, handoff.MAIN, decide, ctx.stamp("draft_handoff"))


def _free(ctx: Context, before: Entry | None) -> bool:
    own = before is not None and before.session == ctx.session
    if before is None or (own and before.extra.get("draft")):
        return True
    return before.done and not own  # what this session wrote itself is its word, read or not


def handoff_for(ctx: Context, *, new: bool) -> Handoff | None:
    """The handoff to show: to a new session the one that waits, to one that goes on only the one it began with."""
    entry = ctx.store.read(ctx.scope, HANDOFF, handoff.MAIN)
    if entry is None or entry.session == ctx.session:
        return None
    found = as_handoff(entry)
    return found if found.used_by == ctx.session or (new and found.used_by is None) else None


# --- how --------------------------------------------------------------------------------------------------------------


def _hosted(entry: Entry | None) -> Hosted:
    if entry is None:
        return Hosted()
    kept: dict[str, Any] = entry.extra.get(NAME) or {}
    said, source = str(kept.get("checkpoint") or ""), str(kept.get("source") or "")
    return Hosted(
        bool(kept.get("restore")), said, source, int(kept.get("at") or 0), int(kept.get("pad") or 0), entry.done
    )


def _edit(ctx: Context, change: Any, operation: str) -> None:
    def decide(before: Entry | None) -> Draft:
        wanted: Hosted = change(_hosted(before))
        kept = wanted._asdict()
        del kept["archived"]
        if before is None:
            return Draft("", extra={NAME: kept})
        extra = {**before.extra, NAME: kept}
        if not wanted.archived:
            extra.pop("archived_at", None)
        ended = before.done and (wanted.archived or bool(before.extra.get("outcome")))
        return Draft(before.content, before.session, before.tags, ended, before.pinned, extra)

    ctx.store.edit(ctx.scope, SESSION, ctx.session, decide, ctx.stamp(operation))
