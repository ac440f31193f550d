"""What still holds: successors, expiry, and the labels of what no longer does.

A correction is a new entry that replaces an old one. Both changes are made in one transaction: the new text names what
it replaces, the old one is done and names its successor. History keeps it, and lists show it when asked.
"""

from __future__ import annotations

from limpet import errors
from limpet.catalogue.ids import short_id
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Context, Json
from limpet.light import TYPE_CHECKING, re
from limpet.memory import layers
from limpet.model import MEMORY, NOTE, Draft, Entry, EntryName, Validity, iso
from limpet.store import Follow
from limpet.text.safe import as_name

if TYPE_CHECKING:
    from limpet.recall import recall
else:
    recall = LateModule("recall.recall")  # a write that names no day does not need it

NEVER = "never"
_AGE = re.compile(r"(\d{1,4})([hdw])")
_AGE_MS = {"h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
CHAIN_MOST = 100  # successors that are followed to see a circle


# --- expiry -----------------------------------------------------------------------------------------------------------


def expiry(text: str, now: int) -> int | None:
    """When something expires: an age from now on, or a day or time to come; None if it does not."""
    value = text.strip()
    if value == NEVER:
        return None
    age = _AGE.fullmatch(value)
    at = now + int(age[1]) * _AGE_MS[age[2]] if age else recall.moment_of("expires", value, now)
    if at <= now:
        raise errors.in_the_past("expires", text)
    return at


# --- successors -------------------------------------------------------------------------------------------------------


def named(ctx: Context, kind: str, id: str) -> EntryName:
    """The note or memory that an id or key names, first of this kind."""
    for candidate in dict.fromkeys((kind, NOTE, MEMORY)):
        entry = ctx.store.entries.read(ctx.scope, candidate, id.strip())
        if entry is not None:
            return EntryName(entry.kind, entry.key)
    raise errors.no_note_or_memory(id)


def to_replace(ctx: Context, kind: str, id: str, own: str | None = None) -> EntryName:
    """What `replaces` names. `own` is the key of its successor."""
    if ctx.store.entries.read(ctx.scope, NOTE, id.strip()) is None:
        layers.refuse_of_another(ctx, id.strip())
    name = named(ctx, kind, id)
    if name == (kind, own):
        raise errors.replaces_itself(id)
    if own is not None and _leads_to(ctx, EntryName(kind, own), name):
        raise errors.replaced_in_a_circle(own, id)
    return name


def _leads_to(ctx: Context, first: EntryName, last: EntryName) -> bool:
    """Whether the successors of one entry end at another."""
    name: EntryName | None = first
    for _ in range(CHAIN_MOST):
        entry = None if name is None else ctx.store.entries.read(ctx.scope, *name)
        name = None if entry is None else Validity.of(entry.extra).replaced_by
        if name == last:
            return True
    return False


def retiring(ctx: Context, name: EntryName) -> Follow:
    """Marks an entry as replaced by the one that was written before it in the same transaction."""
    gone = _gone(ctx, name)

    def decide(before: Entry | None, successor: Entry) -> Draft | None:
        if before is None:
            raise errors.no_note_or_memory(name.key)
        validity = Validity.of(before.extra)
        by = EntryName(successor.kind, successor.key)
        if validity.replaced_by == by:
            return None  # the same call again
        if validity.replaced_by is not None and validity.replaced_by != gone:
            raise errors.already_replaced(name.key, validity.replaced_by.key)
        return before.revised(done=True, pinned=False, extra=validity._replace(replaced_by=by).into(before.extra))

    return Follow(decide)


def _gone(ctx: Context, name: EntryName) -> EntryName | None:
    """The successor of an entry, if it was deleted since: then another may take its place."""
    entry = ctx.store.entries.read(ctx.scope, *name)
    by = None if entry is None else Validity.of(entry.extra).replaced_by
    return None if by is None or ctx.store.entries.read(ctx.scope, *by) is not None else by


def carried(before: Entry | None, text: str, mode: str, new: Validity) -> Validity:
    """What a write says of a text's validity. A text that is appended to, or written again as it is, keeps what it has;
    a new text under the key has nothing of the one before."""
    if before is None or (mode != "append" and before.content != text):
        return new
    previous = Validity.of(before.extra)
    return Validity(
        new.replaces or previous.replaces, None, new.expires_at or previous.expires_at, new.anchors or previous.anchors
    )


def restored(before: Entry) -> Draft:
    """An entry that nothing replaces any more."""
    return before.revised(done=False, extra=Validity.of(before.extra)._replace(replaced_by=None).into(before.extra))


def detail(name: EntryName | None) -> Json:
    """What the event of a successor says, and that of what it replaced: a replacement is undone as one change."""
    return {} if name is None else {"replaces": list(name)}


# --- labels -----------------------------------------------------------------------------------------------------------


def state_of(ctx: Context, validity: Validity) -> str:
    """What a model should know of an entry, in a few words; nothing where it holds."""
    if validity.replaced_by:
        return f"replaced by {as_name(short_id(ctx, *validity.replaced_by))}"
    return "expired" if validity.expired(ctx.now) else ""


def validity_json(validity: Validity, now: int) -> Json:
    """What a program should know of an entry; nothing where all is as usual."""
    answer: Json = {}
    if validity.replaces:
        answer["replaces"] = validity.replaces.key
    if validity.replaced_by:
        answer["replaced_by"] = validity.replaced_by.key
    if validity.expires_at is not None:
        answer["expires_at"] = iso(validity.expires_at)
    if validity.expired(now):
        answer["expired"] = True
    if validity.anchors:
        answer["anchors"] = [anchor.place for anchor in validity.anchors]
    return answer
