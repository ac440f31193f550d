"""The word index inside the SQLite file: which entries hold which words, and which words there are.

`terms` is an FTS5 table fed with folded words and, as tokens that no text can contain, an entry's tags. `pieces` holds
every suffix of every indexed word. So the words that contain a piece are one range of it, and so are the words with a
given prefix: substring search and stemming both turn into "any of these words"; the index holds no stems.

A word that no entry holds any more is removed from `pieces`. Every process caches words it has seen there, so a removal
also changes a generation (the row of the empty piece), and a process that finds another generation clears its cache.

A new text waits for the index: its words join it with those of others, in a batch, or at the next search, for a
third of the work. The texts after a number (`indexed`) wait, so a write says nothing about it.

`sketches` finds what may say the same as a new text: one look-up instead of a search, as every write asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from limpet.light import Any, cast, json
from limpet.model import EMPTY, MEMORY, NOTE, Entry, Scope
from limpet.store import Listing
from limpet.stores.shared import rows
from limpet.stores.shared.rows import folded_tags, indexed_text
from limpet.stores.sqlite.connection import Connection
from limpet.text import words as analyse

CACHED_WORDS = 20_000  # words this process has seen in the index; about 2 MB
CACHED_STEMS = 2_000  # of words that were looked for, with the words that have them
EXPAND_MAX = 300  # words that may contain a piece before a full scan is cheaper
STEM_MIN_CHARS = 4  # of a stem whose words are looked up by prefix
ENDINGS = ("", "s", "d", "r", "ed", "er", "es", "ers", "ing", "ings", "ly", "ful", "fully", "ness")
WINDOW = 3  # adjacent words of a longer text that are looked for
PHRASES_MAX = 64  # combinations of such words that are looked for as phrases
TIDY_PAGES = 16  # of the index that are rewritten when an entry is deleted: a millisecond
AS_BYTES = ", ".join(f"CAST({name} AS BLOB)" for name in ("tenant", "project", "kind", "key", "content", "tags"))
WAITING_TEXTS = f"SELECT rowid, {AS_BYTES} FROM entries WHERE rowid > ? ORDER BY rowid LIMIT ?"  # noqa: S608 - constants
WAITING_VECTOR = "INSERT OR IGNORE INTO vectors_waiting VALUES (?, ?, ?)"
IS_WORD = "SELECT 1 FROM pieces WHERE piece = ?1 AND word = ?1"
NEW_AMONG = (
    "SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM pieces WHERE piece = value AND word = value)"
)
NEW_PIECE = "INSERT OR IGNORE INTO pieces VALUES (?, ?)"
SAME_LOOKED_AT, NEAR_LOOKED_AT = 20, 200  # sketches of the same text, and of texts with the same gist
NEW_SKETCH = "INSERT OR IGNORE INTO sketches VALUES (?, ?, ?, ?, ?)"
NO_SKETCH = "DELETE FROM sketches WHERE tenant = ? AND project = ? AND near = ? AND exact = ? AND doc = ?"
SKETCHES = (
    "SELECT doc FROM sketches WHERE tenant = ? AND project = ? AND near = ? AND exact = ? ORDER BY doc DESC LIMIT ?"
)
# Words are letters and digits, and quoted, so none is read as syntax.
UNUSED = (
    "SELECT value FROM json_each(?) "
    "WHERE NOT EXISTS (SELECT 1 FROM terms WHERE terms MATCH '\"' || value || '\"' LIMIT 1)"
)


WaitingText = tuple[int, Scope, str, list[str]]  # its number, project, text and tags


class NewWords:
    """Words that a transaction added to the index, and the generation it read there."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.generation = ""
        self.waiting = 0  # texts that wait for the index, at most
        self._begun = False

    def begin(self) -> bool:
        """Called when the transaction begins. True when it was rolled back before and is run again."""
        again, self._begun = self._begun, True
        self.words.clear()
        self.generation = ""
        self.waiting = 0
        return again


