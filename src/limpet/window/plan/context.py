"""The sections of a request, their order and their budgets.

Providers cache the start of a request as long as its bytes stay the same. So the stable sections come first: handoff,
system prompt, skills, tools, memory and journal; then the history, which grows at its end; and last, one message with
what changes while the agent works: notepad, scratchpad, pins, and what was recalled for the last prompt. An edit of the
notepad then invalidates the notepad and nothing before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from limpet.record import NamedTuple
from limpet.text import tokens
from limpet.window.messages import ASSISTANT, SYSTEM, TOOL, USER, Message, Text, system, user

HANDOFF, PROMPT, SKILLS, TOOLS, MEMORY, JOURNAL = "handoff", "system prompt", "skills", "tools", "memory", "journal"
NOTEPAD, SCRATCHPAD, PINS, RECALLED = "notepad", "scratchpad", "pins", "recalled"
HEAD = (HANDOFF, PROMPT, SKILLS, TOOLS, MEMORY, JOURNAL)
LATE = (NOTEPAD, SCRATCHPAD, PINS, RECALLED)
MARK = "[Working state, kept outside the conversation and current as of now]"
HEAD_MARK = "[Standing sections, kept outside the conversation]"
HANDOFF_BEGINS = ("## Handoff from the last session", "A handoff also waits for: ")
WARNING_BEGINS = "[System] Context is approaching the token limit"
INJECTED = {USER: (MARK, WARNING_BEGINS), SYSTEM: (HEAD_MARK, *HANDOFF_BEGINS)}  # how these messages begin
HISTORY = {USER: "user", ASSISTANT: "assistant", TOOL: "tool results", SYSTEM: "system notes"}
FOLDS = "folds"
DEFINITIONS = "tool definitions"


class PromptSection(NamedTuple):
    text: str
    budget: int | None = None  # tokens; None: no limit
    more: str = ""  # how to read the rest if it is cut


class Assembled(NamedTuple):
    """The parts of a request that are not history."""

    first: str  # before the caller's own system prompt
    head: str  # after it
    late: str  # after the history
    sizes: Mapping[str, int]  # tokens by section
    left_out: tuple[str, ...]  # sections that were cut, and how to read the rest


def assemble(sections: Mapping[str, PromptSection]) -> Assembled:
    """The sections in order, each within its budget. Deterministic: equal sections give equal bytes."""
    fitted = {name: _fitted(name, section) for name, section in sections.items() if section.text}
    texts = {name: fitted[name].text for name in (*HEAD, *LATE) if name in fitted and fitted[name].text}
    standing = [texts[name] for name in HEAD[1:] if name in texts]
    head = "\n\n".join([HEAD_MARK, *standing]) if standing else ""
    late = "\n\n".join([MARK, *(texts[name] for name in LATE if name in texts)])
    sizes = {name: fitted[name].tokens for name in texts}
    left_out = tuple(fitted[name].left_out for name in texts if fitted[name].left_out)
    return Assembled(texts.get(HANDOFF, ""), head, late, sizes, left_out)


class _Fitted(NamedTuple):
    text: str
    tokens: int
    left_out: str


@lru_cache(maxsize=64)  # most sections are the same as in the last request
def _fitted(name: str, section: PromptSection) -> _Fitted:
    """A section cut to its budget."""
    text, cut = (section.text, False) if section.budget is None else tokens.cut(section.text, section.budget)
    left_out = ""
    if cut:
        note = f"{name}: {tokens.count(section.text) - tokens.count(text):,} tokens left out"
        left_out = f"{note}; {section.more}" if section.more else note
        text = f"{text}\n[{left_out}]"
    return _Fitted(text, tokens.count(text), left_out)


def request(parts: Assembled, prompt: Sequence[Message], history: Sequence[Message], warning: str) -> list[Message]:
    """The messages to send: the stable sections, the history, and the changing sections."""
    first = [system(parts.first)] if parts.first else []
    head = [system(parts.head)] if parts.head else []
    last = [user(warning)] if warning else []
    return [*first, *prompt, *head, *history, user(parts.late), *last]


def split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The caller's own system prompt, and the conversation, both without the messages that `request` added."""
    system_messages = list(takewhile(lambda message: message.role == SYSTEM, messages))
    prompt = [message for message in system_messages if not is_injected(message)]
    return prompt, [message for message in messages[len(system_messages) :] if not is_injected(message)]


def is_injected(message: Message) -> bool:
    """Whether `request` added it earlier: the sections before and after the history, or a warning."""
    if len(message.parts) != 1 or message.role not in INJECTED:
        return False
    part = message.parts[0]  # every step looks at every message of its caller here
    return isinstance(part, Text) and part.text.startswith(INJECTED[message.role])


def shared(before: Sequence[Message], after: Sequence[Message]) -> int:
    """How many messages two requests have in common at their start: what a prompt cache can reuse."""
    count = 0
    for old, new in zip(before, after, strict=False):
        if old is not new and old != new:
            break
        count += 1
    return count
