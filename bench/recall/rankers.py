"""The ways of ranking that are compared. Each is given a set of texts and answers questions with ids, best first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import Stemmer

import limpet
from bench.recall.sets import Set, Unit
from limpet.api import Limpet
from limpet.model import milliseconds
from limpet.recall import rank as ranking
from limpet.recall.embeddings import Embeddings, catch_up
from limpet.recall.question import STOP
from limpet.settings import RecallRules
from limpet.wiring import choose_embeddings

SHOWN = 20  # ids a ranker gives for a question
BEGAN = 1_700_000_000_000  # for texts without a time
NOTE_CHARS = 4_000
_WORD = re.compile(r"\w+")


class Ranker(NamedTuple):
    ask: Callable[[str], list[str]]
    size: int = 0  # bytes on disk, where there are any


class Ours:
    """Limpet, through its public library: turns of a session become notes of it, other texts become memory."""

    def __init__(self, store: str, project: str, model: str = "static", **rules: bool) -> None:
        self._now = BEGAN
        self.hold: Limpet = limpet.open(store, project=project, clock=lambda: self._now)
        recall = RecallRules(meaning=rules.pop("meaning", True), model=model)
        self.hold._bounds = self.hold._bounds._replace(recall=recall)
        self.hold._embeddings = Embeddings(lambda: choose_embeddings(recall))
        self._signals = ranking.Signals(**rules)
        self._ids: dict[str, str] = {}

    def leave_out(self, names: Iterable[str]) -> None:
        """Ask from now on without these signals; `meaning` is one of them."""
        out = set(names)
        self._signals = ranking.Signals(**dict.fromkeys(out - {"meaning"}, False))
        recall = self.hold._bounds.recall._replace(meaning="meaning" not in out)
        self.hold._bounds = self.hold._bounds._replace(recall=recall)
        self.hold._embeddings = Embeddings(lambda: choose_embeddings(recall))

    def lend_vectors(self, other: Ours) -> None:
        """The other store uses this one's model, and each text is embedded once: a transformer takes long."""
        embeddings = self.hold._embeddings
        assert embeddings is not None
        other.hold._embeddings = embeddings
        if chosen := embeddings.models().best():
            known: dict[str, bytes] = {}
            make = chosen.model.stored

            def stored(texts: Sequence[str]) -> list[bytes]:
                missing = [text for text in dict.fromkeys(texts) if text not in known]
                known.update(zip(missing, make(missing) if missing else (), strict=True))
                return [known[text] for text in texts]

            chosen.model.stored = stored  # type: ignore[method-assign]

    def add(self, units: Iterable[Unit]) -> None:
        for number, unit in enumerate(sorted(units, key=lambda unit: (unit.time, unit.session, unit.order))):
            self._now = milliseconds(unit.time) if unit.time else self._now + 1
            if unit.session and len(unit.told()) <= NOTE_CHARS:
                key = self.hold.session(f"s-{unit.session}"[:200]).notes.add(unit.told()).id
            else:
                key = self.hold.memory.write(f"unit-{number}", unit.told()[:100_000]).key
            self._ids[key] = unit.id
        self._embed()

    def _embed(self) -> None:
        """What `limpet index` does. Questions do it for a static model."""
        embeddings = self.hold.context().embeddings
        chosen = embeddings.models().best() if embeddings and self.hold.bounds.recall.meaning else None
        while chosen and catch_up(chosen, self.hold.store, self.hold.scope):
            pass

    def ask(self, query: str, more: bool = True) -> list[str]:
        """The ids of the answer. With `more` it is the whole order; without, as it is given by default."""
        ranking.SIGNALS = self._signals
        found = self.hold.recall(query.replace("\0", " "), limit=SHOWN, tokens=10_000, more=more)
        keys = [key for hit in found.hits for key in (hit.key, *hit.same, *hit.replaces)]
        return [self._ids[key] for key in keys if key in self._ids][:SHOWN]


def substring(one: Set) -> Ranker:
    """By how many of the words of the question a text contains."""
    texts = [(unit.id, unit.told().lower()) for unit in one.units]

    def ask(query: str) -> list[str]:
        words = _content(query)
        counts = [(sum(word in text for word in words), id) for id, text in texts]
        return [id for count, id in sorted(counts, key=lambda pair: -pair[0])[:SHOWN] if count]

    return Ranker(ask)


