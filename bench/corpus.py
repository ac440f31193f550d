"""Notes and questions to measure with.

Beside the repository there may be LoCoMo, ten long real conversations: two turns that follow each other are a note, and
further ones are made of the first half of one note and the second half of another. Without it, notes are made of
invented words whose frequencies follow Zipf's law, as in any language. In both, every fourth note names a fresh
hexadecimal number, as agents' notes do, so that the vocabulary never stops growing. Everything comes from fixed seeds.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from bench.measure import DATA

LOCOMO = DATA / "locomo" / "locomo10.json"
TAGS = [f"tag{number:02}" for number in range(50)]
COMMON_MIN_CHARS = 4


class Note(NamedTuple):
    content: str
    tags: list[str]


class Question(NamedTuple):
    """What is asked, and the number of the note it was made from."""

    words: list[str]
    tag: str | None
    source: int

    @property
    def text(self) -> str:
        return " ".join(self.words)


def origin() -> str:
    if LOCOMO.is_file():
        return "turns of LoCoMo's ten conversations, then halves of them put together anew"
    return "invented words with Zipf frequencies (LoCoMo is not beside the repository)"


@cache
def notes(count: int) -> list[Note]:
    """The first so many notes. The list of a larger count begins with that of a smaller one."""
    texts = _turns() if LOCOMO.is_file() else _invented()
    chance = random.Random(2)
    made = []
    for number in range(count):
        if number < len(texts):
            content = texts[number]
        else:
            first, second = (chance.choice(texts).split() for _ in range(2))
            content = " ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :])
        if number % 4 == 3:
            content += f" (ref {chance.getrandbits(24):06x})"
        made.append(Note(content, chance.sample(TAGS, 2)))
    return made


def _turns() -> list[str]:
    """Two turns that follow each other are one note: about as long as what an agent writes down."""
    talks = json.loads(Path(LOCOMO).read_text(encoding="utf-8"))
    said = []
    for talk in talks:
        for name, turns in talk["conversation"].items():
            if isinstance(turns, list) and not name.endswith("date_time"):
                lines = [f"{turn['speaker']}: {' '.join(turn['text'].split())}" for turn in turns if turn.get("text")]
                said += [" ".join(lines[at : at + 2]) for at in range(len(lines) - 1)]
    return list(dict.fromkeys(text for text in said if len(text) >= 20))


def _invented(count: int = 5_000, vocabulary: int = 20_000) -> list[str]:
    chance = random.Random(1)
    syllables = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "ai", "or", "en")]
    words = list(
        dict.fromkeys("".join(chance.choices(syllables, k=chance.choice((1, 2, 2, 3)))) for _ in range(90_000))
    )
    words = words[:vocabulary]
    weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))
    return [" ".join(chance.choices(words, cum_weights=weights, k=chance.randint(15, 65))) for _ in range(count)]


# --- questions --------------------------------------------------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """Different words in order of appearance. All are plain letters and digits, so that every tokenizer agrees."""
    found = re.findall(r"[^\W_]+", text.lower())
    return list(dict.fromkeys(word for word in found if word.isascii()))


@cache
def _frequencies(count: int) -> Counter[str]:
    return Counter(word for note in notes(count) for word in words_of(note.content))


def questions(kind: str, notes_count: int, how_many: int) -> list[Question]:
    """Questions of one kind about the first `notes_count` notes: see `_question`."""
    chance = random.Random(f"{kind} {notes_count}")
    made: list[Question] = []
    while len(made) < how_many:
        source = chance.randrange(notes_count)
        question = _question(kind, source, notes_count, chance)
        if question is not None:
            made.append(question)
    return made


def _question(kind: str, source: int, count: int, chance: random.Random) -> Question | None:
    """None when this note does not lend itself to this kind of question."""
    note, often = notes(count)[source], _frequencies(count)
    found = words_of(note.content)
    telling = [word for word in found if len(word) >= COMMON_MIN_CHARS]
    rare = [word for word in telling if often[word] <= max(30, count // 1000)]
    if kind in ("rare", "tagged"):
        if not rare:
            return None
        return Question([chance.choice(rare)], chance.choice(note.tags) if kind == "tagged" else None, source)
    if kind == "two":
        return Question(chance.sample(telling, 2), None, source) if len(telling) >= 2 else None
    if kind == "eight":
        return Question(_some(found, 8, chance), None, source) if len(found) >= 8 else None
    assert kind == "asked"  # eight words of which six are the note's: no note need hold all of them
    if len(found) < 6:
        return None
    common = [word for word, _ in often.most_common(60) if word not in found]
    return Question([*chance.sample(common, 2), *_some(found, 6, chance)], None, source)


def _some(words: list[str], count: int, chance: random.Random) -> list[str]:
    """So many of the words, in their order."""
    return [words[at] for at in sorted(chance.sample(range(len(words)), count))]