class WordIndex:
    def __init__(self) -> None:
        self._cached: set[str] = set()
        self._generation = ""
        self._families: tuple[tuple[int, int] | None, dict[str, frozenset[str]]] = (None, {})  # by stem
        self._waiting: dict[tuple[int, bytes], frozenset[str]] = {}  # terms of texts by number and checksum

    def learn(self, new: NewWords) -> None:
        """Cache words that are now on disk, up to a limit."""
        if len(self._cached) > CACHED_WORDS:
            self._cached.clear()
        if new.generation == self._generation:  # otherwise words were removed since, maybe these
            self._cached |= new.words
        for stem in analyse.terms([*new.words]):
            self._families[1].pop(stem, None)

    def same_stem(self, con: Connection, word: str) -> set[str]:
        """The word and all indexed words with its stem."""
        return {word} | self.forms(con, word)

    def forms(self, con: Connection, word: str) -> frozenset[str]:
        """All indexed words with the stem of a word, cached: many questions ask for the same few words."""
        if con.fresh is not None:
            return frozenset(indexed_forms(con, word))
        version = (id(con), con.data_version())  # changes with every write of another connection
        if self._families[0] != version or len(self._families[1]) > CACHED_STEMS:
            self._families = (version, {})
        (stem,) = analyse.terms([word])
        forms = self._families[1].get(stem)
        if forms is None:
            forms = self._families[1][stem] = frozenset(indexed_forms(con, word))
        return forms

    def update(self, con: Connection, doc: int, before: Entry | None, after: Entry | None, new: NewWords) -> bool:
        """Update the index of an entry if its text changed. False when the entry waits for the index."""
        last = self.last(con)
        if doc > last:
            new.waiting = max(new.waiting, doc - last)
            return False
        old_text, new_text = indexed_text(before), indexed_text(after)
        if old_text == new_text:
            return True
        if old_text:
            con.execute("DELETE FROM terms WHERE rowid = ?", (doc,))
        self._read_generation(con, new)
        words = analyse.index_words(new_text)
        if after is not None and new_text:
            self._add(con, [(doc, words, folded_tags(after))], new)
        if old_text:
            self._remove_unused(con, set(analyse.index_words(old_text)).difference(words), new)
        return True

    def last(self, con: Connection) -> int:
        """The number of the last text that is in the index; later ones wait."""
        return cast(int, con.execute("SELECT last FROM indexed").fetchall()[0][0])

    def catch_up(self, con: Connection, new: NewWords, least: int = 1) -> int:
        """Index what waits, inside a transaction, if there is so much of it. Returns how many texts that were."""
        if least > 1 and new.waiting < least:
            return 0
        texts = list(waiting_texts(con, self.last(con)))
        if texts:
            self.append(con, texts, new)
        new.waiting = 0
        return len(texts)

    def append(self, con: Connection, texts: Sequence[WaitingText], new: NewWords) -> None:
        """Index the texts that wait; they are all there are."""
        self._read_generation(con, new)
        self._add(con, [(doc, analyse.index_words(text), tags) for doc, _, text, tags in texts if text], new)
        con.executemany(WAITING_VECTOR, [(*scope, doc) for doc, scope, text, _ in texts if text])
        con.execute("UPDATE indexed SET last = ?", (texts[-1][0],))

    def waiting_terms(self, con: Connection) -> list[tuple[int, frozenset[str]]]:
        """The texts that wait, newest first, by number and terms. These are cached: a write may ask for them."""
        numbered = con.rows("SELECT rowid, hash FROM entries WHERE rowid > (SELECT last FROM indexed)")
        cached = self._waiting
        numbered.reverse()
        if numbered != [*cached]:
            self._waiting = {name: cached.get(name) or terms_of(con, name[0]) for name in numbered}
        return [(doc, terms) for (doc, _), terms in self._waiting.items()]

    def _add(self, con: Connection, texts: Sequence[tuple[int, Sequence[str], Iterable[str]]], new: NewWords) -> None:
        """Add texts to the index: their numbers, words and tags."""
        tokens = [(doc, " ".join((*words, *map(tag_token, tags)))) for doc, words, tags in texts]
        con.executemany("INSERT INTO terms (rowid, text) VALUES (?, ?)", tokens)
        unknown = set().union(*(words for _, words, _ in texts)) - self._cached - new.words
        fresh = con.rows(NEW_AMONG, (json.dumps([*unknown]),))
        # In the order of the table, so that a page is written once.
        con.executemany(NEW_PIECE, sorted((piece, word) for (word,) in fresh for piece in analyse.pieces(word)))
        new.words |= unknown

    def _read_generation(self, con: Connection, new: NewWords) -> None:
        row = con.execute("SELECT word FROM pieces WHERE piece = ''").fetchone()
        generation = str(row[0]) if row else ""
        if generation != self._generation:  # another process removed words that this one may have cached
            self._cached, self._generation = set(), generation
        if generation != new.generation:
            new.words.clear()
            new.generation = generation

    def _remove_unused(self, con: Connection, words: set[str], new: NewWords) -> None:
        """Remove words from `pieces` that no entry holds any more."""
        unused: list[str] = [row[0] for row in con.execute(UNUSED, (json.dumps(sorted(words)),))] if words else []
        if not unused:
            return
        con.executemany(
            "DELETE FROM pieces WHERE piece = ? AND word = ?",
            [(piece, word) for word in unused for piece in analyse.pieces(word)],
        )
        # A random generation, so that a removal that is rolled back cannot be mistaken for another one.
        generation = os.urandom(8).hex()
        con.execute("DELETE FROM pieces WHERE piece = ''")
        con.execute("INSERT INTO pieces VALUES ('', ?)", (generation,))
        new.words.difference_update(unused)
        new.generation = self._generation = generation
        self._cached = self._cached.difference(unused)
        self._families = (None, {})


