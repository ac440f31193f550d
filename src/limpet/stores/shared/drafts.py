"""From a draft to an entry, the same for every store: what is new in it, and whose word it is. Pure."""

from __future__ import annotations

from limpet.model import Draft, Entry, Stamp, lowest, trusted
from limpet.store import Gone


def next_entry(kind: str, key: str, before: Entry | None, draft: Draft, stamp: Stamp, at: int, version: int) -> Entry:
    """The entry a draft turns into. What did not change stays one and the same, whichever store asks.

    What came from outside is never pinned, whoever asks for it.
    """
    origin = _origin(before, draft, stamp.by.partition("/")[0])
    return Entry(
        kind,
        key,
        draft.session,
        draft.content,
        draft.tags,
        draft.done,
        draft.pinned and trusted(origin),
        origin,
        draft.extra,
        version,
        before.created_at if before else at,
        at,
    )


def _origin(before: Entry | None, draft: Draft, by: str) -> str:
    """Whose word a text is. To pin, tag or finish it makes it nobody else's; to edit it makes it the lesser of two."""
    if draft.origin:
        return draft.origin
    if before is None:
        return by
    if draft.content == before.content:
        return before.origin
    return by if draft.anew else lowest(before.origin, by)


def unchanged(before: Entry | None, wanted: Draft | Gone) -> bool:
    """Whether nothing new is asked for, so that no version and no event is spent on it."""
    if before is None:
        return isinstance(wanted, Gone)
    if isinstance(wanted, Draft):
        wanted = wanted._replace(origin="", anew=False)
    return wanted == Draft(before.content, before.session, before.tags, before.done, before.pinned, before.extra)
