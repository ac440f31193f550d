"""What the tests of `limpet wrap` and `limpet gateway` share: commands, calls, and reading back what was kept."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from doors.mcp_client import Lines, Reply
from person import trusted

UPSTREAM = str(Path(__file__).with_name("upstream.py"))
BIG = 20_000
MASK = "📁 Output cached: "
LIMPET = (sys.executable, "-m", "limpet")


def wrapped(store: str | Path, *upstream: str, options: Sequence[str] = ()) -> list[str]:
    ours = [*LIMPET, "wrap", *trusted(store), *options, "--"]
    return [*ours, sys.executable, UPSTREAM, *(upstream or ("serve",))]


@contextmanager
def opened(command: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[Lines]:
    with Lines(command, env) as lines:
        lines.open("2025-11-25")
        yield lines


def ask(client: Lines, tool: str, **arguments: object) -> Reply:
    return client.ask("tools/call", {"name": tool, "arguments": arguments})


def shown(result: Reply, item: int = 0) -> str:
    text: str = result["content"][item]["text"]
    return text


def id_in(text: str) -> str:
    assert text.startswith(MASK), text[:200]
    return text.removeprefix(MASK).split()[0]


def read_back(client: Lines, id: str, tool: str = "read_output") -> str:
    """All of an output, page by page."""
    pages: list[str] = []
    more: Mapping[str, object] = {}
    while True:
        page, cursor = page_of(client.text(tool, id=id, **more))
        pages.append(page)
        if not cursor:
            return "".join(pages)
        more = {"cursor": cursor}


def page_of(text: str) -> tuple[str, str]:
    """A page as read_output answers it, and the cursor of the next; empty at the end."""
    content, _, remark = text.rpartition("\n[")
    return (content, remark.partition("cursor=")[2].rstrip("]")) if remark.endswith("]") else (text, "")