def fts5(one: Set, path: Path) -> Ranker:
    """SQLite's own ranking: porter stems, any of the words, without stop words."""
    con = _fts5(one, path)

    def ask(query: str) -> list[str]:
        found = con.execute("SELECT id FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (_match(query), SHOWN))
        return [row[0] for row in found]

    return Ranker(ask, path.stat().st_size)


def _fts5(one: Set, path: Path) -> apsw.Connection:
    con = apsw.Connection(str(path))
    con.execute("CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, text, tokenize='porter unicode61')")
    with con:
        con.executemany("INSERT INTO t VALUES (?, ?)", [(unit.id, unit.told()) for unit in one.units])
    return con


def _match(query: str) -> str:
    return " OR ".join(f'"{word}"' for word in _content(query)) or '""'


def bm25(one: Set) -> Ranker:
    """The library bm25s with English stems and stop words."""
    import bm25s

    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25()
    index.index(
        bm25s.tokenize([u.told() for u in one.units], stopwords="en", stemmer=stemmer, show_progress=False),
        show_progress=False,
    )

    def ask(query: str) -> list[str]:
        words = bm25s.tokenize(query, stopwords="en", stemmer=stemmer, show_progress=False)
        found, _ = index.retrieve(words, k=min(SHOWN, len(one.units)), show_progress=False)
        return [one.units[at].id for at in found[0]]

    return Ranker(ask)


def embedding(one: Set) -> Ranker:
    """wordllama's static vectors, which are inside its package."""
    import numpy as np

    known = _vectors([unit.told() for unit in one.units])

    def ask(query: str) -> list[str]:
        near = known @ _vectors([query])[0]
        return [one.units[at].id for at in np.argsort(-near)[:SHOWN]]

    return Ranker(ask, known.nbytes)


def linear(one: Set, path: Path, share: float) -> Ranker:
    """FTS5's BM25 and the cosine of wordllama's vectors, each divided by its best, as a weighted sum over all texts."""
    import numpy as np

    con, known = _fts5(one, path), _vectors([unit.told() for unit in one.units])

    def ask(query: str) -> list[str]:
        scores = np.zeros(len(one.units))
        found: list[Any] = con.execute("SELECT rowid, rank FROM t WHERE t MATCH ?", (_match(query),)).fetchall()
        scores[[row[0] - 1 for row in found]] = [-row[1] for row in found]
        near = known @ _vectors([query])[0]
        sums = (1 - share) * scores / (scores.max() or 1) + share * near / (near.max() or 1)
        return [one.units[at].id for at in np.argsort(-sums, kind="stable")[:SHOWN]]

    return Ranker(ask, known.nbytes)


def fused(first: Ranker, second: Ranker) -> Ranker:
    """Reciprocal-rank fusion, both with the same weight."""

    def ask(query: str) -> list[str]:
        sums: dict[str, float] = {}
        for ranker in (first, second):
            for rank, id in enumerate(ranker.ask(query), 1):
                sums[id] = sums.get(id, 0.0) + 1 / (60 + rank)
        return sorted(sums, key=lambda id: -sums[id])[:SHOWN]

    return Ranker(ask)


_loaded: list[Any] = []


def _wordllama() -> Any:
    """The model by hand: its own loader looks for the tokenizer in a folder that the package does not have."""
    if not _loaded:
        import wordllama
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
        from wordllama.inference import WordLlamaInference

        home = Path(wordllama.__file__).parent
        weights = next(iter(load_file(str(next(home.glob("weights/*256.safetensors")))).values()))
        tokenizer = Tokenizer.from_file(str(next(home.glob("tokenizers/*.json"))))
        _loaded.append(WordLlamaInference(weights, tokenizer))
    return _loaded[0]


def _vectors(texts: Sequence[str]) -> Any:
    import numpy as np

    found = np.asarray(_wordllama().embed(list(texts)), dtype=np.float32)
    return found / (np.linalg.norm(found, axis=1, keepdims=True) + 1e-9)


def _content(query: str) -> list[str]:
    words = list(dict.fromkeys(_WORD.findall(query.lower())))
    return [word for word in words if word not in STOP] or words
