"""Reading stored outputs back: a slice, a path, rows, matches, the answer to a question, or page by page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from limpet import errors, limits
from limpet.model import Output
from limpet.outputs import repeats
from limpet.outputs.keep import find_output
from limpet.recall.ask import ask
from limpet.text import jsonpath, slices, tokens
from limpet.text.slices import Source

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context, Json

MATCH_CONTEXT = 2  # lines around a match, unless asked otherwise
KINDS_OF_READ = ("lines", "chars", "bytes", "path", "rows", "match", "query")
_RANGES = {"lines": slices.lines, "chars": slices.chars, "bytes": slices.bytes_}  # read without the rest of the text
_URI = re.compile(r"hold://([0-9a-f]{12,64})(?:#(.*))?", re.DOTALL)


class OutputPart(NamedTuple):
    output: Output
    content: str
    cursor: str | None
    note: str


def scratchpad_read(ctx: Context, /, id: str, **how: Any) -> OutputPart:
    """A part of a stored output, by the one kind of read among the arguments; without one, page by page."""
    kinds = [name for name in KINDS_OF_READ if how.get(name) is not None]
    if len(kinds) > 1:
        raise errors.one_of("scratchpad_read", kinds)
    output = find_output(ctx, id)
    try:
        content, cursor, note = _part(ctx, output, kinds[0] if kinds else "page", how)
    except slices.BadSlice as problem:
        raise errors.bad_slice(str(problem)) from None
    return OutputPart(output, content, cursor, repeats.record_read(ctx, output, how, content, note))


def _part(ctx: Context, output: Output, kind: str, how: dict[str, Any]) -> tuple[str, str | None, str]:
    source, cursor, argument = _source(ctx, output), how.get("cursor"), how.get(kind)
    cap = how.get("tokens", limits.OUTPUT_QUERY_TOKENS if kind == "query" else limits.OUTPUT_READ_TOKENS)
    if kind == "page":
        return slices.page(source, cursor, cap)
    if kind in _RANGES:
        return _RANGES[kind](source, str(argument), cap)
    text = _decoded(source.read(0, output.size))
    match kind:
        case "path":
            return jsonpath.read(text, str(argument), cap)
        case "rows":
            return slices.rows(text, argument, how.get("columns"), cap, cursor)
        case "match":
            around = how.get("context", MATCH_CONTEXT)
            return slices.match(text, str(argument), bool(how.get("regex")), around, cap, cursor)
    return ask(text, str(argument), cap, tokens.count)


def _source(ctx: Context, output: Output) -> Source:
    """An output that is read in parts, so that a slice costs the same however long the rest is."""
    read, read_lines = ctx.store.outputs.read_bytes, ctx.store.outputs.read_lines
    return Source(
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
            return _decoded(ctx.store.outputs.read_lines(ctx.scope, output.id, *lines))
        return jsonpath.read(full_text(ctx, id), part, limits.OUTPUT_MAX_BYTES).content
    except slices.BadSlice as problem:
        raise errors.bad_slice(str(problem)) from None


def full_text(ctx: Context, id: str) -> str:
    output = find_output(ctx, id)
    return _decoded(ctx.store.outputs.read_bytes(ctx.scope, output.id, 0, output.size))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def read_json(value: OutputPart) -> Json:
    answer: Json = {"content": value.content}
    if value.cursor is not None:
        answer["cursor"] = value.cursor
    return answer | ({"note": value.note} if value.note else {})
