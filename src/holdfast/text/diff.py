"""How two versions of a text differ, as a unified diff."""

from __future__ import annotations


def unified(before: str, after: str, *, before_name: str, after_name: str, context: int = 3) -> str:
    """A unified diff that ends with a line break, or "" if the texts are equal.

    Lines end at \\n only, as everywhere in Holdfast. A last line without a line break is marked in the way of diff(1),
    so that a difference in nothing else is also seen.
    """
    if before == after:
        return ""
    import difflib  # noqa: PLC0415  Late: most calls never compare texts, and it would double the start-up of `text`.

    lines = difflib.unified_diff(_lines(before), _lines(after), before_name, after_name, n=context, lineterm="\n")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])
