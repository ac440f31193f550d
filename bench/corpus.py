"""Notes and questions to measure with.

Notes are real texts as they come: paragraphs of the documentation, docstrings and code that are installed beside this
Python, and, where `BENCH_DATA` has LoCoMo, two turns of a conversation for every tenth. Where a machine has too few of
them, further ones are made of the first half of one text and the second half of another, and the page says how many.
Which files come first is drawn from a fixed seed, so that the same machine gives the same notes every time.
"""

from __future__ import annotations

import json
import os
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench.measure import DATA

LOCOMO = DATA / "locomo" / "locomo10.json"
TAGS = [f"tag{number:02}" for number in range(50)]
COMMON_MIN_CHARS = 4
SUFFIXES = (".py", ".pyi", ".md", ".rst", ".txt")
FILE_BYTES, FILE_TEXTS = 256 << 10, 60  # of one file: longer ones are tables, and no file may be most of the notes
TEXT_CHARS, TEXT_WORDS = (40, 1_500), 5  # of one paragraph: what an agent may have written down
SAID_EVERY = 10  # texts of which one is of a conversation
CODE_SIGNS, CODE_SHARE, CODE_EVERY = "()[]{}=;<>_\"'", 0.04, 4  # what makes a paragraph code, and of which one is taken


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
    said = "turns of LoCoMo and " if LOCOMO.is_file() else "(LoCoMo is not where BENCH_DATA says) "
    return f"{said}paragraphs of the documentation, docstrings and code of Python and the packages installed beside it"


@cache
def notes(count: int) -> list[Note]:
    """The first so many notes. The list of a larger count begins with that of a smaller one."""
    texts = real(count)
    chance = random.Random(2)
    made = []
    for number in range(count):
        if number < len(texts):
            content = texts[number]
        else:
            first, second = (chance.choice(texts).split() for _ in range(2))
            content = " ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :])
        made.append(Note(content, chance.sample(TAGS, 2)))
    return made


def real(count: int) -> list[str]:
    """The first so many real texts, each once, or all that there are."""
    return list(islice(_different(), count))


def _different() -> Iterator[str]:
    """None twice, not with other signs or capitals either: a note that says the same again is not added."""
    said, seen = _turns(), set()
    for number, text in enumerate(_paragraphs(), 1):
        for one in [text, *(islice(said, 1) if number % SAID_EVERY == 0 else ())]:
            bare = " ".join(re.findall(r"[^\W_]+", one.lower()))
            if bare not in seen:
                seen.add(bare)
                yield one


def _paragraphs() -> Iterator[str]:
    """Sentences for the most part: installed packages are nine tenths code, and notes are not."""
    coded = 0
    for text in _blocks():
        code = sum(map(text.count, CODE_SIGNS)) > CODE_SHARE * len(text)
        coded += code
        if not code or coded % CODE_EVERY == 0:
            yield text


def _blocks() -> Iterator[str]:
    for path in _files():
        try:
            text = path.read_text(encoding="utf-8") if path.stat().st_size <= FILE_BYTES else ""
        except (OSError, UnicodeDecodeError):
            continue
        parts = (part.strip() for part in re.split(r"\n[ \t]*\n", text))
        least, most = TEXT_CHARS
        fitting = (part for part in parts if least <= len(part) <= most and len(part.split()) >= TEXT_WORDS)
        yield from islice(fitting, FILE_TEXTS)


@cache
def _files() -> list[Path]:
    """In an order of their own, so that no package is all of the first notes."""
    found: set[str] = set()
    for place in {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}:
        for folder, _, names in os.walk(place):
            found.update(os.path.join(folder, name) for name in names if name.endswith(SUFFIXES))
    files = [Path(name) for name in sorted(found)]
    random.Random(1).shuffle(files)
    return files


def _turns() -> Iterator[str]:
    """Two turns that follow each other are one note: about as long as what an agent writes down."""
    talks = json.loads(LOCOMO.read_text(encoding="utf-8")) if LOCOMO.is_file() else []
    for talk in talks:
        for name, turns in talk["conversation"].items():
            if isinstance(turns, list) and not name.endswith("date_time"):
                lines = [f"{turn['speaker']}: {' '.join(turn['text'].split())}" for turn in turns if turn.get("text")]
                said = (" ".join(lines[at : at + 2]) for at in range(0, len(lines), 2))
                yield from (text for text in said if len(text) >= 20)


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
