"""Our own library, driven as the peers are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import limpet
from bench.peers.turns import serve
from bench.stores import BEGAN, SESSION
from limpet.api import Limpet
from limpet.model import NOTE, Draft, Stamp
from limpet.store import Decide


def fill(hold: Limpet, texts: Sequence[str]) -> None:
    """Many notes in few transactions; each text begins with its number."""
    for first in range(0, len(texts), 500):
        edits: list[tuple[str, str, Decide]] = []
        for text in texts[first : first + 500]:
            draft = Draft(text, SESSION, ())
            edits.append((NOTE, f"note_{BEGAN + int(text[1:7])}", lambda before, draft=draft: draft))  # type: ignore[misc]
        hold.store.entries.edit_all(hold.scope, edits, Stamp("agent/bench", "add_note", SESSION, BEGAN))


class Library:
    def __init__(self, folder: Path) -> None:
        self.hold = limpet.open(str(folder / "limpet.db"), project="bench", session=SESSION)
        self.session = self.hold.session(SESSION)
        self.numbers = count()

    def load(self, texts: list[str]) -> None:
        fill(self.hold, texts)

    def add(self, text: str) -> object:
        return self.session.notes.add(text)

    def search(self, query: str) -> str:
        found = self.hold.call("search_notes", {"query": query, "limit": 10})
        return "\n".join(note["content"] for note in [*found["notes"], *found.get("related", [])])

    def keep(self, text: str) -> tuple[str, str] | None:
        kept = self.session.outputs.keep("bench", f"{text}{next(self.numbers)}")
        return (kept.output.id, kept.text) if kept.output else None

    def part(self, name: str, line: int) -> str | None:
        return self.session.outputs.read(name, lines=f"{line}-{line + 49}").content


if __name__ == "__main__":
    serve(Library)