def tidy(con: Connection, table: str, pages: int = TIDY_PAGES) -> None:
    """Rewrite some pages of the index without deleted text; until then the index merely skips it."""
    con.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-pages,))  # noqa: S608 - a constant name


def waits(con: Connection) -> bool:
    """Whether a text waits for the index."""
    return bool(con.execute("SELECT last < (SELECT max(rowid) FROM entries) FROM indexed").fetchall()[0][0])


def terms_of(con: Connection, doc: int) -> frozenset[str]:
    """The terms of one text."""
    texts = (text for number, _, text, _ in waiting_texts(con, doc - 1, 1) if number == doc)
    return frozenset([term for text in texts for term in map(analyse.term, analyse.index_words(text))])


def waiting_texts(con: Connection, last: int, most: int = -1) -> Iterator[WaitingText]:
    """The texts after a number, with their project and tags. Damaged ones too, so that they are found and named."""
    for doc, *columns in con.rows(WAITING_TEXTS, (last, most)):
        tenant, project, kind, key, content, tags = (bytes(column).decode(errors="replace") for column in columns)
        try:
            labels = tuple(map(str, json.loads(tags)))
        except (ValueError, TypeError):
            labels = ()
        entry = Entry(kind, key, "", content, labels, False, False, "", EMPTY, 1, 0, 0)
        yield doc, Scope(tenant, project), indexed_text(entry), folded_tags(entry)


@lru_cache(2_000)
def tag_token(folded: str) -> str:
    """The token for a tag. Words of a text have no diacritics, so none of them is such a token."""
    return "\u00ff" + folded.encode().hex()


# --- what may say the same --------------------------------------------------------------------------------------------

SKETCHED = (NOTE, MEMORY)  # kinds whose writes name duplicates


def sketch(con: Connection, scope: Scope, doc: int, before: Entry | None, after: Entry | None) -> None:
    """Update the marks by which texts that may say the same are found: those of open entries of some kinds."""
    old, new = _marks(before), _marks(after)
    if old == new:
        return
    for mark in old:
        con.execute(NO_SKETCH, (*scope, *mark, doc))
    for mark in new:
        con.execute(NEW_SKETCH, (*scope, *mark, doc))


def sketch_all(con: Connection, scope: Scope, entries: Iterable[tuple[int, Entry]]) -> None:
    """The same for new entries, in the order of the table, so that a page is written once."""
    con.executemany(NEW_SKETCH, sorted((*scope, *mark, doc) for doc, entry in entries for mark in _marks(entry)))


def _marks(entry: Entry | None) -> tuple[tuple[int, int], ...]:
    if entry is None or entry.done or entry.kind not in SKETCHED:
        return ()
    return rows.marks_of(entry.kind, entry.content)


