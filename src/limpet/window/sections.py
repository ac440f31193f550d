"""The sections of a session's window, read from the store. `plan/context.py` orders them and fits their budgets."""

from __future__ import annotations

from limpet import errors, limits
from limpet.catalogue.operation import Context
from limpet.journal import recover as journal
from limpet.memory import digest, handoff, memory, skills
from limpet.model import FILE, NOTE, Entry, Handoff, Validity, moment
from limpet.model import MEMORY as MEMORY_KIND
from limpet.record import NamedTuple
from limpet.session import notepad, pins, tree
from limpet.store import Listing
from limpet.text import tokens
from limpet.text.safe import as_data, as_name, quoted
from limpet.window.plan.context import (
    HANDOFF,
    JOURNAL,
    MEMORY,
    NOTEPAD,
    PINS,
    PROMPT,
    RECALLED,
    SCRATCHPAD,
    SKILLS,
    TOOLS,
    Assembled,
    PromptSection,
    assemble,
)

HANDOFF_TOKENS = 6_000  # the longest handoff that may be written is about as long
NAMED_TOKENS = 600  # of these, for the first sentences of handoffs that are not quoted
SKILLS_TOKENS = 2_000  # one line per skill; the bodies are read on demand
TOOLS_TOKENS = 2_000  # likewise
JOURNAL_TOKENS = 200  # level 1 of the journal is limited to 100 itself
JOURNAL_HEADING = "## Journal (NOTES.md), level 1"
BEGINNING = 80  # characters by which a text is known in a section
CHANGED_HEADING = "Corrected in memory since the sections above were read, which say the old text:"
SCRATCHPAD_TOKENS = 6_000  # the longest scratchpad that may be written is about as long


class CallerSections(NamedTuple):
    """Texts that the caller adds to the stable sections; Limpet does not store them."""

    prompt: str = ""
    skills: str = ""
    tools: str = ""
    journal: str = ""


class StableSections(NamedTuple):
    """Sections that are read once and stay the same until the next compaction, so that the prompt cache stays valid."""

    handoffs: tuple[Handoff, ...]  # that `first` holds in full
    first: str
    memory: str
    pinned: tuple[str, ...]  # pinned memory
    skills: str
    capsule: str  # what the parent session passed on
    journal: str  # its level 1
    read_at: int  # milliseconds


class Sections(NamedTuple):
    parts: Assembled
    pins: tuple[str, ...]


def read_stable(ctx: Context, line: str | None = None) -> StableSections:
    first = handoff.section(ctx, handoff.waiting(ctx, line), HANDOFF_TOKENS - NAMED_TOKENS, tokens.count)
    pinned = tuple(pins.pinned_memory(ctx))
    remembered, summary = digest.digest(ctx).text, skills.summary(ctx).text
    capsule, level_1 = tree.capsule(ctx), _journal(ctx)
    return StableSections(first.in_full, first.text, remembered, pinned, summary, capsule, level_1, ctx.now)


def _journal(ctx: Context) -> str:
    """The state of the work by the project's journal, if it has a readable one."""
    try:
        text = journal.recovered(journal.journal_of(ctx), 1, "", moment(ctx.now)).text
    except errors.LimpetError:
        return ""
    return f"{JOURNAL_HEADING}\n{quoted(text, FILE)}" if text.strip() else ""


def sections(ctx: Context, stable: StableSections, caller: CallerSections, recalled: str = "") -> Sections:
    """All sections as they are now. The notepad and the pins are included in full."""
    pinned = (*stable.pinned, *(entry.content for entry in pins.pins(ctx)))
    parts = assemble(
        {
            HANDOFF: PromptSection(stable.first, HANDOFF_TOKENS, "read_handoff shows all of it"),
            PROMPT: PromptSection(_joined(caller.prompt, notepad.system_prompt(ctx), stable.capsule)),
            SKILLS: PromptSection(_joined(stable.skills, caller.skills), SKILLS_TOKENS),
            TOOLS: PromptSection(caller.tools, TOOLS_TOKENS),
            MEMORY: PromptSection(stable.memory),  # the digest has its own budget and names what it left out
            JOURNAL: PromptSection(_joined(stable.journal, caller.journal), JOURNAL_TOKENS),
            NOTEPAD: PromptSection(notepad.section(notepad.read_notepad(ctx))),
            SCRATCHPAD: PromptSection(
                memory.scratch_section(ctx), SCRATCHPAD_TOKENS, "scratch_note with mode read shows all of it"
            ),
            PINS: PromptSection(pins.section(list(pinned))),
            RECALLED: PromptSection(_joined(changed(ctx, stable), recalled)),
        }
    )
    return Sections(parts, pinned)


def changed(ctx: Context, stable: StableSections) -> str:
    """What has another text since the stable sections were read: these say the old one until the next compaction."""
    listing = Listing((NOTE, MEMORY_KIND), limit=limits.CORRECTIONS_COMPARED, now=ctx.now)
    above = f"{stable.first}\n{stable.memory}"
    lines: list[str] = []
    for entry in ctx.store.entries.list(ctx.scope, listing).entries if stable.first or stable.memory else ():
        if entry.updated_at < stable.read_at or len(lines) == limits.CORRECTIONS_NAMED:
            break
        if instead := _in_place_of(ctx, entry, stable, above):
            text, cut = tokens.cut(" ".join(entry.content.split()), limits.UNASKED_ENTRY_TOKENS)
            line = f"- {entry.kind} {as_name(entry.key)}: {as_data(text, entry.origin)}{' […]' if cut else ''}"
            lines.append(f"{line} (in place of {as_name(instead)})")
    return "\n".join([CHANGED_HEADING, *lines]) if lines else ""


def _in_place_of(ctx: Context, entry: Entry, stable: StableSections, above: str) -> str:
    """What the sections said of this, if that is no longer so."""
    replaces = Validity.of(entry.extra).replaces
    old = None if replaces is None else ctx.store.entries.read(ctx.scope, *replaces)
    if old is not None and old.content[:BEGINNING] in above:
        return f"{old.kind} {old.key}"
    anew = entry.kind == MEMORY_KIND and digest.says_otherwise(stable.memory, entry)
    return "what it said before" if anew else ""


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
