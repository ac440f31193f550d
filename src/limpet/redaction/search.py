"""The search for secrets in a text, and the masking of those that are found.

Three finders recognise a secret by its format (`formats`), by its context (`blocks`) and by its name (`named`), in
linear time. In a long text they look around the candidates that one fast pass finds (`signs`), in a short one
everywhere.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from limpet.redaction import Redacted, signs
from limpet.redaction.blocks import cookies, key_blocks, password_files, surrounded
from limpet.redaction.commands import commands
from limpet.redaction.formats import FORMATS, known_formats
from limpet.redaction.named import named
from limpet.redaction.spoken import spoken
from limpet.redaction.unseen import sequences, shown
from limpet.redaction.values import Span, late, settle
from limpet.text.marks import Marks, find_marks

# Every kind that a placeholder may name.
KINDS = frozenset(
    (
        *(form.kind for form in FORMATS),
        *("aws-secret-key", "azure-storage-key", "cookie", "discord-token", "password", "private-key", "secret"),
        "seed-phrase",
    )
)
_MASKED = late(r"\[redacted:[a-z0-9-]{1,40}(?::[0-9a-f]{6})?\]")
_JSON_ESCAPE = late(r"\\u00([2-7][0-9a-fA-F])")
_URL_ESCAPE = late(r"%(0[aAdD]|[2-7][0-9a-fA-F])")
_SPACE = late(r"\s")
_KEY_BLOCKS = ("PRIVATE KEY", "PRIVATE+KEY", "LS0tLS1CRUdJTi", "Private-Lines")  # which may be as long as the text
_RUN = late(r"[A-Za-z0-9+/=_.%~,@:|-]*\]?")
# Characters that a finder may look at before a sign, after one, and after a command; after these, to a run's end.
_BEFORE, _AFTER, _AFTER_COMMAND = 400, 800, 2400
_REACH = 4_000  # characters; more than a finder reads on both sides of a sign, with the sign
_SHORT = 4_000  # characters; the finders search so few in less time than it takes to compile the fast pattern
_APART = "\n-----\0\n"  # no finder reads across this
# Masking one secret can expose its neighbour. Searching again until nothing is found makes redaction idempotent; the
# bound limits the cost of a text built to need many rounds.
_ROUNDS = 32


def redact(text: str, marks: Marks | None = None, before: str = "") -> Redacted:
    """Mask every secret of a known kind, except those that `before` contains.

    `marks` are the results of `find_marks` for the text, if there are any.
    """
    count = 0
    kinds: set[str] = set()
    spans = secrets(text, marks)
    for _ in range(_ROUNDS):
        spans = [span for span in spans if not before or text[span.start : span.end] not in before]
        if not spans:
            break
        count += len(spans)
        kinds.update(span.kind for span in spans)
        text, places = _masked(text, spans), _places(spans)
        spans = _near(text, places, secrets)
    return Redacted(text, count, tuple(sorted(kinds)))


def secrets(text: str, marks: Marks | None = None) -> list[Span]:
    """Where the secrets of a text are, in order and without overlaps."""
    spans = _find_read(text, marks)
    if unseen := sequences(text, marks.data if marks else None):
        plain, cuts, place = shown(text, unseen)
        near = _near(plain, cuts, _find_read)
        # What is not shown after a secret stays: a colour has to end.
        spans += [span._replace(start=place(span.start), end=place(span.end - 1) + 1) for span in near]
    if spans and "[redacted:" in text:
        spans = _outside(spans, [match.span() for match in _MASKED.finditer(text)])
    return settle(spans)


def _near(text: str, places: list[int], find: Callable[[str], list[Span]]) -> list[Span]:
    """The secrets of a text that was changed at these places, as far as they can reach one of them.

    The others were found in the text as it was.
    """
    if len(places) * 2 * _REACH > len(text) or any(sign in text for sign in _KEY_BLOCKS):
        return find(text)
    parts: list[tuple[int, int]] = []
    for place in places:
        least, low = parts[-1][1] if parts else 0, max(0, place - _REACH)
        while low > least and _RUN.fullmatch(text, low - 1, low):
            low -= 1
        if text[low - 1 : low] == "[":  # of a placeholder, perhaps
            low -= 1
        _extend(parts, text, low, min(len(text), place + _REACH))
    return _in_parts(text, parts, find)


def _find_read(text: str, marks: Marks | None = None) -> list[Span]:
    """All secrets, also those with letters written as escapes."""
    spans = _find(text, marks)
    if "\\" in text and "\\u00" in text:
        spans += _find_escaped(text, _JSON_ESCAPE)
    if "%" in text:
        spans += _find_escaped(text, _URL_ESCAPE)
    return spans


def _find(text: str, marks: Marks | None = None) -> list[Span]:
    """All secrets, searched for around each candidate by the finders that it is a candidate for."""
    if marks is None and len(text) <= _SHORT:
        return [*key_blocks(text), *_look(text)]
    marks = marks or find_marks(text.encode("utf-8", "surrogatepass"), secret=signs.pattern())
    keys = any(signs.key_block(marks.data[start:end]) for start, end in marks.secrets)
    spans = list(key_blocks(text)) if keys else []
    for group, parts in _parts(text, marks).items():
        spans += _search(text, parts, group)
    return spans


def _search(text: str, parts: list[tuple[int, int]], group: str) -> list[Span]:
    """The secrets that a group of finders finds in these parts."""
    if sum(end - start for start, end in parts) * 2 > len(text):
        return _look(text, group)
    return _in_parts(text, parts, lambda text: _look(text, group))


def _in_parts(text: str, parts: list[tuple[int, int]], find: Callable[[str], list[Span]]) -> list[Span]:
    """What is found in these parts, or in all of the text when a part may end too early."""
    spans = []
    starts = [0]
    for start, end in parts:
        starts.append(starts[-1] + end - start + len(_APART))
    for span in find(_APART.join(text[start:end] for start, end in parts)):
        at = bisect_right(starts, span.start) - 1
        (start, end), move = parts[at], parts[at][0] - starts[at]
        if span.end + move > end - 2 and end < len(text):
            return find(text)  # it may go on where this part ends
        spans.append(span._replace(start=span.start + move, end=span.end + move))
    return spans


def _parts(text: str, marks: Marks) -> dict[str, list[tuple[int, int]]]:
    """The spans to search for each group of finders: around each candidate, as far as any of them reads."""
    data = marks.data
    parts: dict[str, list[tuple[int, int]]] = {}
    ascii = len(data) == len(text)
    byte = place = 0  # `place` is the character at this byte
    for start, end in marks.secrets:
        hit = data[start:end]
        if signs.key_block(hit) or (signs.command(hit) and signs.idle(data, start, hit)):
            continue
        place += start - byte if ascii else len(data[byte:start].decode("utf-8", "surrogatepass"))
        byte = start
        after = _AFTER_COMMAND if signs.long_line(hit) else _AFTER
        low, high = max(0, place - _BEFORE), min(len(text), place + end - start + after)
        for group in signs.groups(data, start):
            _extend(parts.setdefault(group, []), text, low, high)
    return parts


def _extend(parts: list[tuple[int, int]], text: str, low: int, high: int) -> None:
    """Add a span, or join it to the last one, and go on to the end of a run."""
    reach = 0
    if parts and low <= parts[-1][1]:
        low, reach = parts.pop()
        high = max(high, reach)
    run = _RUN.match(text, high) if high > reach else None
    parts.append((low, run.end() if run else high))


def _look(text: str, group: str = "") -> list[Span]:
    """What the finders of a group find, or all of them."""
    # The twin has a question mark for every other character, so positions are the same, searches are fast, and lower
    # case does not change its length.
    twin = text if text.isascii() else text.encode("ascii", "replace").decode("ascii")
    lower = twin.lower()
    spans: list[Span] = []
    if group in ("", signs.FORMAT):
        spans += known_formats(twin)
    if group in ("", signs.CONTEXT):
        spans += (*surrounded(text, lower), *named(text, lower))
    if group in ("", signs.FILES):
        spans += (*cookies(text, lower), *password_files(text, lower))
    if group in ("", signs.COMMANDS):
        spans += commands(text, lower)
    if group in ("", signs.SPOKEN):
        spans += spoken(text, lower)
    return spans


def _find_escaped(text: str, escape: re.Pattern[str]) -> list[Span]:
    """Secrets with letters written as escapes: found in the plain reading, masked in the text as it is.

    Words that contain an escape are searched, each separately.
    """
    parts: list[str] = []
    plain_at, text_at = [0], [0]  # where each stretch without escapes begins, in both readings
    done = plain = word_end = 0

    def take(part: str, at: int, following: int) -> None:
        nonlocal plain, done
        parts.append(part)
        plain_at.append(plain)
        text_at.append(at)
        plain += len(part)
        done = following

    for match in escape.finditer(text):
        if match.start() >= word_end:
            take(text[done:word_end] + _APART, done, word_end)
            start, word_end = _word(text, match.start(), done)
            done = start
        take(text[done : match.start()], done, match.start())
        take(chr(int(match.group(1), 16)), match.start(), match.end())
    take(text[done:word_end], done, word_end)

    def place(position: int) -> int:
        stretch = bisect_right(plain_at, position) - 1
        return text_at[stretch] + position - plain_at[stretch]

    spans = _find("".join(parts)) if word_end else []
    return [Span(place(span.start), place(span.end), span.kind, span.token) for span in spans]


def _word(text: str, position: int, lowest: int) -> tuple[int, int]:
    """Where the word around this place begins and ends, looking no further than a secret is long."""
    lowest = max(lowest, position - 400)
    start = max(text.rfind(space, lowest, position) + 1 for space in " \n\t")
    end = _SPACE.search(text, position, position + 4000)
    return max(start, lowest), end.start() if end else min(len(text), position + 4000)


def _outside(spans: list[Span], masked: list[tuple[int, int]]) -> list[Span]:
    """Spans that do not touch a placeholder."""
    starts = [start for start, _ in masked]
    ends = [end for _, end in masked]
    return [span for span in spans if bisect_left(starts, span.end) == bisect_right(ends, span.start)]


def _masked(text: str, spans: list[Span]) -> str:
    parts: list[str] = []
    done = 0
    for span in spans:
        parts += (text[done : span.start], _placeholder(span))
        done = span.end
    parts.append(text[done:])
    return "".join(parts)


def _places(spans: list[Span]) -> list[int]:
    """Where the placeholders for these spans are in the masked text."""
    places, moved = [], 0
    for span in spans:
        places.append(span.start + moved)
        moved += len(_placeholder(span)) - (span.end - span.start)
    return places


def _placeholder(span: Span) -> str:
    if span.token is None:
        return f"[redacted:{span.kind}]"
    digest = hashlib.sha256(span.token.encode("utf-8", "surrogatepass")).hexdigest()
    return f"[redacted:{span.kind}:{digest[:6]}]"
