"""Questions that need two documents: `--multihop path/to/repository` with texts in reStructuredText or Markdown.

The texts are sections. A name (an identifier, or a capitalised word inside a sentence) that stands in a few sections
links two of them. A question holds words of the sentence that names it in the first section, without the name, and two
words from beside the name in the second: so the second is found well only by somebody who read the first. Documents are
split by their order into four sets, so that even and odd sets share none.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

from bench.recall.git import names, read
from bench.recall.sets import Query, Set, Unit
from limpet.recall.question import STOP

SETS, ASKED = 4, 150  # questions of one set
SECTION_WORDS = (40, 400)  # a section has at least and at most so many
FEW, MANY = 2, 6  # sections that hold a linking name
FIRST_WORDS, SECOND_WORDS = 7, 2  # of a question, from the two sections
_HEADING = re.compile(r"\n(?=[^\n]{3,80}\n[=\-~^'\"]{3,}\n|#{1,4} )")
NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b(?:[A-Za-z_]*_[A-Za-z_]\w*|[a-z]+[A-Z]\w+|[A-Z][a-z]{3,})\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[a-z]{4,}")


def sections(repository: Path) -> list[Set]:
    documents = [name for name in names(repository) if re.search(r"\.(?:rst|md|txt)$", name)]
    every = [_split(read(repository, name)) for name in sorted(documents)]
    every = [texts for texts in every if texts]
    size = -(-len(every) // SETS)
    parts = [every[at : at + size] for at in range(0, len(every), size)]
    return [_set(f"{repository.parent.name}-{at}", [t for d in part for t in d]) for at, part in enumerate(parts)]


def _split(text: str) -> list[str]:
    """The sections of a document; long ones are cut between paragraphs."""
    least, most = SECTION_WORDS
    texts: list[str] = []
    for section in _HEADING.split(text):
        part = ""
        for paragraph in section.split("\n\n"):
            if part and len(part.split()) + len(paragraph.split()) > most:
                texts.append(part.strip())
                part = ""
            part += paragraph + "\n\n"
        texts.append(part.strip())
    return [part for part in texts if len(part.split()) >= least]


def _set(name: str, texts: list[str]) -> Set:
    dice = random.Random(name)
    units = [Unit(str(at), text) for at, text in enumerate(texts)]
    holding: dict[str, set[int]] = {}
    for at, text in enumerate(texts):
        for link in set(NAME.findall(text)):
            holding.setdefault(link, set()).add(at)
    often = Counter(word for text in texts for word in set(_WORD.findall(text.lower())))
    links = sorted(link for link, docs in holding.items() if FEW <= len(docs) <= MANY)
    dice.shuffle(links)
    queries: list[Query] = []
    for link in links:
        second = max(sorted(holding[link]), key=lambda at: texts[at].count(link))
        first = dice.choice(sorted(holding[link] - {second}))
        asked = _question(link, texts[first], texts[second], often, dice) if texts[second].count(link) > 1 else ""
        if asked:
            queries.append(Query(asked, frozenset((str(first), str(second))), "two documents"))
        if len(queries) == ASKED:
            break
    return Set(name, units, queries)


def _question(link: str, first: str, second: str, often: Counter[str], dice: random.Random) -> str:
    parts = {part for part in re.split(r"[\W_]+", link.lower()) if part} | {link.lower()}
    near = _content(next((one for one in _SENTENCE.split(first) if link in one), ""), parts)
    far = [one for one in _SENTENCE.split(second) if link in one]
    beside = set(_content(dice.choice(far), parts)) - set(near) if far else set()
    beside_by_rarity = sorted(beside, key=lambda word: (often[word], word))
    if len(near) < FIRST_WORDS or len(beside_by_rarity) < SECOND_WORDS + 2:
        return ""
    chosen = sorted(dice.sample(range(len(near)), FIRST_WORDS))
    # Neither the rarest words, which would find the section by themselves, nor the most common.
    return " ".join([*(near[at] for at in chosen), *beside_by_rarity[1 : 1 + SECOND_WORDS]])


def _content(sentence: str, without: set[str]) -> list[str]:
    return [word for word in dict.fromkeys(_WORD.findall(sentence.lower())) if word not in STOP and word not in without]
