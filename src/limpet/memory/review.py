"""What waits for a person: texts that an agent wrote for the person's layer.

A proposal is an entry of its own kind, so no list, search, digest or window shows it. It does not change: a newer one
for the same key takes its place under a new id, so what a person accepts is what that person saw. A rejected one stays
on record, and the same text is not asked again.
"""

from __future__ import annotations

from collections.abc import Sequence

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json
from limpet.light import Any
from limpet.memory import layers, validity
from limpet.model import MEMORY, NOTE, PERSON, PROPOSAL, Draft, Entry, EntryName, Validity, iso
from limpet.record import NamedTuple
from limpet.store import DELETE, Delete, Edit, Listing
from limpet.text import brief
from limpet.text.safe import as_name

DAY_MS = 86_400_000
REJECTED = "rejected"


class Proposal(NamedTuple):
    id: str
    layer: str
    kind: str  # memory or note
    key: str  # of the memory; empty for a note
    content: str
    mode: str
    by: str  # who proposed it
    at: int
    before: str | None  # the text that it would replace


class Proposals(NamedTuple):
    proposals: tuple[Proposal, ...]
    now: int


class Decided(NamedTuple):
    proposal: Proposal


class Proposed(NamedTuple):
    """What becomes of a text that was not written but proposed."""

    id: str
    waiting: int
    oldest_at: int
    rejected: bool = False  # a person has said no to this text


def propose(
    ctx: Context, key: str, text: str, mode: str, expires_at: int | None, kind: str = MEMORY, **more: Any
) -> Proposed:
    """Put a text into the queue of the layer whose context this is. The answer says how long others have waited."""
    page = ctx.store.entries.list(ctx.scope, Listing((PROPOSAL,), include_done=True, limit=limits.LIST_MAX))
    text = ctx.masked(text)
    same = [entry for entry in page.entries if _target(entry) == (kind, key)]
    waiting = [entry for entry in page.entries if not entry.done]
    for entry in same:
        if entry.content == text and entry.extra.get("mode") == mode and (key or entry.extra.get("more") == more):
            return _proposed(entry, waiting)
    older = [entry for entry in same if not entry.done and key]
    if len(waiting) - len(older) >= limits.PROPOSALS_MAX:
        raise errors.queue_full(len(waiting))
    extra = {"target": [kind, key], "mode": mode, "until": expires_at, "by": ctx.by, "more": more}
    edits: list[Edit] = [(PROPOSAL, None, lambda _: Draft(text, ctx.session, extra=extra, anew=True))]
    edits += [(PROPOSAL, entry.key, lambda before: None if before is None else DELETE) for entry in older]
    change = ctx.store.entries.edit_all(ctx.scope, edits, ctx.stamp("propose"))[0]
    rest = [entry for entry in waiting if entry not in older]
    return _proposed(change.entry, [*rest, change.entry])


def _proposed(entry: Entry, waiting: Sequence[Entry]) -> Proposed:
    oldest = min((item.created_at for item in waiting), default=entry.created_at)
    return Proposed(entry.key, len(waiting), oldest, entry.done)


def _target(entry: Entry) -> tuple[str, str]:
    kind, key = entry.extra["target"]
    return str(kind), str(key)


def queue(ctx: Context) -> list[tuple[layers.Layer, Entry]]:
    """What waits in the person's layer, the oldest first. A proposal that a file brought into a project does
    not wait for a person: what it says of its author and its target is the file's word."""
    own = layers.person(ctx)
    if own is None:
        return []
    layer = layers.Layer(PERSON, own)
    waiting = own.store.entries.list(own.scope, Listing((PROPOSAL,), limit=limits.LIST_MAX)).entries
    return [(layer, entry) for entry in sorted(waiting, key=lambda entry: (entry.created_at, entry.key))]


def waits_long(ctx: Context) -> str:
    """A sentence for the person where something has waited for long; else empty."""
    waiting = queue(ctx)
    if not waiting or ctx.now - waiting[0][1].created_at < limits.REVIEW_LONG_DAYS * DAY_MS:
        return ""
    days = (ctx.now - waiting[0][1].created_at) // DAY_MS
    verb = "waits" if len(waiting) == 1 else "wait"
    return f"{brief.counted(len(waiting), 'text')} {verb} for review, the oldest for {days:,} days: `limpet review`."


def list_proposals(ctx: Context) -> Proposals:
    """What waits for a person, the oldest first."""
    return Proposals(tuple(_proposal(layer, entry) for layer, entry in queue(ctx)), ctx.now)