def similar(con: Connection, scope: Scope, kind: str, text: str) -> tuple[list[int], list[int]]:
    """The numbers of texts that may say the same, newest first: those with the same text, and with the same gist."""
    numbers: list[list[int]] = [[], []]
    for mark, most, docs in zip(
        reversed(rows.marks_of(kind, text)), (SAME_LOOKED_AT, NEAR_LOOKED_AT), numbers, strict=False
    ):
        docs += [doc for (doc,) in con.execute(SKETCHES, (*scope, *mark, most))]
    return numbers[0], numbers[1]


def any_of(words: Iterable[str]) -> str:
    """Alternatives in FTS5 syntax. Words are letters and digits, and quoted, so none is read as syntax.

    No words match nothing: the empty phrase.
    """
    return "(" + (" OR ".join(f'"{word}"' for word in sorted(words)) or '""') + ")"


def source_of(scope: Scope, query: Listing, match: str | None = None) -> tuple[str, tuple[Any, ...]]:
    """The FROM and WHERE of a listing, and their values. Tags are tokens of the index."""
    matches = [f"({match})"] if match else []
    matches += [any_of([tag_token(tag)]) for tag in query.tags]
    matches += [any_of([tag_token(tag) for tag in query.tags_any])] if query.tags_any else []
    conditions = [f"e.tenant = ? AND e.project = ? AND e.kind IN ({', '.join('?' * len(query.kinds))})"]
    values: list[Any] = [*scope, *query.kinds]
    if query.session is not None:
        conditions.append("e.session = ?")
        values.append(query.session)
    conditions += [condition for condition in (_by_done(query),) if condition]
    if query.pinned:
        conditions.append("e.pinned = 1")
    if query.now and not query.include_replaced:
        conditions.append("(+e.expires_at IS NULL OR +e.expires_at > ?)")
        values.append(query.now)
    table = "entries e"
    if matches:
        table = "terms t CROSS JOIN entries e ON e.rowid = t.rowid"
        conditions.append("terms MATCH ?")
        values.append(" AND ".join(matches))
    return f"{table} WHERE {' AND '.join(conditions)}", tuple(values)


def _by_done(query: Listing) -> str:
    """What was replaced is done too."""
    if query.include_replaced:
        return "" if query.include_done else "(e.done = 0 OR e.replaced = 1)"
    return "e.replaced = 0" if query.include_done else "e.done = 0"


def indexed_forms(con: Connection, word: str) -> set[str]:
    """All indexed words with the stem of a word. Empty: no entry holds the word in any form.

    They share a prefix, up to a last letter that stemming may change.
    """
    (stem,) = analyse.terms([word])
    if len(stem) < STEM_MIN_CHARS:  # too many words begin like it; try its usual forms instead
        return {form for form in _usual_forms(stem, word) if _is_word(con, form)}
    prefix = stem[:-1] if stem[-1] in "eily" else stem
    begun = _words_with(con, prefix, begins=True)
    forms = _with_stem(stem, sorted(begun))
    if len(begun) > EXPAND_MAX:  # not all of them were read
        usual = _usual_forms(stem, word) - forms
        forms |= {form for form in usual if _is_word(con, form)}
    return forms


@lru_cache(2_000)
def _usual_forms(stem: str, word: str) -> frozenset[str]:
    return frozenset(_with_stem(stem, sorted(_forms(stem) | {word})))


def _with_stem(stem: str, words: list[str]) -> set[str]:
    return {word for word, term in zip(words, analyse.terms(words), strict=True) if term == stem}


def _forms(stem: str) -> set[str]:
    """Words that may have a short stem: try, tries, dying, running. The stemmer decides which of them do."""
    start = stem[:-1]
    bases = (stem, start, start + "y", start + "i", start + "e", stem + "e", stem + stem[-1], stem[:-2] + "y")
    return {base + ending for base in bases for ending in ENDINGS}


def every_word(runs: Iterable[str]) -> str | None:
    """A query for every one of these runs of letters and digits as it is indexed; None where there are none."""
    tokens = [analyse.cut(analyse.whole_words(run)) for run in runs]
    return " AND ".join(f'"{" ".join(words)}"' for words in tokens if words) or None


