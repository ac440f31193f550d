"""What a request is made of, in which order, and within which budgets.

Providers keep the beginning of a request in a cache as long as its bytes stay the same. So what is stable comes first:
the handoff, the system prompt, skills, tools, memory and the journal; then the history, which only grows at its end;
and last one message with what changes while the agent works: notepad, scratchpad and pins. An edit of the notepad then
costs the notepad and nothing before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from limpet.text import tokens
from limpet.window.messages import ASSISTANT, SYSTEM, TOOL, USER, Message, system, user

HANDOFF, PROMPT, SKILLS, TOOLS, MEMORY, JOURNAL = "handoff", "system prompt", "skills", "tools", "memory", "journal"
NOTEPAD, SCRATCHPAD, PINS = "notepad", "scratchpad", "pins"
HEAD = (HANDOFF, PROMPT, SKILLS, TOOLS, MEMORY, JOURNAL)
LATE = (NOTEPAD, SCRATCHPAD, PINS)
MARK = "[Working state, kept outside the conversation and current as of now]"
WARNING_BEGINS = "[System] Context is approaching the token limit"
HISTORY = {USER: "user", ASSISTANT: "assistant", TOOL: "tool results", SYSTEM: "system notes"}
FOLDS = "folds"


class Section(NamedTuple):
    text: str
    budget: int | None = None  # tokens; None: in full, whatever it costs
    more: str = ""  # how to read the rest of it


class Assembled(NamedTuple):
    """The parts of a request that are not history."""

    first: str  # before even the caller's own system prompt
    head: str  # after it
    late: str  # after the history
    sizes: Mapping[str, int]  # tokens by section
    left_out: tuple[str, ...]  # sections that were cut, and how to read the rest


def assemble(sections: Mapping[str, Section]) -> Assembled:
    """The sections in their order, each within its budget. The same sections give the same bytes."""
    fitted = {name: _fitted(name, section) for name, section in sections.items() if section.text}
    texts = {name: fitted[name].text for name in (*HEAD, *LATE) if name in fitted and fitted[name].text}
    head = "\n\n".join(texts[name] for name in HEAD[1:] if name in texts)
    late = "\n\n".join([MARK, *(texts[name] for name in LATE if name in texts)])
    sizes = {name: fitted[name].tokens for name in texts}
    left_out = tuple(fitted[name].left_out for name in texts if fitted[name].left_out)
    return Assembled(texts.get(HANDOFF, ""), head, late, sizes, left_out)


class _Fitted(NamedTuple):
    text: str
    tokens: int
    left_out: str


@lru_cache(maxsize=64)  # most sections of most requests are those of the one before
def _fitted(name: str, section: Section) -> _Fitted:
    """A section within its budget."""
    text, cut = (section.text, False) if section.budget is None else tokens.cut(section.text, section.budget)
    left_out = ""
    if cut:
        note = f"{name}: {tokens.count(section.text) - tokens.count(text):,} tokens left out"
        left_out = f"{note}; {section.more}" if section.more else note
        text = f"{text}\n[{left_out}]"
    return _Fitted(text, tokens.count(text), left_out)


def request(parts: Assembled, prompt: Sequence[Message], history: Sequence[Message], warning: str) -> list[Message]:
    """What to send: the stable part, the history, and what changes."""
    first = [system(parts.first)] if parts.first else []
    head = [system(parts.head)] if parts.head else []
    last = [user(warning)] if warning else []
    return [*first, *prompt, *head, *history, user(parts.late), *last]


def split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The caller's own system prompt, and the conversation without anything that `request` put into it."""
    prompt = list(takewhile(lambda message: message.role == SYSTEM, messages))
    return prompt, [message for message in messages[len(prompt) :] if not ours(message)]


def ours(message: Message) -> bool:
    """Whether it is the late part of an earlier request, or a warning, sent back to us."""
    return message.role == USER and len(message.parts) == 1 and message.text().startswith((MARK, WARNING_BEGINS))


def shared(before: Sequence[Message], after: Sequence[Message]) -> int:
    """How many messages at the beginning of two requests are the same: what a prompt cache can use again."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count
