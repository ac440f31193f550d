"""The digest of a project's memory for the start of a session, and the activity log, which is read from history.

Separate from the rest of memory because hooks need nothing else of it, and start many times a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet import errors, limits
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Context
from limpet.light import TYPE_CHECKING, re
from limpet.memory import layers
from limpet.model import MEMORY, PERSON, Digest, Entry, EntryName, Memory, Validity, milliseconds, moment, written_at
from limpet.record import NamedTuple
from limpet.store import EventQuery, Listing, Page
from limpet.text import tokens
from limpet.text.safe import as_data, as_name

if TYPE_CHECKING:
    from limpet.memory import anchors
else:
    anchors = LateModule("memory.anchors")  # most of memory cites nothing

DAY_MS = 86_400_000
LOG = "activity-log-"
HEADING = "## Memory of this project"
HEADINGS = {
    layers.TEAM: "## Memory of the team, from files in .limpet/memory",
    PERSON: "## The person's own preferences, in every project",
}
SHADOWS = " (another layer of memory says something else under this key; here this counts)"
_END = r"\Z|\n\n#|\n\nNot shown \(| \[…\]| \((?:its source moved to|was true at|another layer) "  # of an entry
BELOW_SHARE = 3  # a third of the budget at most is for the layers below the project's
LEAST_CHARS = 4_000  # of a text, whose words are counted to see that it cannot fit
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
        if event.detail.get("replaces") != [event.kind, event.key]  # the other half of a correction
    ]
    if not lines:
        raise errors.no_entry("activity log", f"{LOG}{day}", "Nothing was written to memory on that day.")
    return Memory(f"{LOG}{day}", "\n".join(lines), False, moment(events[0].at))


def digest(ctx: Context, budget: int | None = None) -> Digest:
    """Memory for the start of a session: pinned first, then newest, within a budget; what did not fit is named."""
    text, left_out = text_and_rest(ctx, budget)
    return Digest(text, tokens.count(text), left_out)


def text_and_rest(ctx: Context, budget: int | None = None) -> tuple[str, tuple[str, ...]]:
    """The digest's text, whose tokens are not counted where it is short enough, and the names of what did not fit."""
    most = ctx.bounds.digest_budget_tokens if budget is None else budget
    lower = _below(ctx, most // BELOW_SHARE)
    most -= lower.tokens
    page = _listed(ctx)
    chosen = _chosen(ctx, page.entries, most, lower.shadowed)
    parts, left_out = [HEADING, *chosen.parts], list(chosen.left_out)
    unread = page.total - len(page.entries)
    text = _assembled(parts, left_out, unread)
    while len(parts) > 1 and not tokens.fits(text, most):  # the line that names the rest needs room too
        left_out.insert(0, parts.pop().partition("\n")[0].removeprefix("### "))
        text = _assembled(parts, left_out, unread)
    joined = "\n\n".join(part for part in (text, lower.text) if part)
    return joined, (*left_out, *lower.left_out)


class _Below(NamedTuple):
    """What the layers below the project's add."""

    text: str = ""
    tokens: int = 0
    left_out: tuple[str, ...] = ()
    shadowed: frozenset[str] = frozenset()  # keys for which the project has another text


def _below(ctx: Context, most: int) -> _Below:
    parts: list[str] = []
    left_out: list[str] = []
    hidden: set[str] = set()
    used = 0
    for layer, entries, shadowed in layers.entries_below(ctx, limits.LIST_MAX):
        chosen = _chosen(layer.ctx, entries, most - used - NAMED_TOKENS)
        text = _assembled([HEADINGS[layer.name], *chosen.parts], list(chosen.left_out), 0)
        hidden |= shadowed
        if text:
            parts.append(text)
            left_out += chosen.left_out
            used += tokens.count(text) + 1
    return _Below("\n\n".join(parts), used, tuple(left_out), frozenset(hidden)) if parts or hidden else _Below()


class _Chosen(NamedTuple):
    parts: tuple[str, ...]
    keys: tuple[str, ...]  # of the parts
    left_out: tuple[str, ...]


def _chosen(ctx: Context, entries: Sequence[Entry], most: int, shadows: frozenset[str] = frozenset()) -> _Chosen:
    """The entries that fit, pinned first, then newest."""
    parts, keys, left_out = [], [], []
    ranked = sorted(entries, key=lambda entry: (not entry.pinned, -written_at(entry)))
    if sum(len(entry.content) + len(HEADING) for entry in ranked) < most:  # so few that they may fit uncounted
        all_parts = [_part(ctx, entry) + (SHADOWS if entry.key in shadows else "") for entry in ranked]
        if len("\n\n".join([HEADING, *all_parts]).encode("utf-8", "surrogatepass")) <= most:
            return _Chosen(tuple(all_parts), tuple(entry.key for entry in ranked), ())
    used = tokens.count(HEADING)
    for entry in ranked:
        # Every word is a token at least: most of what does not fit need not be counted.
        least = min(len(entry.content[:LEAST_CHARS].split()), limits.DIGEST_ENTRY_TOKENS)
        if used + least > most:
            left_out.append(as_name(entry.key))
            continue
        part = _part(ctx, entry) + (SHADOWS if entry.key in shadows else "")
        cost = tokens.count(part) + 1
        if used + cost > most:
            left_out.append(as_name(entry.key))
        else:
            used += cost
            parts.append(part)
            keys.append(entry.key)
    return _Chosen(tuple(parts), tuple(keys), tuple(left_out))


def _part(ctx: Context, entry: Entry) -> str:
    text, cut = _as_shown(entry)
    cited = Validity.of(entry.extra).anchors
    label = anchors.label(anchors.worst(anchors.looks(ctx, cited))) if cited else ""
    part = f"{_heading(entry.key)}{text}" + (" […]" if cut else "")
    return f"{part} {label}" if label else part


def held_in_full(ctx: Context, holds: Callable[[str], bool]) -> tuple[Entry, ...]:
    """The memory that a text with the digest in it, which may be cut, holds in full."""
    entries = _listed(ctx).entries
    return tuple(entry for entry in entries if holds(_heading(entry.key) + as_data(entry.content, entry.origin)))


def says_otherwise(digest: str, entry: Entry) -> bool:
    """Whether a digest has a text under this key that the entry does not say or begin with."""
    _, named, before = digest.partition(_heading(entry.key))
    if not named:
        return False
    now, _ = _as_shown(entry)
    pairs = enumerate(zip(before, now, strict=False))
    same = next((at for at, (old, new) in pairs if old != new), min(len(before), len(now)))
    goes_on = now[same : same + 1] in ("", "\n")  # what was appended is a new line
    return not (goes_on and re.match(_END, before[same:]))


def _listed(ctx: Context) -> Page:
    return ctx.store.entries.list(ctx.scope, Listing((MEMORY,), limit=limits.LIST_MAX, now=ctx.now))


def _heading(key: str) -> str:
    return f"### {as_name(key)}\n"


def _as_shown(entry: Entry) -> tuple[str, bool]:
    """The text of an entry as the digest shows it, and whether it is cut."""
    text, cut = tokens.cut(entry.content, limits.DIGEST_ENTRY_TOKENS)
    return as_data(text, entry.origin), cut


def candidates(ctx: Context) -> tuple[Entry, ...]:
    """What the digest chooses from: all that is pinned, and the newest. An older one is in it by chance, where a gap
    was left, and goes without a word."""
    newest = ctx.store.entries.list(ctx.scope, Listing((MEMORY,), limit=limits.DIGEST_NEWEST, now=ctx.now))
    if newest.total == len(newest.entries):
        return newest.entries
    listing = Listing((MEMORY,), limit=limits.LIST_MAX, now=ctx.now, pinned=True)
    pinned = ctx.store.entries.list(ctx.scope, listing).entries
    return (*pinned, *(entry for entry in newest.entries if not entry.pinned))


def displaced(ctx: Context, before: Sequence[Entry], written: Entry, replaced: EntryName | None) -> tuple[str, ...]:
    """The keys that were in the digest before a write and are not in it any more because of it."""
    most = ctx.bounds.digest_budget_tokens - _below(ctx, ctx.bounds.digest_budget_tokens // BELOW_SHARE).tokens
    gone = {(written.kind, written.key), replaced}
    others = [entry for entry in before if (entry.kind, entry.key) not in gone]
    # A token has at least one byte, so what has few bytes fits.
    if sum(len(entry.content.encode()) + len(entry.key) + 8 for entry in (*others, written)) < most:
        return ()
    before_keys, after_keys = _chosen(ctx, before, most).keys, _chosen(ctx, [written, *others], most).keys
    out = set(before_keys) - set(after_keys) - {key for _, key in filter(None, gone)}
    return tuple(key for key in before_keys if key in out)


def _assembled(parts: list[str], left_out: list[str], unread: int) -> str:
    """The digest's text; nothing at all when there is no memory."""
    if len(parts) == 1 and not left_out:
        return ""
    if not left_out:
        return "\n\n".join(parts)
    names = list(left_out)
    while len(names) > 1 and not tokens.fits(", ".join(names), NAMED_TOKENS):
        names.pop()  # no name is cut; the count says how many there are
    more = f", {unread:,} older ones" if unread else ""
    dots = " …" if len(names) < len(left_out) else ""
    named = f"Not shown ({len(left_out)}): {', '.join(names)}{dots}{more}. search_memory reads them."
    return "\n\n".join([*parts, named])
