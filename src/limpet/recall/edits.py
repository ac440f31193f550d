"""What somebody edited in a conversation: found by its new words, and by its old ones only when asked for them.

The transcript keeps every message as it was first said. Where a caller's list has another text in its place, a fold
holds that text; where a caller goes back and says a thing in another way, the message says which one it follows. Both
carry EDIT_TAG, so that a project without edits is known by one look at the index.

A text that only became shorter is no edit of what was said: frameworks cut results and long texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from limpet.catalogue.operation import Context
from limpet.light import Any
from limpet.model import EDIT_TAG, FOLD, MESSAGE, Entry, number_or
from limpet.recall.question import STOP
from limpet.record import NamedTuple
from limpet.store import Document, Listing
from limpet.text import words as analyse

READ = 500  # edits of a project, the newest first
SPEAKS = ("user", "assistant")  # whose messages are edited; what a tool printed stays as it was
LEAST_LENGTH = 0.5  # of the old text, that the new one must have
LEAST_SHARED = 0.34  # of the words of the shorter text, where a message takes another line: more is another subject


class Edits(NamedTuple):
    """The edits of a project: folds by the key of the message in whose place they stand, and messages that take
    another line by session and the position that they follow."""

    folds: Mapping[str, Entry]
    lines: Mapping[tuple[str, int], list[Entry]]

    def replacement(self, entry: Entry) -> str:
        """The key of what was said in place of this message; empty where it holds."""
        if entry.extra.get("role") not in SPEAKS:
            return ""
        fold = self.folds.get(entry.key)
        if fold and _is_alike(entry.extra, fold.extra) and _says_other(entry.content, fold.content):
            return message_key(fold)
        position = _position(entry.key)
        for later in self.lines.get((entry.session, _follows(entry)), ()):
            same_speaker = later.extra.get("role") == entry.extra["role"]
            if _position(later.key) > position and same_speaker and _is_reworded(entry.content, later.content):
                return later.key
        return ""


def read(ctx: Context) -> Edits:
    listing = Listing((FOLD, MESSAGE), tags_any=(EDIT_TAG,), limit=READ)
    folds: dict[str, Entry] = {}
    lines: dict[tuple[str, int], list[Entry]] = {}
    for entry in ctx.store.entries.list(ctx.scope, listing).entries:
        if entry.kind == FOLD and _is_single(entry.extra):
            folds.setdefault(message_key(entry), entry)
        elif entry.kind == MESSAGE and _follows(entry) >= 0:  # what begins again is another conversation
            lines.setdefault((entry.session, _follows(entry)), []).append(entry)
    return Edits(folds, lines)


def is_edit(document: Document) -> bool:
    """Whether a fold is an edit that holds. Other folds repeat what was said."""
    return EDIT_TAG in document.tags and not document.done


def message_key(fold: Entry) -> str:
    """The key of the message in whose place an edit stands, or of the one that follows what was added."""
    return f"{fold.session}#{number_or(fold.extra.get('first')):08d}"


def _is_single(extra: Mapping[str, Any]) -> bool:
    return extra.get("first") == extra.get("last") and len(extra.get("messages") or ()) == 1


def _is_alike(message: Mapping[str, Any], fold: Mapping[str, Any]) -> bool:
    (new,) = fold["messages"]
    return isinstance(new, Mapping) and new.get("role") == message.get("role")


def _follows(entry: Entry) -> int:
    return number_or(entry.extra.get("after"), _position(entry.key) - 1)


def _position(key: str) -> int:
    number = key.rpartition("#")[2]
    return int(number) if number.isdecimal() else 0


def _says_other(old: str, new: str) -> bool:
    return len(new) >= LEAST_LENGTH * len(old) and not _words(new) <= _words(old)


def _is_reworded(old: str, new: str) -> bool:
    before, after = _words(old), _words(new)
    return len(before & after) >= LEAST_SHARED * min(len(before), len(after)) and _says_other(old, new)


def _words(text: str) -> set[str]:
    return {word for word in analyse.words(analyse.fold(text)) if word not in STOP}
