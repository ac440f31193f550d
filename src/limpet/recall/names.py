"""What a text is called: the tags of a note, the key of memory, what stands before a colon at its beginning.

A prompt that says the name of a text is about it. Words of a name stand side by side; a plural is the same word,
another word of the family is not ("chart" is not "charter"). What several texts are called is no name of one: such a
tag says of what kind they are. A word that the project does not know may be one of a tag with a slip of the pen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.light import re
from limpet.model import MEMORY, NOTE, Entry, trusted
from limpet.recall.question import STOP
from limpet.store import Listing
from limpet.text import words as analyse

Name = tuple[str, ...]  # folded words

MOST_WORDS = 5  # of a name
SHORT = 2  # letters; a name of so few counts where the prompt has it in capitals
SLIP_CHARS = 5  # of a word in which a slip is recognised
LETTER_CHARS = 7  # of one in which another letter is: many short words differ in one
PLURAL_CHARS = 3  # of a word that may have a plural
_PLURALS = ("s", "es", "n", "en")
_BETWEEN = re.compile(r"[-_./:]")
_LABEL = re.compile(r"([^\n:.!?]{2,48}):\s")


def called(prompt: str, entries: Sequence[Entry]) -> set[str]:
    """The keys of those entries whose name the prompt says, or says as the text itself spells it."""
    words = _words(prompt)
    capitals = {analyse.fold(word) for word in re.findall(r"\b[A-Z][A-Z\d]+\b", prompt)}
    every = {entry.key: set(_names(entry)) for entry in entries}
    spelled = {entry.key: set(words).intersection(_words(entry.content)) for entry in entries}
    counts = Counter(name for names in every.values() for name in names)
    return {
        key
        for key, names in every.items()
        if any(
            counts[name] <= limits.UNASKED_ENTRIES
            and (len("".join(name)) > SHORT or name[0] in capitals)
            and (_stands_in(name, words) or _meant(name, words, spelled[key]))
            for name in names
        )
    }


def meant(ctx: Context, prompt: str, unknown: Sequence[str]) -> list[Entry]:
    """Notes with a tag that the prompt names with a slip in one of the words that the project does not know."""
    slips = {word for word in unknown if len(word) >= SLIP_CHARS - 1 and word.isalpha()}
    if not slips:
        return []
    words = _words(prompt)
    # A slip leaves the first letter and nearly the length: most of a thousand tags need no closer look.
    near: dict[tuple[str, int], list[str]] = {}
    for word in slips:
        for more in (-1, 0, 1):
            near.setdefault((word[0], len(word) + more), []).append(word)
    tags = [
        count.tag
        for count in ctx.store.entries.tags(ctx.scope, NOTE, "", ctx.now)
        if count.notes <= limits.UNASKED_ENTRIES
        and any(
            _one_slip(word, slip)
            for word in _BETWEEN.sub(" ", count.tag.lower()).split()
            for slip in near.get((word[0], len(word)), ())
        )
        and _meant(_name(count.tag), words, slips)
    ]
    if not tags:
        return []
    listing = Listing((NOTE,), tags_any=tuple(map(analyse.fold, tags)), limit=limits.UNASKED_ENTRIES, now=ctx.now)
    return [entry for entry in ctx.store.entries.list(ctx.scope, listing).entries if trusted(entry.origin)]


def _names(entry: Entry) -> Iterator[Name]:
    called = [*entry.tags, *([entry.key] if entry.kind == MEMORY else [])]
    label = _LABEL.match(entry.content)
    for text in (*called, *([label[1]] if label else [])):
        name = _name(text)
        if name:
            yield name


def _name(text: str) -> Name:
    """Its words; none where it says nothing by itself."""
    name = tuple(_words(text))
    return name if 0 < len(name) <= MOST_WORDS and not STOP.issuperset(name) else ()


def _words(text: str) -> list[str]:
    return analyse.whole_words(analyse.fold(text.replace("_", " ")))


def _stands_in(name: Name, words: Sequence[str]) -> bool:
    length = len(name)
    return any(all(map(_same, name, words[at : at + length])) for at in range(len(words) - length + 1))


def _same(word: str, another: str) -> bool:
    """Whether two words are the same, or the same but for a plural or a slip that leaves the stem as it is."""
    if word == another:
        return True
    short, long = sorted((word, another), key=len)
    plural = len(short) >= PLURAL_CHARS and long.startswith(short) and long[len(short) :] in _PLURALS
    return plural or (_one_slip(word, another) and len(set(analyse.terms([word, another]))) == 1)


def _meant(name: Name, words: Sequence[str], slips: set[str]) -> bool:
    """Whether the name stands there with one slip, in a word that is unknown and long enough for its family."""
    least = SLIP_CHARS if len(name) == 1 else SLIP_CHARS - 1  # the other words of a name speak for it
    for at in range(len(words) - len(name) + 1):
        beside = words[at : at + len(name)]
        wrong = [pair for pair in zip(name, beside, strict=True) if not _same(*pair)]
        if len(wrong) == 1 and wrong[0][1] in slips and len(wrong[0][1]) >= least and _one_slip(*wrong[0]):
            return True
    return False


def _one_slip(meant: str, written: str) -> bool:
    """Whether a letter is missing or too many, two neighbours changed places, or, in a long word, one is another. The
    first one is right."""
    if abs(len(meant) - len(written)) > 1 or meant[:1] != written[:1] or len(meant) < SLIP_CHARS:
        return False
    at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(meant, written, strict=False)))
    rest, ending = meant[at:], written[at:]
    swapped = rest[:2] == ending[:2][::-1] and rest[2:] == ending[2:]
    replaced = rest[1:] == ending[1:] and len(meant) >= LETTER_CHARS
    return swapped or replaced or rest[1:] == ending or rest == ending[1:]
