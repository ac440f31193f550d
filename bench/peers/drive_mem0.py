"""mem0 without extraction, on its own local Qdrant and with hashed vectors; runs in mem0's own environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bench.peers.turns import WIDTH, serve, vector

os.environ.setdefault("MEM0_TELEMETRY", "False")
os.environ.setdefault("OPENAI_API_KEY", "never-used")  # without extraction no model is asked


class Hashed:
    """Stands where an embedding model would."""

    config: Any = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return vector(text)

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [vector(text) for text in texts]


class Mem0:
    def __init__(self, folder: Path) -> None:
        os.environ["MEM0_DIR"] = str(folder)
        from mem0 import Memory  # late: it looks for its folder when it is imported

        where = {"path": str(folder / "qdrant"), "embedding_model_dims": WIDTH, "on_disk": True}
        self.memory: Any = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": where},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self.memory.embedding_model = Hashed()

    def load(self, texts: list[str]) -> None:
        for text in texts:
            self.add(text)

    def add(self, text: str) -> object:
        return self.memory.add(text, user_id="bench", infer=False)

    def search(self, query: str) -> str:
        found = self.memory.search(query, top_k=10, filters={"user_id": "bench"}, threshold=0.0)
        return "\n".join(one["memory"] for one in found["results"])

    def keep(self, text: str) -> tuple[str, str] | None:
        return None

    def part(self, name: str, line: int) -> str | None:
        return None


if __name__ == "__main__":
    serve(Mem0)
