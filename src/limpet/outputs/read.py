"""Reading stored outputs back: a slice, a path, rows, matches, the answer to a question, or page by page.

A third read of the same part gets the same answer with a hint added. When the store cannot record a read, the part is
returned without one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json
from limpet.model import Output
from limpet.outputs import savings
from limpet.outputs.keep import find_output
from limpet.recall.ask import ask
from limpet.record import NamedTuple
from limpet.store import ReadRecord
from limpet.text import jsonpath, slices, tokens
from limpet.text.slices import TextSource

MATCH_CONTEXT = 2  # lines around a match, unless asked otherwise
KINDS_OF_READ = ("lines", "chars", "bytes", "path", "rows", "match", "query")
_RANGES = {"lines": slices.lines, "chars": slices.chars, "bytes": slices.bytes_}  # read without the rest of the text
SCHEME = "hold://"
_URI = re.compile(r"hold://([0-9a-f]{12,64})(?:#(.*))?", re.DOTALL)


class OutputPart(NamedTuple):
    output: Output
    content: str
    cursor: str | None
    note: str


def read_output(ctx: Context, /, id: str, **how: Any) -> OutputPart:
    """A part of a stored output, by the one kind of read among the arguments; without one, page by page."""
    id, how = _named(id, how)
    kinds = [name for name in KINDS_OF_READ if how.get(name) is not None]
    if len(kinds) > 1:
        raise errors.one_of("read_output", kinds)
    output = find_output(ctx, id)
    try:
        content, cursor, note = _part(ctx, output, kinds[0] if kinds else "page", how)
    except slices.BadSlice as problem:
        raise errors.bad_slice(str(problem)) from None
    return OutputPart(output, content, cursor, record_read(ctx, output, how, content, note))


def _named(id: str, how: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The id and the read of a reference as the window shows it, hold://<id>#…; any other id as it is."""
    match = _URI.fullmatch(id)
    if match is None:
        return id, how
    part = match[2] or ""
    if part.startswith("lines="):
        return match[1], {"lines": part.removeprefix("lines="), **how}
    return match[1], {"path": part, **how} if part else how


def _part(ctx: Context, output: Output, kind: str, how: dict[str, Any]) -> tuple[str, str | None, str]:
    source, cursor, argument = _source(ctx, output), how.get("cursor"), how.get(kind)
    cap = how.get("tokens", limits.OUTPUT_QUERY_TOKENS if kind == "query" else limits.OUTPUT_READ_TOKENS)
    if kind == "page":
        return slices.page(source, cursor, cap)
    if kind in _RANGES:
        return _RANGES[kind](source, str(argument), cap)
    text = slices.decoded(source.read(0, output.size))
    match kind:
        case "path":
            return jsonpath.read(text, str(argument), cap)
        case "rows":
            return slices.rows(text, argument, how.get("columns"), cap, cursor)
        case "match":
            around = how.get("context", MATCH_CONTEXT)
            return slices.match(text, str(argument), bool(how.get("regex")), around, cap, cursor)
    return ask(text, str(argument), cap, tokens.count)


def _source(ctx: Context, output: Output) -> TextSource:
    """An output that is read in parts, so that a slice costs the same however long the rest is."""
    read, read_lines = ctx.store.outputs.read_bytes, ctx.store.outputs.read_lines
    return TextSource(
        output.size,
        output.lines,
        lambda start, stop: read(ctx.scope, output.id, start, stop),
        lambda first, last: read_lines(ctx.scope, output.id, first, last),
    )


def expand(ctx: Context, uri: str) -> str:
    """The text behind hold://<id>, or the part of it that #/json/pointer or #lines=a-b names."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise errors.bad_name("reference", uri, "it is written hold://<id>, hold://<id>#/json/pointer or #lines=a-b")
    id, part = match[1], match[2]
    if not part:
        return full_text(ctx, id)
    try:
        if part.startswith("lines="):
            output = find_output(ctx, id)
            lines = slices.line_range(part.removeprefix("lines="), output.lines)
            return slices.decoded(ctx.store.outputs.read_lines(ctx.scope, output.id, *lines))
        return _plain(jsonpath.read(full_text(ctx, id), part, limits.OUTPUT_MAX_BYTES).content)
    except slices.BadSlice as problem:
        raise errors.bad_slice(str(problem)) from None


def expanded(ctx: Context, arguments: Any) -> Any:
    """The arguments of a tool, with the text behind each of them that is a reference."""
    if isinstance(arguments, Mapping):
        return {name: expanded(ctx, inner) for name, inner in arguments.items()}
    if isinstance(arguments, list):
        return [expanded(ctx, inner) for inner in arguments]
    is_reference = isinstance(arguments, str) and arguments.startswith(SCHEME)
    return expand(ctx, arguments) if is_reference else arguments


def _plain(value: str) -> str:
    """A JSON string as its text; anything else as it is."""
    if not value.startswith('"'):
        return value
    try:
        text = json.loads(value)
    except ValueError:
        return value
    return text if isinstance(text, str) else value


def full_text(ctx: Context, id: str) -> str:
    output = find_output(ctx, id)
    return slices.decoded(ctx.store.outputs.read_bytes(ctx.scope, output.id, 0, output.size))


def read_json(value: OutputPart) -> Json:
    answer: Json = {"content": value.content}
    if value.cursor is not None:
        answer["cursor"] = value.cursor
    return answer | ({"note": value.note} if value.note else {})


def read_text(_ctx: Context, value: OutputPart) -> str:
    closing = [value.note, f"the next page: cursor={value.cursor}" if value.cursor is not None else ""]
    remark = "; ".join(part for part in closing if part)
    return f"{value.content}\n[{remark}]" if remark else value.content


# --- repeated reads ---------------------------------------------------------------------------------------------------

RANGES = ("lines", "chars", "bytes", "rows")
WORDS_NOTED = 24  # of a question; enough to recognise it
HALF = 0.5  # share of common words from which two questions count as the same
_WORD = re.compile(r"\w+")
_NO_END = 1 << 40  # more rows than any output has; their number is not known here


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
