"""Repeats: a call that is made again, and reads that go round in circles.

The same call in the same session is answered by what is new: one line when nothing is, the difference when it is small.
Both begin like every reference, name the earlier output, and count the lines that tell of failures: a failing run never
looks like one that is fine. A third read of the same part is answered as before, with a hint added.

Nothing here may cost anybody an answer: when the store cannot note something, the plain reference is given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from zlib import crc32

from limpet import errors, limits
from limpet.catalogue.operation import Context
from limpet.model import Output, iso
from limpet.outputs import savings
from limpet.store import ReadNote, SeenCall
from limpet.text import slices, tokens
from limpet.text.diff import small_change

RANGES = ("lines", "chars", "bytes", "rows")
WORDS_NOTED = 24  # of a question; enough to know it again
HALF = 0.5  # of the words of two questions: from here on they ask for the same
_WORD = re.compile(r"\w+")
_NO_END = 1 << 40  # more rows than any output has; how many there are is not known here


class Call(NamedTuple):
    """A big result that was just kept, and the call that gave it."""

    tool: str
    call: str  # the arguments, masked; "" when nobody knows
    observed: str  # the result as it came
    content: str  # the same, masked
    failures: int  # lines that say that something failed
    new: bool  # to the store


def answer(ctx: Context, call: Call, output: Output, head: str, plain: str) -> str:
    """What to show: the plain reference, or what is new since the same call was last made in this session."""
    key = _key(call.tool, call.call) if call.call and _wanted(ctx, call.tool) else ""
    try:
        seen = ctx.store.seen_call(ctx.scope, ctx.session, key) if key else None
        text = (_since(ctx, seen, call, output, head) if seen else None) or plain
        savings.note_keep(ctx, output, key, call.observed, (text, call.new, text is not plain), call.tool)
    except errors.StoreProblem:
        return plain
    return text


def _key(tool: str, call: str) -> str:
    # Over what is masked already: a hash of the call itself would let somebody who has the store try out passwords.
    return hashlib.sha256(f"{tool}\0{call}".encode("utf-8", "surrogatepass")).hexdigest()


def _wanted(ctx: Context, tool: str) -> bool:
    return not any(fnmatchcase(tool, pattern) for pattern in ctx.bounds.outputs.no_repeats)


def _since(ctx: Context, seen: SeenCall, call: Call, output: Output, head: str) -> str | None:
    failed = f"{call.failures:,} failure line{'' if call.failures == 1 else 's'}" if call.failures else ""
    if seen.digest == output.digest:
        still = f"; still {failed}" if failed else ""
        return (
            f"{head}, unchanged: the same call gave the same at {iso(seen.at)} in this session{still}. "
            f'scratchpad_read(id="{output.id}", …) reads it.'
        )
    rules = ctx.bounds.outputs
    before = ctx.store.output(ctx.scope, seen.id)
    if before is None or not rules.include_preview or max(before.size, output.size) > limits.OUTPUT_DIFF_BYTES:
        return None
    from limpet.previews.core import printable

    old = ctx.store.output_bytes(ctx.scope, before.id, 0, before.size).decode("utf-8", "surrogatepass")
    change = small_change(
        old, call.content, most_lines=limits.OUTPUT_DIFF_LINES, most_chars=limits.OUTPUT_DIFF_LINE_CHARS
    )
    if change is None or tokens.count(change.text) > rules.preview_length:
        return None
    in_all = f", {failed} in all" if failed else ""
    lines = f"{change.added:,} lines added, {change.removed:,} removed{in_all}"
    return (
        f"{head}, changed since {before.id}, which the same call gave at {iso(seen.at)}: {lines}"
        f"\n\n{printable(change.text)}\n\n"
        f'Read more with scratchpad_read(id="{output.id}", …): query, lines, match, path or rows. '
        f"{before.id} is how it was."
    )


# --- reads ------------------------------------------------------------------------------------------------------------


def noted(ctx: Context, output: Output, how: Mapping[str, Any], content: str, note: str) -> str:
    """The note to a read: that of the read itself and, from the third read of the same part on, a hint."""
    what = part(output, how)
    told = ReadNote(
        ctx.session,
        output.tool,
        output.id,
        what,
        ctx.now,
        tokens.NAME,
        savings.estimate(content, savings.READ_PIECES),
    )
    try:
        earlier = ctx.store.note_read(ctx.scope, told)
    except errors.StoreProblem:
        return note
    times = 1 + sum(overlap(one, what) for one in earlier)
    if times < limits.OUTPUT_READS_ALIKE:
        return note
    hint = (
        f"This part of {output.id} was read {times} times in this session, and outputs never change. "
        f"{_instead(what[0])} Write down what matters (notes, notepad) so that it need not be read again."
    )
    return f"{note} {hint}".strip()


def _instead(way: str) -> str:
    if way == "query":
        return "If the answer is not in it, use match for exact words, or ask for something else."
    if way == "match":
        return "If it is not what you look for, ask with query, or read the lines around a hit."
    return "If it is not what you look for, ask with query, or find the place with match."


def part(output: Output, how: Mapping[str, Any]) -> Sequence[Any]:
    """Which part a read asks for, as numbers: the way, where it goes on, and either a range or hashes of words.

    Hashes, because a question may hold a secret, and what is noted is on disk.
    """
    way = next((name for name in (*RANGES, "path", "match", "query") if how.get(name) is not None), "page")
    wanted = str(how.get(way) or "")
    columns = "\0".join(how.get("columns") or ())
    place = crc32(f"{how.get('cursor') or ''}\0{columns}".encode("utf-8", "surrogatepass"))
    if way in RANGES:
        return [way, place, *_span(way, wanted, output)]
    words = _WORD.findall(wanted.casefold())[:WORDS_NOTED] if way == "query" else [wanted]
    return [way, place, sorted({crc32(word.encode("utf-8", "surrogatepass")) for word in words})]


def _span(way: str, wanted: str, output: Output) -> tuple[int, int]:
    first, last = slices.spec(way, wanted, 0)
    end = {"lines": output.lines, "rows": _NO_END}.get(way, output.size)
    if first is None:  # the tail
        return end - (last or 0) + 1, end
    return first, end if last is None else last


def overlap(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two reads asked for the same, or for parts that have something in common."""
    if one[:2] != list(other[:2]) or len(one) != len(other):
        return False
    if len(one) == 4:
        return bool(one[2] <= other[3] and other[2] <= one[3])
    both = len(set(one[2]) & set(other[2]))
    return bool(both >= HALF * len(set(one[2]) | set(other[2])))
