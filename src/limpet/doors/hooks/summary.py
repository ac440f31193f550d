"""A summary of a conversation from the agent's own transcript, made without a model, for a compaction or an end."""

from __future__ import annotations

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.clients.base import CodingAgent
from limpet.importers import transcripts
from limpet.light import TYPE_CHECKING
from limpet.memory import handoff
from limpet.model import AGENT, FILE, TOOL, Handoff, lowest
from limpet.record import NamedTuple
from limpet.redaction import Masking
from limpet.session import notepad
from limpet.window.messages import USER, Message, user
from limpet.window.plan import facts
from limpet.window.plan.rules import groups
from limpet.window.transcript import masked

if TYPE_CHECKING:
    from limpet.journal.recover import OpenWork

KEPT = ", but kept and searchable"  # what facts.summarise says of what it leaves out
NO_TRANSCRIPT = transcripts.Transcript("", "", "", (), 0, ())
REQUEST_CHARS = 1_000  # of the last request, which is repeated word for word
CARRIED = "What this session took up and may not have finished:"
CARRIED_CHARS = 4_000
OPEN_ITEMS = 20  # of the notepad in a draft; the next session can read the rest
HEADING = "## What the conversation said before it was compacted (gathered by Limpet, without a model)"


class Summary(NamedTuple):
    request: str  # the last one of the user
    text: str
    calls: int  # of tools
    source: str  # provenance: the least trusted of those who spoke
    name: str  # by which people recognise the session
    messages: tuple[Message, ...]


def summarise(path: str, writer: CodingAgent, budget: int = limits.CHECKPOINT_TOKENS) -> Summary:
    """The summary of a transcript. A missing or unreadable file counts as an empty one."""
    try:
        end = transcripts.tail(path, writer) if path else NO_TRANSCRIPT
    except OSError:
        end = NO_TRANSCRIPT
    # Masked before it is shortened: half a secret would not be recognised.
    messages = tuple(masked(Masking(), message) for message in end.messages)
    gathered = facts.merge(facts.gather([messages[index] for index in group]) for group in groups(messages))
    text = facts.summarise(gathered, budget) if gathered else ""
    source = TOOL if any(message.results() for message in messages) else AGENT
    requests = _requests(messages)
    last, name = (requests or [""])[-1], end.title or (requests or [""])[0]
    calls = sum(len(message.calls()) for message in messages)
    return Summary(_shortened(last), text, calls, source, name, end.messages)


def checkpoint(talk: Summary) -> tuple[str, str]:
    """The text for the context after a compaction, empty if nothing is known, and its provenance."""
    request = f"Last request: {talk.request}" if talk.request else ""
    parts = [part for part in (request, talk.text) if part]
    return ("\n".join([HEADING, *parts]) if parts else ""), talk.source


def draft(ctx: Context, talk: Summary, work: OpenWork | None = None) -> tuple[str, str]:
    """A handoff for a session that wrote none, empty if it did no work, and its provenance."""
    pad = notepad.read_notepad(ctx)
    # A session that answered without a tool uses a handoff up too. What it left undone must not be lost with it.
    # Some agents name no transcript: then its notepad shows that it called tools.
    worked = bool(talk.calls or pad.content.strip())
    carried = [] if worked else handoff.taken_up(ctx)
    if not (worked or carried):
        return "", talk.source
    items = facts.merge([facts.gather([user(pad.content)])]).get(facts.OPEN, [])
    parts = [handoff.DRAFT]
    if talk.request:
        parts.append(f"Last request: {talk.request}")
    if items:
        parts.append("\n".join(["Open in the notepad:", *(f"- [ ] {item}" for item in items[:OPEN_ITEMS])]))
    elif pad.content.strip():
        parts.append(f"Notepad:\n{pad.content.strip()[:REQUEST_CHARS]}")
    waiting, goals = work or ((), ())
    for title, texts in (("Blocked by", waiting), ("Not finished", goals)):
        if texts:
            parts.append("\n".join([f"{title}:", *(f"- {text}" for text in texts[:OPEN_ITEMS])]))
    if talk.text:
        parts.append(talk.text.replace(KEPT, ""))  # a turn's end stores no messages
    if carried:
        earlier = "\n\n".join(_carried(item) for item in carried)[:CARRIED_CHARS]
        parts.append(f"{CARRIED}\n\n{earlier}")
    origins = (talk.source, pad.origin, *([FILE] if waiting or goals else []), *(item.origin for item in carried))
    return "\n\n".join(parts), lowest(*origins)


def _carried(item: Handoff) -> str:
    """The text of a handoff without what says that Limpet drafted or carried it."""
    text = item.content.removeprefix(handoff.EARLIER_DRAFT).removeprefix(handoff.DRAFT)
    return text.replace(f"{CARRIED}\n\n", "").strip()


def _requests(messages: tuple[Message, ...]) -> list[str]:
    """What the user said, each in one line."""
    return [text for message in messages if message.role == USER and (text := " ".join(message.text().split()))]


def _shortened(request: str) -> str:
    return request if len(request) <= REQUEST_CHARS else f"{request[: REQUEST_CHARS - 1]}…"
