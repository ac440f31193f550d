"""The difference of two texts as a unified diff, and whether it is small enough to be shown instead of the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class SmallChange(NamedTuple):
    """A unified diff without its first two lines, and how many lines came and went."""

    text: str
    added: int
    removed: int


def unified(before: str, after: str, *, before_name: str, after_name: str, context: int = 3) -> str:
    """A unified diff that ends with a line break, or "" if the texts are equal.

    Lines end at \\n, as everywhere in Limpet. A last line without a line break is marked in the way of diff(1),
    so that a difference in nothing else is also seen.
    """
    if before == after:
        return ""
    import difflib

    lines = difflib.unified_diff(_lines(before), _lines(after), before_name, after_name, n=context, lineterm="\n")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def small_change(before: str, after: str, *, most_lines: int, most_chars: int, context: int = 1) -> SmallChange | None:
    """The difference, if all of it is within `most_lines` lines of at most `most_chars` characters; else None.

    Common beginnings and ends are skipped first, so that long texts cost little more than short ones.
    """
    start, rest = _edges(before, after)
    if max(_line_count(text[start : len(text) - rest]) for text in (before, after)) > most_lines:
        return None
    import difflib

    for _ in range(context):
        start = before.rfind("\n", 0, max(0, start - 1)) + 1
        rest = len(before) - (before.find("\n", len(before) - rest) + 1 or len(before))
    first = before.count("\n", 0, start)
    a, b = (_lines(text[start : len(text) - rest]) for text in (before, after))
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
    return SmallChange("\n".join(out), added, removed)


def _marked(sign: str, line: str, most: int) -> str:
    text = line.removesuffix("\n")
    return f"{sign}{text if len(text) <= most else text[: most - 1] + '…'}"


def _edges(before: str, after: str) -> tuple[int, int]:
    """The lengths of the common beginning and of the common end of the rest, in whole lines."""
    start = before.rfind("\n", 0, _alike(before, after, lambda text, a, b: text[a:b])) + 1
    before, after = before[start:], after[start:]
    end = _alike(before, after, lambda text, a, b: text[len(text) - b : len(text) - a])
    if any(text[-end - 1 : len(text) - end] not in ("", "\n") for text in (before, after)):
        # It begins inside a line of at least one of them, so the next line is the first that both have whole.
        end = len(before) - (before.find("\n", len(before) - end) + 1 or len(before))
    return start, end


def _alike(left: str, right: str, cut: Callable[[str, int, int], str]) -> int:
    """The length of the common part. Bisection is many times faster than comparing single characters."""
    same, most = 0, min(len(left), len(right))
    reach = most
    while same < most:
        if cut(left, same, reach) == cut(right, same, reach):
            same, reach = reach, most
        else:
            most = reach - 1
            reach = (same + most + 1) // 2
    return same


def _line_count(text: str) -> int:
    return text.count("\n") + (text[-1:] not in ("", "\n"))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])
