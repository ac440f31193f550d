"""A summary of a conversation from the agent's own transcript, made without a model, for a compaction or an end."""

from __future__ import annotations

from collections.abc import Callable

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

KEPT = ", but kept and searchable"  # what facts.summarise says of what it leaves out; a turn's end stores no messages
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
    typed: str = ""  # what a person typed, where tools spoke too; the text is without it
    request_typed: bool = False


class DraftText(NamedTuple):
    """A handoff for a session that wrote none; empty if it did no work."""

    text: str
    source: str
    typed: int = 0  # characters at its beginning that a person typed


def summarise(
    path: str,
    writer: CodingAgent,
    budget: int = limits.CHECKPOINT_TOKENS,
    is_typed: Callable[[str], bool] = lambda text: False,
) -> Summary:
    """The summary of a transcript. A missing or unreadable file counts as an empty one."""
    try:
        end = transcripts.tail(path, writer) if path else NO_TRANSCRIPT
    except OSError:
        end = NO_TRANSCRIPT
    # Masked before it is shortened: half a secret would not be recognised.
    messages = tuple(masked(Masking(), message) for message in end.messages)
    source = TOOL if any(message.results() for message in messages) else AGENT
    own = [
        index
        for index, message in enumerate(end.messages)
        if source == TOOL and message.role == USER and is_typed(message.text())
    ]
    typed = facts.merge(facts.gather([messages[index]]) for index in own)
    rest = ([index for index in group if index not in own] for group in groups(messages))
    gathered = facts.merge(facts.gather([messages[index] for index in group]) for group in rest if group)
    requests = _requests(messages)
    last, name = (requests or [""])[-1], end.title or (requests or [""])[0]
    return Summary(
        _shortened(last),
        facts.summarise(gathered, budget // 2 if typed else budget) if gathered else "",
        sum(len(message.calls()) for message in messages),
        source,
        name,
        end.messages,
        facts.summarise(typed, budget // 2) if typed else "",
        bool(own) and own[-1] == max(index for index, message in enumerate(messages) if message.role == USER),
    )


def checkpoint(talk: Summary) -> tuple[str, str]:
    """The text for the context after a compaction, empty if nothing is known, and its provenance."""
    request = f"Last request: {talk.request}" if talk.request else ""
    parts = [part for part in (request, talk.text) if part]
    return ("\n".join([HEADING, *parts]) if parts else ""), talk.source


def draft(ctx: Context, talk: Summary, work: OpenWork | None = None) -> DraftText:
    pad = notepad.read_notepad(ctx)
    # A session that answered without a tool uses a handoff up too. What it left undone must not be lost with it.
    # Some agents name no transcript: then its notepad shows that it called tools.
    worked = bool(talk.calls or pad.content.strip())
    carried = [] if worked else handoff.taken_up(ctx)
    if not (worked or carried):
        return DraftText("", talk.source)
    items = facts.merge([facts.gather([user(pad.content)])]).get(facts.OPEN, [])
    request = [f"Last request: {talk.request}"] if talk.request else []
    by_person = [handoff.DRAFT, *(request if talk.request_typed else []), talk.typed] if talk.typed else []
    parts = list(by_person or [handoff.DRAFT])
    if not talk.request_typed:
        parts += request
    if items:
        parts.append("\n".join(["Open in the notepad:", *(f"- [ ] {item}" for item in items[:OPEN_ITEMS])]))
    elif pad.content.strip():
        parts.append(f"Notepad:\n{pad.content.strip()[:REQUEST_CHARS]}")
    waiting, goals = work or ((), ())
    for title, texts in (("Blocked by", waiting), ("Not finished", goals)):
        if texts:
            parts.append("\n".join([f"{title}:", *(f"- {text}" for text in texts[:OPEN_ITEMS])]))
    if talk.text:
        parts.append(talk.text)
    if carried:
        earlier = "\n\n".join(_carried(item) for item in carried)[:CARRIED_CHARS]
        parts.append(f"{CARRIED}\n\n{earlier}")
    origins = (talk.source, pad.origin, *([FILE] if waiting or goals else []), *(item.origin for item in carried))
    typed = len("\n\n".join(by_person).replace(KEPT, ""))
    return DraftText("\n\n".join(parts).replace(KEPT, ""), lowest(*origins), typed)


def _carried(item: Handoff) -> str:
    """The text of a handoff without what says that Limpet drafted or carried it."""
    text = item.content.removeprefix(handoff.EARLIER_DRAFT).removeprefix(handoff.DRAFT)
    return text.replace(f"{CARRIED}\n\n", "").strip()


def _requests(messages: tuple[Message, ...]) -> list[str]:
    """What the user said, each in one line."""
    return [text for message in messages if message.role == USER and (text := " ".join(message.text().split()))]


def _shortened(request: str) -> str:
    return request if len(request) <= REQUEST_CHARS else f"{request[: REQUEST_CHARS - 1]}…"
