"""The digest of a project's memory for the start of a session, and the activity log, which is read from history.

Separate from the rest of memory because hooks need nothing else of it, and start many times a minute.
"""

from __future__ import annotations

from limpet import errors, limits
from limpet.catalogue.operation import Context
from limpet.model import MEMORY, Digest, Memory, milliseconds, moment
from limpet.store import EventQuery, Listing
from limpet.text import tokens
from limpet.text.safe import as_data, as_name

DAY_MS = 86_400_000
LOG = "activity-log-"
HEADING = "## Memory of this project"
NAMED_TOKENS = 24  # for the names of what did not fit


def activity_log(ctx: Context, day: str) -> Memory:
    """The writes to memory on one day (UTC), oldest first. Nothing is stored for it: history has it."""
    try:
        start = milliseconds(f"{day}T00:00:00+00:00")
    except ValueError:
        raise errors.bad_name("day", day, "a day is written YYYY-MM-DD") from None
    query = EventQuery(MEMORY, operation="write_memory", since=start, until=start + DAY_MS, limit=limits.LIST_MAX)
    events = ctx.store.entries.events(ctx.scope, query)
    lines = [
        f"- [{moment(event.at):%H:%M:%S} UTC] write_memory "
        f"key='{as_name(event.key)}' mode='{as_name(str(event.detail['mode']))}'"
        for event in reversed(events)
    ]
    if not lines:
        raise errors.no_entry("activity log", f"{LOG}{day}", "Nothing was written to memory on that day.")
    return Memory(f"{LOG}{day}", "\n".join(lines), False, moment(events[0].at))


def digest(ctx: Context, budget: int | None = None) -> Digest:
    """Memory for the start of a session: pinned first, then newest, within a budget; what did not fit is named."""
    most = ctx.bounds.digest_budget_tokens if budget is None else budget
    page = ctx.store.entries.list(ctx.scope, Listing((MEMORY,), limit=limits.LIST_MAX))
    parts, left_out = [HEADING], []
    used = tokens.count(HEADING)
    for entry in sorted(page.entries, key=lambda entry: not entry.pinned):
        text, cut = tokens.cut(entry.content, limits.DIGEST_ENTRY_TOKENS)
        part = f"### {as_name(entry.key)}\n{as_data(text, entry.origin)}" + (" […]" if cut else "")
        used += tokens.count(part) + 1
        if used > most:
            left_out.append(as_name(entry.key))
            used -= tokens.count(part) + 1
        else:
            parts.append(part)
    unread = page.total - len(page.entries)
    text = _assembled(parts, left_out, unread)
    while tokens.count(text) > most and len(parts) > 1:  # the line that names the rest needs room too
        left_out.insert(0, parts.pop().partition("\n")[0].removeprefix("### "))
        text = _assembled(parts, left_out, unread)
    return Digest(text, tokens.count(text), tuple(left_out))


def _assembled(parts: list[str], left_out: list[str], unread: int) -> str:
    """The digest's text; nothing at all when there is no memory."""
    if len(parts) == 1 and not left_out:
        return ""
    if not left_out:
        return "\n\n".join(parts)
    names = list(left_out)
    while len(names) > 1 and tokens.count(", ".join(names)) > NAMED_TOKENS:
        names.pop()  # no name is cut; the count says how many there are
    more = f", {unread:,} older ones" if unread else ""
    dots = " …" if len(names) < len(left_out) else ""
    named = f"Not shown ({len(left_out)}): {', '.join(names)}{dots}{more}. search_memory reads them."
    return "\n\n".join([*parts, named])