def may_contain(con: Connection, folded: str) -> str | None:
    """A word query that matches every entry containing the text; None when a full scan is needed.

    The first and last word of the text may be parts of longer words, so every word that ends or begins with them is an
    alternative. They may be parts of over-long words too: these are in the index in pieces, which are not side by side
    with other words, so that entries with such words match if they hold the pieces anywhere. Entries that were written
    before there were pieces over the cuts always match.
    """
    words = analyse.words(folded)
    inner = words[1:-1]
    if len(inner) >= WINDOW and max(map(len, inner)) <= analyse.WORD_MAX_CHARS:
        return any_of([" ".join(inner)])  # what is between two others is whole
    slots: list[set[str]] = []
    for index, word in enumerate(words):
        first, last = index == 0, index == len(words) - 1
        if len(word) > analyse.WORD_MAX_CHARS:
            slots.append(set())  # no word is so long
        elif not (first or last) or analyse.is_atom(word):
            slots.append({word})
        elif len(word) >= analyse.INFIX_MIN_CHARS:
            expanded = _words_with(con, word, ends=not last, begins=not first)
            if len(expanded) <= EXPAND_MAX:
                slots.append(expanded)
    if not slots:
        return None
    runs = _within_runs(con, words)
    if not all(slots):
        return " OR ".join(runs) or any_of(())
    return " OR ".join([_phrases(slots), *runs])


def _within_runs(con: Connection, words: list[str]) -> list[str]:
    """Queries for the entries whose over-long words may hold the first of the words at their end, or the last at their
    beginning, or all of a single one."""
    edges = {words[0], words[-1]}
    hexadecimal = any(map(analyse.is_hex, edges))
    uncut = [analyse.LONG, *([analyse.LONG_HEX] if hexadecimal else [])]
    bridged = [analyse.BRIDGED, *([analyse.BRIDGED_HEX] if hexadecimal else [])]
    queries = [any_of([mark]) for mark in uncut if _is_word(con, mark)]
    if len(words) == 1 and len(words[0]) <= analyse.BRIDGED_CHARS:
        return queries  # within one piece, which is a word like others
    present = [mark for mark in bridged if _is_word(con, mark)]
    groups = [any_of(present)]
    for word in words:
        if word in edges and not analyse.is_atom(word):
            holding = [_words_with(con, piece) for piece in _windows(word)]
            groups += [any_of(holders) for holders in holding if len(holders) <= EXPAND_MAX]
        elif len(word) <= analyse.WORD_MAX_CHARS:
            groups.append(any_of([word]))
    return [*queries, f"({' AND '.join(groups)})"] if present else queries


def _windows(word: str) -> list[str]:
    """Pieces of a word, of which each is within one piece of an over-long one."""
    most = analyse.BRIDGED_CHARS
    if len(word) < analyse.INFIX_MIN_CHARS:
        return []
    return [word] if len(word) <= most else list(dict.fromkeys((word[:most], word[-most:])))


def _phrases(slots: list[set[str]]) -> str:
    """A few adjacent words, which narrow the choice enough; the longest are usually the rarest."""
    start = max(range(max(1, len(slots) - WINDOW + 1)), key=lambda at: sum(map(_length, slots[at : at + WINDOW])))
    window = slots[start : start + WINDOW]
    if prod(map(len, window)) <= PHRASES_MAX or len(window) == 1:
        return any_of(" ".join(words) for words in product(*window))
    return f"({' AND '.join(map(any_of, window))})"


def _length(words: set[str]) -> int:
    return min(map(len, words))


def _is_word(con: Connection, word: str) -> bool:
    return any(layer.rows(IS_WORD, (word,)) for layer in con.layers)


def _words_with(con: Connection, piece: str, *, ends: bool = False, begins: bool = False) -> set[str]:
    """Indexed words that contain the piece; with `ends` or `begins`, those that end or begin with it."""
    values: tuple[str | int, ...] = (piece, piece + "\U0010ffff", EXPAND_MAX + 1)
    if ends:
        sql, values = "SELECT word FROM pieces WHERE piece = ? LIMIT ?", (piece, EXPAND_MAX + 1)
    elif begins:
        sql = "SELECT word FROM pieces WHERE piece >= ? AND piece < ? AND piece = word LIMIT ?"
    else:
        sql = "SELECT word FROM pieces WHERE piece >= ? AND piece < ? LIMIT ?"
    return {row[0] for layer in con.layers for row in layer.execute(sql, values)}
