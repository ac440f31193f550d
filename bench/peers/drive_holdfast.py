"""Our own library, driven as the peers are."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import holdfast
from bench.corpus import Note
from bench.peers.turns import serve
from bench.stores import SESSION, export_of


class Library:
    def __init__(self, folder: Path) -> None:
        self.hold = holdfast.open(str(folder / "holdfast.db"), project="bench", session=SESSION)
        self.session = self.hold.session(SESSION)
        self.numbers = count()

    def load(self, texts: list[str]) -> None:
        self.hold.import_lines(export_of([Note(text, []) for text in texts]))

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
