"""Previews of outputs that were put aside: few tokens, enough to decide, and no failure hidden.

Every shape of output has a module with a `score` (how sure it is) and a `render` (what it puts on the sheet). The first
line of a preview says what the output is, how long it is and how many of its lines say that something failed.
"""

from __future__ import annotations

from limpet.previews import plain
from limpet.previews.core import Preview, Sheet, Text, plural
from limpet.previews.detect import detect
from limpet.previews.failures import Line, failure_lines
from limpet.text import tokens
from limpet.text.marks import Marks

__all__ = ["Line", "Preview", "failure_lines", "preview"]


def preview(content: str, *, tool: str = "", budget: int = 400, marks: Marks | None = None) -> Preview:
    """What an agent should see of an output: at most `budget` tokens, the same for the same content and tool.

    `found` is what one pass over the content has found, when somebody made it.
    """
    text = Text(content, marks)
    failures = len(text.failures)
    shape = detect(text, tool)
    head = _head(shape.name, text, failures, budget)
    sheet = Sheet(budget - tokens.count(head + "\n"))
    if sheet.left > 0 and not text.empty:
        shape.render(text, sheet)
    body = sheet.text()
    text_shown = f"{head}\n{body}" if body else head
    # Counting both parts alone and together can differ by a token; the bound is kept in any case.
    while tokens.count(text_shown) > budget and "\n" in text_shown:
        text_shown = text_shown.rpartition("\n")[0]
    return Preview(shape.name, text_shown, failures)


def _head(shape: str, text: Text, failures: int, budget: int) -> str:
    """The first line. When the budget is tiny, the failures are what remains of it."""
    full = f"{shape}, {plain.size(text)}" if not text.empty else "empty"
    failed = plural(failures, "failure line") if failures else ""
    short = f"{failures} failed" if failures else shape
    for head in (f"{full}, {failed}" if failed else full, failed or shape, short):
        if tokens.count(head) <= budget:
            return head
    return ""
