"""The file system of deepagents, a file a note, and its eviction of large results; runs in its own environment."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage

from bench.peers.turns import serve


class Files:
    def __init__(self, folder: Path) -> None:
        self.backend: Any = FilesystemBackend(folder, virtual_mode=True)
        self.middleware: Any = FilesystemMiddleware(backend=self.backend)
        self.numbers = count()

    def load(self, texts: list[str]) -> None:
        for text in texts:
            self.add(text)

    def add(self, text: str) -> object:
        written = self.backend.write(f"/notes/{next(self.numbers)}.md", text)
        assert written.error is None, written.error
        return written

    def search(self, query: str) -> str:
        """Words as they stand, which is what its grep takes."""
        found = self.backend.grep(query, path="/notes")
        return "\n".join(match["text"] for match in found.matches or [])

    def keep(self, text: str) -> tuple[str, str] | None:
        name = f"call{next(self.numbers)}"
        nobody: Any = None  # the runtime, which it has no use for
        call: Any = {"name": "shell", "args": {}, "id": name, "type": "tool_call"}
        request = ToolCallRequest(call, None, {}, nobody)
        shown = self.middleware.wrap_tool_call(request, lambda _: ToolMessage(text, tool_call_id=name, name="shell"))
        return f"/large_tool_results/{name}", str(shown.content)

    def part(self, name: str, line: int) -> str | None:
        read = self.backend.read(name, offset=line - 1, limit=50)
        assert read.error is None, read.error
        return str(read.file_data["content"])


if __name__ == "__main__":
    serve(Files)
