"""How two versions of a text differ, as a unified diff; and whether they differ little enough to say only that."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A unified diff without its first two lines, and how many lines came and went."""

    text: str
    added: int
    removed: int


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


def small_change(before: str, after: str, *, most_lines: int, most_chars: int, context: int = 1) -> Change | None:
    """The difference, when all of it lies within so many lines and no changed line is longer than that; else None.

    What both have at the beginning and at the end is passed over first, so that long texts cost little more than short.
    """
    old, new = _lines(before), _lines(after)
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > most_lines:
        return None
    import difflib  # noqa: PLC0415  Late, for the same reason as above.

    first = max(0, head - context)
    a, b = old[first : len(old) - max(0, tail - context)], new[first : len(new) - max(0, tail - context)]
    out: list[str] = []
    added = removed = 0
    for group in difflib.SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(context):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        out.append(f"@@ -{first + i1 + 1},{i2 - i1} +{first + j1 + 1},{j2 - j1} @@")
        for tag, i, i_end, j, j_end in group:
            gone, come = (a[i:i_end], b[j:j_end]) if tag != "equal" else ([], [])
            if any(len(line) > most_chars for line in gone + come):
                return None
            same = a[i:i_end] if tag == "equal" else []
            signed = ((" ", same), ("-", gone), ("+", come))
            out += [_marked(sign, line, most_chars) for sign, lines in signed for line in lines]
            removed, added = removed + len(gone), added + len(come)
    return Change("\n".join(out), added, removed)


def _marked(sign: str, line: str, most: int) -> str:
    text = line.removesuffix("\n")
    return f"{sign}{text if len(text) <= most else text[: most - 1] + '…'}"


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])
