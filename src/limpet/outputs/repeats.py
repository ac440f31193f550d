"""Repeats: a call that is made again, and reads that go round in circles.

The same call in the same session is answered by what is new: one line when nothing is, a diff when it is small. Both
begin like every reference, name the earlier output, and count its failure lines, so that a failing run does not look
like a passing one. A third read of the same part gets the same answer with a hint added.

When the store cannot record a call or a read, the plain reference or part is returned.
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
from limpet.store import LastResult, ReadRecord
from limpet.text import slices, tokens
from limpet.text.diff import small_change
from limpet.text.safe import printable

RANGES = ("lines", "chars", "bytes", "rows")
WORDS_NOTED = 24  # of a question; enough to recognise it
HALF = 0.5  # share of common words from which two questions count as the same
_WORD = re.compile(r"\w+")
_NO_END = 1 << 40  # more rows than any output has; their number is not known here


class KeptResult(NamedTuple):
    """A big result that was just stored, and the call that returned it."""

    tool: str
    call: str  # the arguments, masked; "" when unknown
    observed: str  # as the tool returned it
    content: str  # the same, masked
    failures: int  # lines that say that something failed
    new: bool  # to the store


def answer(ctx: Context, result: KeptResult, output: Output, head: str, plain: str, reader: str) -> str:
    """The plain reference, or what is new since the same call was last made in this session."""
    key = _key(result.tool, result.call) if result.call and _looks_for_repeats(ctx, result.tool) else ""
    try:
        previous = ctx.store.calls.last_result(ctx.scope, ctx.session, key) if key else None
        text = (_since(ctx, previous, result, output, head, reader) if previous else None) or plain
        savings.note_keep(ctx, output, key, result.observed, (text, result.new, text is not plain), result.tool)
    except errors.StoreProblem:
        return plain
    return text


def _key(tool: str, call: str) -> str:
    # Of the masked call: a hash of the original would let a reader of the store try out passwords.
    return hashlib.sha256(f"{tool}\0{call}".encode("utf-8", "surrogatepass")).hexdigest()


def _looks_for_repeats(ctx: Context, tool: str) -> bool:
    return not any(fnmatchcase(tool, pattern) for pattern in ctx.bounds.outputs.no_repeats)


def _since(
    ctx: Context, previous: LastResult, result: KeptResult, output: Output, head: str, reader: str
) -> str | None:
    failed = f"{result.failures:,} failure line{'' if result.failures == 1 else 's'}" if result.failures else ""
    if previous.digest == output.digest:
        still = f"; still {failed}" if failed else ""
        return (
            f"{head}, unchanged: the same call gave the same at {iso(previous.at)} in this session{still}. "
            f'{reader}(id="{output.id}", …) reads it.'
        )
    rules = ctx.bounds.outputs
    before = ctx.store.outputs.find(ctx.scope, previous.id)
    if before is None or not rules.include_preview or max(before.size, output.size) > limits.OUTPUT_DIFF_BYTES:
        return None
    old = ctx.store.outputs.read_bytes(ctx.scope, before.id, 0, before.size).decode("utf-8", "surrogatepass")
    change = small_change(
        old, result.content, most_lines=limits.OUTPUT_DIFF_LINES, most_chars=limits.OUTPUT_DIFF_LINE_CHARS
    )
    if change is None or tokens.count(change.text) > rules.preview_length:
        return None
    in_all = f", {failed} in all" if failed else ""
    lines = f"{change.added:,} lines added, {change.removed:,} removed{in_all}"
    return (
        f"{head}, changed since {before.id}, which the same call gave at {iso(previous.at)}: {lines}"
        f"\n\n{printable(change.text)}\n\n"
        f'Read more with {reader}(id="{output.id}", …): query, lines, match, path or rows. '
        f"{before.id} is how it was."
    )


# --- reads ------------------------------------------------------------------------------------------------------------


def record_read(ctx: Context, output: Output, how: Mapping[str, Any], content: str, note: str) -> str:
    """Record a read. Returns its note, with a hint from the third read of the same part on."""
    what = part(output, how)
    read = ReadRecord(
        ctx.session,
        output.tool,
        output.id,
        what,
        ctx.now,
        tokens.NAME,
        savings.estimate(content, savings.READ_PIECES),
    )
    try:
        earlier = ctx.store.calls.record_read(ctx.scope, read)
    except errors.StoreProblem:
        return note
    times = 1 + sum(overlap(read_before, what) for read_before in earlier)
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
    """Which part a read asks for, as numbers: the kind, where it continues, and either a range or hashes of words.

    Hashes, because a question may contain a secret, and this is stored.
    """
    way = next((name for name in (*RANGES, "path", "match", "query") if how.get(name) is not None), "page")
    argument = str(how.get(way) or "")
    columns = "\0".join(how.get("columns") or ())
    place = crc32(f"{how.get('cursor') or ''}\0{columns}".encode("utf-8", "surrogatepass"))
    if way in RANGES:
        return [way, place, *_span(way, argument, output)]
    words = _WORD.findall(argument.casefold())[:WORDS_NOTED] if way == "query" else [argument]
    return [way, place, sorted({crc32(word.encode("utf-8", "surrogatepass")) for word in words})]


def _span(way: str, argument: str, output: Output) -> tuple[int, int]:
    first, last = slices.spec(way, argument, 0)
    end = {"lines": output.lines, "rows": _NO_END}.get(way, output.size)
    if first is None:  # the tail
        return end - (last or 0) + 1, end
    return first, end if last is None else last


def overlap(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two reads asked for the same, or for parts that have something in common."""
    if left[:2] != list(right[:2]) or len(left) != len(right):
        return False
    if len(left) == 4:
        return bool(left[2] <= right[3] and right[2] <= left[3])
    both = len(set(left[2]) & set(right[2]))
    return bool(both >= HALF * len(set(left[2]) | set(right[2])))
