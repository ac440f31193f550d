"""The preview of an output, from its first line to the last one that fits."""

from __future__ import annotations

from limpet.previews import plain
from limpet.previews.core import Preview, Sheet, Text, plural
from limpet.previews.detect import detect
from limpet.text import tokens
from limpet.text.marks import Marks


def preview(content: str, *, tool: str = "", budget: int = 400, marks: Marks | None = None) -> Preview:
    """What an agent should see of an output: at most `budget` tokens, the same for the same content and tool.

    `marks` are the results of `find_marks` for the content, if they exist already.
    """
    text = Text(content, marks)
    failures = len(text.failures)
    shape = detect(text, tool)
    head = _head(shape.name, text, failures, budget)
    sheet = Sheet(budget - tokens.count(head + "\n"))
    if sheet.left > 0 and not text.empty:
        shape.render(text, sheet)
    body = sheet.text()
    rendered = f"{head}\n{body}" if body else head
    # The sum of both counts can differ from the count of both by a token; the bound holds in any case.
    while tokens.count(rendered) > budget and "\n" in rendered:
        rendered = rendered.rpartition("\n")[0]
    return Preview(shape.name, rendered, failures)


def _head(shape: str, text: Text, failures: int, budget: int) -> str:
    """The first line. When the budget is tiny, the failures are what remains of it."""
    full = f"{shape}, {plain.size(text)}" if not text.empty else "empty"
    failed = plural(failures, "failure line") if failures else ""
    short = f"{failures} failed" if failures else shape
    for head in (f"{full}, {failed}" if failed else full, failed or shape, short):
        if tokens.count(head) <= budget:
            return head
    return ""
