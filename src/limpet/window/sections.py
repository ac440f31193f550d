"""The sections of a session's window, read from the store. window/plan/context.py puts them in order."""

from __future__ import annotations

from typing import NamedTuple

from limpet import errors
from limpet.catalogue.operation import Context
from limpet.journal import recover as journal
from limpet.memory import digest, handoff, memory, skills
from limpet.model import FILE, Handoff
from limpet.session import notepad, pins, prompt, tree
from limpet.text.quote import quoted
from limpet.window.plan.context import (
    HANDOFF,
    JOURNAL,
    MEMORY,
    NOTEPAD,
    PINS,
    PROMPT,
    SCRATCHPAD,
    SKILLS,
    TOOLS,
    Assembled,
    Section,
    assemble,
)

HANDOFF_TOKENS = 6_000  # the longest handoff that may be written is about as long
SKILLS_TOKENS = 2_000  # a line a skill; the bodies are read on demand
TOOLS_TOKENS = 2_000  # likewise
JOURNAL_TOKENS = 200  # level 1 of the journal keeps to 100 by itself
JOURNAL_HEADING = "## Journal (NOTES.md), level 1"
SCRATCHPAD_TOKENS = 6_000  # the longest scratchpad that may be written is about as long


class Given(NamedTuple):
    """What the caller adds to the stable part: texts that Limpet does not keep."""

    prompt: str = ""
    skills: str = ""
    tools: str = ""
    journal: str = ""


class Frozen(NamedTuple):
    """What is read once and stays as it is until the next compaction, so that the beginning of requests stays too."""

    handoff: Handoff | None
    first: str
    memory: str
    pinned: tuple[str, ...]  # memory that is pinned
    skills: str
    capsule: str  # what the parent session gave
    journal: str  # level 1 of it


class Sections(NamedTuple):
    parts: Assembled
    pins: tuple[str, ...]


def freeze(ctx: Context, line: str = handoff.MAIN) -> Frozen:
    waiting = handoff.waiting(ctx, line)
    first = handoff.section(waiting, handoff.other_lines(ctx, line))
    pinned = tuple(pins.pinned_memory(ctx))
    kept, summary = digest.digest(ctx).text, skills.summary(ctx).text
    return Frozen(waiting, first, kept, pinned, summary, tree.capsule(ctx), _journal(ctx))


def _journal(ctx: Context) -> str:
    """Where the work stands by the project's journal, if it has one that can be read."""
    try:
        return f"{JOURNAL_HEADING}\n{quoted(journal.recover_notes(ctx).text, FILE)}"
    except errors.LimpetError:
        return ""


def sections(ctx: Context, frozen: Frozen, given: Given) -> Sections:
    """All sections as they are now. The notepad and the pins are there in full, whatever they cost."""
    pinned = (*frozen.pinned, *(entry.content for entry in pins.pins(ctx)))
    parts = assemble(
        {
            HANDOFF: Section(frozen.first, HANDOFF_TOKENS, "read_handoff shows all of it"),
            PROMPT: Section(_joined(given.prompt, prompt.system_prompt(ctx), frozen.capsule)),
            SKILLS: Section(_joined(frozen.skills, given.skills), SKILLS_TOKENS),
            TOOLS: Section(given.tools, TOOLS_TOKENS),
            MEMORY: Section(frozen.memory),  # the digest keeps to its own budget and names what it left out
            JOURNAL: Section(_joined(frozen.journal, given.journal), JOURNAL_TOKENS),
            NOTEPAD: Section(notepad.section(notepad.read_notepad(ctx))),
            SCRATCHPAD: Section(
                memory.scratch_section(ctx), SCRATCHPAD_TOKENS, "scratch_note with mode read shows all of it"
            ),
            PINS: Section(pins.section(list(pinned))),
        }
    )
    return Sections(parts, pinned)


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
