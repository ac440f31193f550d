"""The context of a session at its start, as one text."""

from __future__ import annotations

from limpet.catalogue.operation import Context
from limpet.memory import digest, memory
from limpet.memory import handoff as handoffs
from limpet.model import Handoff
from limpet.session import notepad, tree


def start_context(ctx: Context, handoff: Handoff | None, line: str = handoffs.MAIN) -> str:
    """What a session starts with, in order: the handoff, the notepad, the scratchpad if any, and memory."""
    first = handoffs.section(handoff, handoffs.other_lines(ctx, line))
    parts = [part for part in (first, tree.capsule(ctx)) if part]
    parts.append(notepad.section(notepad.read_notepad(ctx)))
    parts += [memory.scratch_section(ctx), digest.digest(ctx).text]
    return "\n\n".join(part for part in parts if part)
