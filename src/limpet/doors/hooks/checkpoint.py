"""What is kept of a conversation when its client compacts it or ends: from the client's own file, without a model."""

from __future__ import annotations

from typing import NamedTuple

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.clients.transcripts import reading
from limpet.model import AGENT, TOOL, lowest
from limpet.session import notepad
from limpet.window.messages import USER, Message, user
from limpet.window.plan import facts, summary
from limpet.window.plan.groups import groups

REQUEST_CHARS = 1_000  # of the last request that are repeated word for word
OPEN_ITEMS = 20  # of the notepad's open items in a draft; the next session can read the rest
HEADING = "## What the conversation said before it was compacted (gathered by Limpet, without a model)"
DRAFT = "(Drafted by Limpet: the session ended without a handoff of its own.)"


class Talk(NamedTuple):
    request: str  # the last thing asked for
    summary: str
    worked: bool  # whether any tool was called
    source: str  # whose word it is: the least trusted of whoever spoke


def talk(path: str, budget: int = limits.CHECKPOINT_TOKENS) -> Talk:
    """What a client's file says. A client without one, or one that cannot be read, said nothing."""
    try:
        messages = reading.tail(path) if path else ()
    except OSError:
        messages = ()
    said = facts.merge(facts.gather([messages[index] for index in group]) for group in groups(messages))
    text = summary.summarise(said, budget) if said else ""
    source = TOOL if any(message.results() for message in messages) else AGENT
    return Talk(_last_request(messages), text, any(message.calls() for message in messages), source)


def checkpoint(path: str) -> tuple[str, str]:
    """The text that stands in the context after a compaction, empty when nothing is known; and whose word it is."""
    found = talk(path)
    asked = f"Last request: {found.request}" if found.request else ""
    parts = [part for part in (asked, found.summary) if part]
    return ("\n".join([HEADING, *parts]) if parts else ""), found.source


def draft(ctx: Context, path: str) -> tuple[str, str]:
    """A handoff for a session that left none, empty when it did nothing worth it; and whose word it is."""
    pad = notepad.read_notepad(ctx)
    found = talk(path)
    if not (pad.content.strip() or found.worked):
        return "", found.source
    items = facts.merge([facts.gather([user(pad.content)])]).get(facts.OPEN, [])
    parts = [DRAFT]
    if found.request:
        parts.append(f"Last request: {found.request}")
    if items:
        parts.append("\n".join(["Open in the notepad:", *(f"- [ ] {item}" for item in items[:OPEN_ITEMS])]))
    elif pad.content.strip():
        parts.append(f"Notepad:\n{pad.content.strip()[:REQUEST_CHARS]}")
    if found.summary:
        parts.append(found.summary)
    return "\n\n".join(parts), lowest(found.source, pad.origin)


def _last_request(messages: tuple[Message, ...]) -> str:
    asked = [text for message in messages if message.role == USER and (text := " ".join(message.text().split()))]
    last = asked[-1] if asked else ""
    return last if len(last) <= REQUEST_CHARS else f"{last[: REQUEST_CHARS - 1]}…"
