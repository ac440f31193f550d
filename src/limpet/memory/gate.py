"""A remark on a text that says nothing, judged by its structure, or tells of the past. It is stored all the same.

A note is read alone: without a figure, a name, a path, a quotation or at least a few words it is of no use later.
Memory has its key for a subject, so one word may be enough there.
"""

from __future__ import annotations

from limpet.light import re
from limpet.text import words as analyse
from limpet.text.words import fold

FEW_WORDS = 2  # of a note that names nothing
FEW_CHARS = 4  # of a note in a script without spaces
PASSING_WORDS = 6  # of a note that breaks off with dots
NOTHING = "It says little by itself: name what it is about, with a value, a place or a reason, so that it helps later."
PAST = (
    "It seems to tell how things were. If nothing in it holds any more, mark it as done: it is kept, but not recalled."
)
REPEATS_KEY = "It says nothing beyond its key: write what is true of it."
# Something that a later reader can hold on to: a figure, a path or address, code, a quotation, a name with capitals
# inside, a value after a sign.
_HOLD = re.compile(r"\d|[`\"'«»“”/\\@#_=<>$%&|{}\[\]]|\w[.:]\w|[a-z][A-Z]|\b[A-Z]{2,}\b.*\w\s+\w|\S:\s+\S")
# How a text begins, after its heading, that tells of the past; and what closes such a text. Words that also begin rules
# ("antes de …") are left out.
_WAS = re.compile(
    r"(?:[^\n:]{1,60}:\s+)?(?:(?:previously|formerly|in the past|until recently|(?:we |i )?used to|w(?:as|ere) \w+ing"
    r"|früher|ehemals|bis vor kurzem|anteriormente|antiguamente|antigamente|auparavant|autrefois|anciennement"
    r"|раньше|прежде|ранее|dulunya|sebelumnya)(?!\w)|以前|原先|曾经|かつて)",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    r"historical record|superseded by|(?:later|since|meanwhile|by now) (?:been )?replaced by"
    r"|(?:inzwischen|mittlerweile|später) (?:abgelöst|ersetzt) durch|plus tard remplacée? par|después sustituid[oa] por"
    r"|позже заменён|后来被|後に置き換え",
    re.IGNORECASE,
)
_BREAKS_OFF = re.compile(r"(?:\.\.\.|…)\s*$")


def note_remark(text: str) -> str:
    plain = text.strip()
    names = analyse.words(fold(plain))
    if not names:
        return NOTHING
    if _WAS.match(plain) or _CLOSED.search(plain):
        return PAST
    if _HOLD.search(plain):
        return ""
    unspaced = sum(map(analyse.is_atom, names))
    if unspaced:
        return NOTHING if len(names) < FEW_CHARS else ""
    few = len(names) <= FEW_WORDS or (len(names) <= PASSING_WORDS and _BREAKS_OFF.search(plain) is not None)
    return NOTHING if few else ""


def memory_remark(key: str, text: str) -> str:
    names = analyse.words(fold(text))
    if not names:
        return NOTHING
    return REPEATS_KEY if set(names) <= set(analyse.words(fold(key))) else ""
