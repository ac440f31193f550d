"""The word index inside the SQLite file: which entries hold which terms, and which words contain a piece of a word.

`terms` is an FTS5 table fed with terms only. `pieces` holds the endings of every word ever indexed, so that the words
containing a piece are one range of it; with them, a substring search reads only entries that can contain the text.
"""

from __future__ import annotations

import apsw

from holdfast.model import Entry
from holdfast.search import analyse
from holdfast.stores.rows import indexed_text

KNOWN_WORDS = 20_000  # words this process has seen in the index; about 2 MB
EXPAND_MAX = 300  # words a piece may stand for before reading everything is cheaper


class WordIndex:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, words: set[str]) -> None:
        """Words that are now on disk. A process that keeps running does not remember every word for ever."""
        if len(self._known) > KNOWN_WORDS:
            self._known.clear()
        self._known |= words

    def update(self, con: apsw.Connection, doc: int, before: Entry | None, after: Entry | None) -> set[str]:
        """Index an entry anew where its text changed. The words that were not known before."""
        old, new = indexed_text(before), indexed_text(after)
        if old == new:
            return set()
        if old:
            con.execute("DELETE FROM terms WHERE rowid = ?", (doc,))
        if not new:
            return set()
        found = analyse.short_words(analyse.fold(new))
        con.execute("INSERT INTO terms (rowid, text) VALUES (?, ?)", (doc, " ".join(analyse.terms(found))))
        fresh = set(found) - self._known
        for word in fresh:
            con.execute("INSERT OR IGNORE INTO pieces VALUES (?, ?)", (word, word))
            if con.changes():
                con.executemany("INSERT OR IGNORE INTO pieces VALUES (?, ?)", [(p, word) for p in analyse.pieces(word)])
        return fresh


def any_of(terms: set[str] | tuple[str, ...]) -> str:
    """Alternatives in FTS5's syntax. Terms are letters and digits, and quoted, so none is read as syntax."""
    return "(" + " OR ".join(f'"{term}"' for term in sorted(terms)) + ")"


def may_contain(con: apsw.Connection, folded: str) -> str | None:
    """A word query that no entry containing the text can miss; None when only reading everything will do.

    The first and last word of the text may be pieces of longer words, so every word that ends or begins with them is an
    alternative. Entries with over-long words are alternatives of everything.
    """
    found = analyse.words(folded)
    groups: list[str] = []
    for at, word in enumerate(found):
        first, last = at == 0, at == len(found) - 1
        if len(word) > analyse.WORD_MAX_CHARS:
            alternatives: set[str] = set()
        elif not (first or last) or analyse.is_atom(word):
            alternatives = {word}
        elif len(word) < analyse.INFIX_MIN_CHARS:
            continue
        else:
            alternatives = _words_with(con, word, ends=not last, begins=not first)
        if len(alternatives) <= EXPAND_MAX:
            groups.append(any_of({*analyse.terms(sorted(alternatives)), analyse.LONG}))
    return " AND ".join(groups) if groups else None


def _words_with(con: apsw.Connection, piece: str, *, ends: bool, begins: bool) -> set[str]:
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