def accept_proposal(ctx: Context, id: str) -> Decided:
    """Write what was proposed, as the text of the person who accepts it."""
    layer, entry = _waiting_with(ctx, id)
    kind, key = _target(entry)
    text, more = entry.content, entry.extra.get("more") or {}
    proposal = _proposal(layer, entry)
    replaced = EntryName(MEMORY, str(more["replaces"])) if more.get("replaces") else None
    holds = Validity(replaced, None, entry.extra.get("until"), ())

    def decide(before: Entry | None) -> Draft:
        if kind == NOTE:
            return Draft(text, str(more.get("session", "")), tuple(more.get("tags", ())), extra=holds.into({}))
        full = f"{before.content.rstrip()}\n{text}" if before and entry.extra.get("mode") == "append" else text
        if len(full) > limits.MEMORY_MAX_CHARS:
            raise errors.too_long("content", len(full), limits.MEMORY_MAX_CHARS, "Reject it, and write it anew.")
        pinned = before.pinned if before else False
        carried = validity.carried(before, full, str(entry.extra.get("mode")), holds)
        return Draft(full, pinned=pinned, extra=carried.into({}), anew=True)

    target: Edit = (kind, key or None, decide)
    edits: list[Edit] = [(PROPOSAL, entry.key, _still(entry, DELETE)), target]
    if replaced is not None:
        edits.append((*replaced, validity.retiring(layer.ctx, replaced)))
    operation = "write_memory" if kind == MEMORY else "add_note"
    detail = {"mode": entry.extra.get("mode", "replace"), "accepted": entry.key, "proposed_by": proposal.by}
    detail |= validity.detail(replaced)
    layer.ctx.store.entries.edit_all(layer.ctx.scope, edits, layer.ctx.stamp(operation, detail))
    return Decided(proposal)


def reject_proposal(ctx: Context, id: str) -> Decided:
    """Leave it out. The text stays on record, so that it is not proposed again."""
    layer, entry = _waiting_with(ctx, id)
    no = entry.revised(done=True, extra={**entry.extra, "decided": REJECTED})
    stamp = layer.ctx.stamp("reject_proposal")
    layer.ctx.store.entries.edit(layer.ctx.scope, PROPOSAL, entry.key, _still(entry, no), stamp)
    return Decided(_proposal(layer, entry))


def _still(entry: Entry, outcome: Draft | Delete) -> Any:
    def decide(before: Entry | None) -> Draft | Delete:
        if before is None or before.done or before.content != entry.content:
            raise errors.no_proposal(entry.key)
        return outcome

    return decide


def _waiting_with(ctx: Context, id: str) -> tuple[layers.Layer, Entry]:
    if ctx.who != PERSON:
        raise errors.needs_a_person("what is kept for a person", "limpet review")
    for layer, entry in queue(ctx):
        if entry.key == id.strip():
            return layer, entry
    raise errors.no_proposal(id)


def _proposal(layer: layers.Layer, entry: Entry) -> Proposal:
    kind, key = _target(entry)
    present = layer.ctx.store.entries.read(layer.ctx.scope, kind, key) if key else None
    before = None if present is None else present.content
    by = str(entry.extra.get("by", ""))
    return Proposal(
        entry.key, layer.name, kind, key, entry.content, str(entry.extra.get("mode")), by, entry.created_at, before
    )


# --- answers ----------------------------------------------------------------------------------------------------------


def proposal_json(proposal: Proposal, now: int) -> Json:
    record: Json = {"id": proposal.id, "layer": proposal.layer, "kind": proposal.kind}
    record |= {"key": proposal.key} if proposal.key else {}
    record |= {"content": proposal.content, "by": proposal.by, "proposed_at": iso(proposal.at)}
    record |= {"mode": proposal.mode} if proposal.mode == "append" else {}
    record |= {"before": proposal.before} if proposal.before is not None else {}
    days = (now - proposal.at) // DAY_MS
    return record | ({"waiting_days": days} if days >= limits.REVIEW_LONG_DAYS else {})


def proposals_json(value: Proposals) -> Json:
    items = [proposal_json(proposal, value.now) for proposal in value.proposals]
    return {"proposals": items, "proposal_count": len(items)}


def decided_json(value: Decided) -> Json:
    proposal = value.proposal
    return {"status": "ok", "id": proposal.id, "layer": proposal.layer, "kind": proposal.kind, "key": proposal.key}


def proposed_json(value: Proposed) -> Json:
    return {"proposed": value.id, "waiting": value.waiting} | ({"rejected": True} if value.rejected else {})


def proposed_text(ctx: Context, key: str, value: Proposed) -> str:
    if value.rejected:
        return f"{as_name(key)}: the person has rejected this text, so it was not proposed again."
    days = (ctx.now - value.oldest_at) // DAY_MS
    long = f", the oldest for {days:,} days" if days >= limits.REVIEW_LONG_DAYS else ""
    many = f" {value.waiting:,} wait{long}." if value.waiting > 1 or long else ""
    return f"{as_name(key)} is proposed to the person and counts once accepted: `limpet review`.{many}"
