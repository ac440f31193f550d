"""Whether the evidence of an entry still holds: the quote is in its place, or the lines are unchanged.

fresh: in its place. moved: the same words on other lines. drifted: the file exists, the words do not. gone: no such
file inside the project.
"""

from __future__ import annotations

from limpet.journal.document.entries import Ref
from limpet.record import NamedTuple

FRESH, MOVED, DRIFTED, GONE = "fresh", "moved", "drifted", "gone"


class Verdict(NamedTuple):
    state: str
    ref: Ref  # where it is now
    detail: str = ""


def judge(quote: str, ref: Ref, text: str | None) -> Verdict:
    """The verdict on a quote; `text` is the file's content, None when there is no file."""
    if text is None:
        return Verdict(GONE, ref)
    quoted = [line.strip() for line in quote.split("\n")]
    lines = [line.strip() for line in text.split("\n")]
    starts = [at for at in range(len(lines) - len(quoted) + 1) if _is_quote(lines, quoted, at)]
    if not starts:
        return Verdict(DRIFTED, ref)
    if not ref.first or any(ref.first <= at + 1 and at + len(quoted) <= max(ref.last, ref.first) for at in starts):
        return Verdict(FRESH, ref)
    near = min(starts, key=lambda at: abs(at + 1 - ref.first)) + 1
    return Verdict(MOVED, ref._replace(first=near, last=near + len(quoted) - 1))


def _is_quote(lines: list[str], quoted: list[str], at: int) -> bool:
    """Whether the quote begins at this line. Its first and last line may be parts of the file's lines."""
    if len(quoted) == 1:
        return quoted[0] in lines[at]
    inner = all(lines[at + further] == quoted[further] for further in range(1, len(quoted) - 1))
    return inner and lines[at].endswith(quoted[0]) and lines[at + len(quoted) - 1].startswith(quoted[-1])


def judge_lines(digest: str | None, ref: Ref, text: str | None) -> Verdict:
    """The verdict on lines that are not quoted, by their digest as of the last verification."""
    if text is None:
        return Verdict(GONE, ref)
    lines = text.split("\n")
    first, last = ref.first or 1, ref.last or len(lines)
    size = last - first + 1
    if digest is None:
        return Verdict(FRESH if size > 0 and last <= len(lines) else DRIFTED, ref, "seen for the first time")
    if digest_of(lines[first - 1 : last]) == digest:
        return Verdict(FRESH, ref)
    if not ref.first or size < 1:
        return Verdict(DRIFTED, ref)
    opening = digest.partition("-")[0]
    places = [at for at in range(len(lines) - size + 1) if _short(lines[at]) == opening]
    for at in sorted(places, key=lambda place: abs(place + 1 - first)):
        if digest_of(lines[at : at + size]) == digest:
            return Verdict(MOVED, ref._replace(first=at + 1, last=at + size))
    return Verdict(DRIFTED, ref)


def digest_of(lines: list[str]) -> str:
    """A digest that ignores line ends, with one of the first line before it, by which moved lines are found quickly."""
    text = "\n".join(line.rstrip() for line in lines)
    return f"{_short(lines[0] if lines else '')}-{_hash(text)}"


def _short(line: str) -> str:
    return _hash(line.rstrip())[:8]


def _hash(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def lines_of(text: str, ref: Ref) -> list[str]:
    """The lines a place names; all of them when it names none."""
    lines = text.split("\n")
    return lines[ref.first - 1 : ref.last] if ref.first else lines
