"""The stores of LangGraph, with hashed vectors; the second argument says which. Runs in LangGraph's own environment."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from bench.peers.turns import WIDTH, serve, vectors

PLACE = ("notes",)
OUTPUTS = ("outputs",)


class Store:
    def __init__(self, folder: Path) -> None:
        index: Any = {"dims": WIDTH, "embed": vectors, "fields": ["text"]}
        self.numbers = count()
        if sys.argv[2] == "memory":
            self.store: Any = InMemoryStore(index=index)
        else:
            self.opened = SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
            self.store = self.opened.__enter__()
            self.store.setup()

    def load(self, texts: list[str]) -> None:
        for first in range(0, len(texts), 500):
            some = texts[first : first + 500]
            self.store.batch([PutOp(PLACE, str(next(self.numbers)), {"text": text}) for text in some])

    def add(self, text: str) -> object:
        return self.store.put(PLACE, str(next(self.numbers)), {"text": text})

    def search(self, query: str) -> str:
        return "\n".join(item.value["text"] for item in self.store.search(PLACE, query=query, limit=10))

    def keep(self, text: str) -> tuple[str, str] | None:
        """There is no preview; what is shown in its place is up to the program around it."""
        if sys.argv[2] == "memory":
            return None
        name = str(next(self.numbers))
        self.store.put(OUTPUTS, name, {"text": text}, index=False)
        return name, ""

    def part(self, name: str, line: int) -> str | None:
        lines = self.store.get(OUTPUTS, name).value["text"].split("\n")
        return "\n".join(lines[line - 1 : line + 49])


if __name__ == "__main__":
    serve(Store)
