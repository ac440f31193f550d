"""Masking of entries, for the place that every change passes: between what an operation decides and what is written."""

from __future__ import annotations

from limpet import errors
from limpet.light import TypeVar, json
from limpet.model import ACCESS, MEMORY, MESSAGE, NOTE, SEALS, SESSION, STATE, Draft, Entry, Stamp
from limpet.redaction import Masking, redact
from limpet.redaction.hints import may_hold

T = TypeVar("T")

# Hashes of tokens and of tools, and messages, which have offsets into their text: the window masks those part by part.
UNTOUCHED = (ACCESS, SEALS, MESSAGE)


def masked(kind: str, key: str | None, before: Entry | None, draft: T, stamp: Stamp) -> T | Draft:
    """The draft as it may be stored. What the entry contains already stays: a person has kept it."""
    masking = stamp.masking or Masking()
    if not isinstance(draft, Draft) or kind in UNTOUCHED or masking.keep:
        return draft
    if before is None and key is not None and redact(key).count:
        raise errors.secret_in_name(kind)
    earlier = "" if before is None else "\n".join((before.content, _json(before.extra), *before.tags))
    content, extra, tags = draft.content, draft.extra, draft.tags
    if before is None or content != before.content:
        content = _content(kind, key or "", content, masking, earlier)
    if extra:
        extra = masking.value(extra, earlier)
    if tags:
        tags = tuple(masking.text(tag, earlier) for tag in tags)
    return draft._replace(content=content, extra=extra, tags=tags)


def refuse_secret_session(stamp: Stamp) -> None:
    """Before a session begins: its name is shown everywhere and cannot be masked."""
    if not (stamp.masking and stamp.masking.keep) and redact(stamp.session).count:
        raise errors.secret_in_name(SESSION)


def masked_entry(entry: Entry, masking: Masking) -> Entry:
    """An entry of an import, as it may be stored."""
    if entry.kind == NOTE and not entry.extra and not may_hold("\n".join((entry.key, entry.content, *entry.tags))):
        return entry  # by far the most
    draft = masked(entry.kind, entry.key, None, entry.revised(), Stamp("", "", "", 0, masking=masking))
    return entry._replace(content=draft.content, extra=draft.extra, tags=draft.tags)


def _content(kind: str, key: str, content: str, masking: Masking, earlier: str) -> str:
    """The content; in memory and state the key is the name of a value, and can make it a secret."""
    if kind == STATE:
        try:
            value = json.loads(content)
        except ValueError:
            return masking.text(content, earlier)
        clean = masking.value(value, earlier, key)
        return content if clean is value else _json(clean)
    if kind == MEMORY and content and not any(sign.isspace() for sign in content):
        return str(masking.value(content, earlier, key))
    return masking.text(content, earlier)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
