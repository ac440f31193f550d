"""The word index inside the SQLite file: which entries hold which words, and which words there are.

`terms` is an FTS5 table fed with folded words and, as marks that no text can contain, an entry's tags. `pieces` holds
every ending of every indexed word. So the words that contain a piece are one range of it, and so are the words that
begin as one begins: substring search and stemming both turn into "any of these words"; the index holds no stems.

A word that no entry holds any more goes out of `pieces`. Every process remembers words it has seen there, so a removal
also changes a mark beside them (the row of the empty piece), and whoever finds another mark than last time forgets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from itertools import product

import apsw

from limpet.model import Entry
from limpet.stores.shared.rows import folded_tags, indexed_text
from limpet.text import words as analyse

KNOWN_WORDS = 20_000  # words this process has seen in the index; about 2 MB
EXPAND_MAX = 300  # words a piece may stand for before reading everything is cheaper
STEM_MIN_CHARS = 4  # of a stem whose words are looked up
ENDINGS = ("", "s", "d", "r", "ed", "er", "es", "ers", "ing", "ings")
WINDOW = 3  # neighbouring words of a longer text that are looked for
PHRASES_MAX = 64  # combinations of such words that are looked for as phrases
TIDY_PAGES = 16  # of the index that are written anew when an entry is deleted: a millisecond
# Words are letters and digits, and quoted, so none is read as syntax.
UNUSED = (
    "SELECT value FROM json_each(?) "
    "WHERE NOT EXISTS (SELECT 1 FROM terms WHERE terms MATCH '\"' || value || '\"' LIMIT 1)"
)


class Fresh:
    """Words that a transaction put into the index, and the mark it found there."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.mark = ""


class WordIndex:
    def __init__(self) -> None:
        self._known: set[str] = set()
        self._mark = ""
        self._families: tuple[tuple[int, int] | None, dict[str, set[str]]] = (None, {})

    def learn(self, fresh: Fresh) -> None:
        """Words that are now on disk. A process that keeps running does not remember every word for ever."""
        if len(self._known) > KNOWN_WORDS:
            self._known.clear()
        if fresh.mark == self._mark:  # otherwise words were removed since, maybe these
            self._known |= fresh.words
        if fresh.words:
            self._families = (None, {})

    def same_stem(self, con: apsw.Connection, word: str) -> set[str]:
        """The word and all indexed words with its stem. One question asks for the same words several times over."""
        moment = (id(con), con.data_version())  # changes when anybody else has written
        if self._families[0] != moment:
            self._families = (moment, {})
        families = self._families[1]
        if word not in families:
            families[word] = {word} | held(con, word)
        return families[word]

    def update(self, con: apsw.Connection, doc: int, before: Entry | None, after: Entry | None, fresh: Fresh) -> None:
        """Index an entry anew where its text changed."""
        old, new = indexed_text(before), indexed_text(after)
        if old == new:
            return
        if old:
            con.execute("DELETE FROM terms WHERE rowid = ?", (doc,))
        self._see_mark(con, fresh)
        found = analyse.index_words(new)
        if after is not None and new:
            marks = [tag_mark(tag) for tag in folded_tags(after)]
            con.execute("INSERT INTO terms (rowid, text) VALUES (?, ?)", (doc, " ".join(found + marks)))
            for word in set(found) - self._known - fresh.words:
                con.execute("INSERT OR IGNORE INTO pieces VALUES (?, ?)", (word, word))
                if con.changes():
                    endings = [(piece, word) for piece in analyse.pieces(word)[1:]]
                    con.executemany("INSERT OR IGNORE INTO pieces VALUES (?, ?)", endings)
                fresh.words.add(word)
        if old:
            self._forget(con, set(analyse.index_words(old)).difference(found), fresh)

    def _see_mark(self, con: apsw.Connection, fresh: Fresh) -> None:
        row = con.execute("SELECT word FROM pieces WHERE piece = ''").fetchone()
        mark = str(row[0]) if row else ""
        if mark != self._mark:  # somebody removed words that this process may remember
            self._known, self._mark = set(), mark
        if mark != fresh.mark:
            fresh.words.clear()
            fresh.mark = mark

    def _forget(self, con: apsw.Connection, words: set[str], fresh: Fresh) -> None:
        """Take words out of `pieces` that no entry holds any more."""
        gone: list[str] = [row[0] for row in con.execute(UNUSED, (json.dumps(sorted(words)),))] if words else []
        if not gone:
            return
        con.executemany(
            "DELETE FROM pieces WHERE piece = ? AND word = ?",
            [(piece, word) for word in gone for piece in analyse.pieces(word)],
        )
        # The mark is a new one each time, so that a removal that is rolled back cannot be taken for another one.
        mark = os.urandom(8).hex()
        con.execute("DELETE FROM pieces WHERE piece = ''")
        con.execute("INSERT INTO pieces VALUES ('', ?)", (mark,))
        fresh.words.difference_update(gone)
        fresh.mark = self._mark = mark
        self._known = self._known.difference(gone)
        self._families = (None, {})


def tidy(con: apsw.Connection, table: str, pages: int = TIDY_PAGES) -> None:
    """Let the index write its next pages without what was deleted; until then it only skips that."""
    con.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-pages,))  # noqa: S608 - a name of ours


def tag_mark(folded: str) -> str:
    """The word that stands for a tag. Words of a text have no diacritics, so none of them is a mark."""
    return "\u00ff" + folded.encode().hex()


def any_of(words: Iterable[str]) -> str:
    """Alternatives in FTS5's syntax. Words are letters and digits, and quoted, so none is read as syntax.

    None at all finds nothing: the empty phrase.
    """
    return "(" + (" OR ".join(f'"{word}"' for word in sorted(words)) or '""') + ")"


def held(con: apsw.Connection, word: str) -> set[str]:
    """All indexed words with the stem of a word, itself among them if it is one. None: no entry holds it in any form.

    They begin alike, up to a last letter that stemming may change.
    """
    (stem,) = analyse.terms([word])
    if len(stem) < STEM_MIN_CHARS:  # too many words begin like it; try its usual forms instead
        return {form for form in _with_stem(stem, sorted(_forms(stem) | {word})) if _is_word(con, form)}
    start = stem[:-1] if stem[-1] in "eily" else stem
    found = _with_stem(stem, sorted(_words_with(con, start, begins=True)))
    # Where very many words begin alike, not all of them were read.
    return found | {word} if word not in found and _is_word(con, word) else found


def _with_stem(stem: str, words: list[str]) -> set[str]:
    return {word for word, found in zip(words, analyse.terms(words), strict=True) if found == stem}


def _forms(stem: str) -> set[str]:
    """Words that may have a short stem: try, tries, dying, running. Which of them really do, the stemmer says."""
    start = stem[:-1]
    bases = (stem, start, start + "y", start + "i", start + "e", stem + "e", stem + stem[-1], stem[:-2] + "y")
    return {base + ending for base in bases for ending in ENDINGS}


def may_contain(con: apsw.Connection, folded: str) -> str | None:
    """A word query that no entry containing the text can miss; None when only reading everything will do.

    The first and last word of the text may be pieces of longer words, so every word that ends or begins with them is an
    alternative. Entries with over-long words are alternatives of everything.
    """
    found = analyse.words(folded)
    edges = {*found[:1], *found[-1:]}
    marks = [analyse.LONG, *([analyse.LONG_HEX] if any(map(analyse.is_hex, edges)) else [])]
    long = [mark for mark in marks if _words_with(con, mark, ends=True)]
    slots: list[set[str]] = []
    for at, word in enumerate(found):
        first, last = at == 0, at == len(found) - 1
        if len(word) > analyse.WORD_MAX_CHARS:
            return any_of(long)
        if not (first or last) or analyse.is_atom(word):
            slots.append({word})
        elif len(word) >= analyse.INFIX_MIN_CHARS:
            words = _words_with(con, word, ends=not last, begins=not first)
            if len(words) <= EXPAND_MAX:
                slots.append(words)
    if not slots:
        return None
    if not all(slots):
        return any_of(long)
    # A few neighbouring words narrow the choice enough; the longest are the rarest, by and large.
    at = max(range(max(1, len(slots) - WINDOW + 1)), key=lambda at: sum(map(_length, slots[at : at + WINDOW])))
    slots = slots[at : at + WINDOW]
    phrases = 1
    for words in slots:
        phrases *= len(words)
    if phrases <= PHRASES_MAX or len(slots) == 1:
        return any_of([*(" ".join(words) for words in product(*slots)), *long])
    both = f"({' AND '.join(map(any_of, slots))})"
    return f"{both} OR {any_of(long)}" if long else both


def _length(words: set[str]) -> int:
    return min(map(len, words))


def _is_word(con: apsw.Connection, word: str) -> bool:
    return bool(con.execute("SELECT 1 FROM pieces WHERE piece = ?1 AND word = ?1", (word,)).fetchall())


def _words_with(con: apsw.Connection, piece: str, *, ends: bool = False, begins: bool = False) -> set[str]:
    """Indexed words that contain the piece; with `ends` or `begins`, only those that end or begin with it."""
    most = EXPAND_MAX + 1
    if ends:
        rows = con.execute("SELECT word FROM pieces WHERE piece = ? LIMIT ?", (piece, most))
    elif begins:
        sql = "SELECT word FROM pieces WHERE piece >= ? AND piece < ? AND piece = word LIMIT ?"
        rows = con.execute(sql, (piece, piece + "\U0010ffff", most))
    else:
        sql = "SELECT word FROM pieces WHERE piece >= ? AND piece < ? LIMIT ?"
        rows = con.execute(sql, (piece, piece + "\U0010ffff", most))
    return {row[0] for row in rows}
