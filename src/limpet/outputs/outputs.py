"""Outputs: big tool results kept whole outside the window, behind a preview and a reference.

`keep` decides: a small text passes untouched, a big one is stored and a reference comes back. `scratchpad_read` reads
any part of it again, and what is gone says what it was. What makes previews and takes texts apart is imported when it
is first needed: every server starts with this module, and most never see a big output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json
from limpet.model import Output, OutputDraft, Tombstone, iso
from limpet.outputs.policy import policy
from limpet.outputs.savings import savings
from limpet.store import OutputStats, Pruned, Savings

if TYPE_CHECKING:
    from limpet.text.marks import Marks
    from limpet.text.slices import Source

MATCH_CONTEXT = 2  # lines shown around a match unless asked otherwise
KINDS_OF_READ = ("lines", "chars", "bytes", "path", "rows", "match", "query")
_ID = re.compile(r"[0-9a-f]{12,64}")
_URI = re.compile(r"hold://([0-9a-f]{12,64})(?:#(.*))?", re.DOTALL)


class Kept(NamedTuple):
    """What to show in place of a tool's result: the result itself, or a reference to it."""

    text: str
    output: Output | None


class Read(NamedTuple):
    output: Output
    content: str
    cursor: str | None
    note: str


class Listed(NamedTuple):
    outputs: tuple[Output, ...]
    left_out: int
    stats: OutputStats
    saved: int = 0  # tokens, less than 0 when reading back cost more than it saved


class Stats(NamedTuple):
    entries: int
    total_bytes: int  # the outputs' own sizes
    stored_bytes: int  # what they take up compressed
    oldest: int | None  # milliseconds, of the first keep
    newest: int | None
    savings: Savings  # of every session


def keep_output(ctx: Context, tool: str, content: str, call: str = "", free_tokens: int | None = None) -> Kept:
    """Keep a tool's result if it is big. `call` says how to get it again, should it be pruned one day."""
    rules = ctx.bounds.outputs
    most, masks = policy(rules, tool, free_tokens)
    # Half a character cannot be UTF-8, yet a tool may return one; it goes in and comes out as it is.
    body = content.encode("utf-8", "surrogatepass") if rules.enabled else b""
    if not rules.enabled or most is None or len(body) < most:
        return Kept(content, None)
    from limpet.outputs import repeats

    made = _drafted(ctx, tool, content, call, body, masks)
    output, new = ctx.store.keep_output(ctx.scope, made.draft, made.body, ctx.stamp("keep_output"))
    if new:
        prune_outputs(ctx, output.id)
    told = repeats.Call(tool, made.call, content, made.content, made.failures, new)
    return Kept(repeats.answer(ctx, told, output, _head(output), reference(output, rules.include_preview)), output)


def is_big(ctx: Context, tool: str, content: str) -> bool:
    """Whether `keep_output` would keep it."""
    most = policy(ctx.bounds.outputs, tool).threshold if ctx.bounds.outputs.enabled else None
    # A character takes four bytes at most, so a short text is known to be small without looking at it.
    return most is not None and len(content) * 4 >= most and len(content.encode("utf-8", "surrogatepass")) >= most


def put_output(ctx: Context, tool: str, content: str, call: str = "") -> Output:
    """Keep a text whole, however small."""
    return put_outputs(ctx, [(tool, content, call)])[0]


def put_outputs(ctx: Context, results: Sequence[tuple[str, str, str]]) -> list[Output]:
    """Keep several at once, each given as tool, content and call."""
    rules = ctx.bounds.outputs
    made = [
        _drafted(ctx, tool, text, call, text.encode("utf-8", "surrogatepass"), policy(rules, tool).redact)
        for tool, text, call in results
    ]
    stamp = ctx.stamp("keep_output")
    if len(made) == 1:  # one alone is first looked for without holding anybody up; of several, hardly any is known
        kept = [ctx.store.keep_output(ctx.scope, made[0].draft, made[0].body, stamp)]
    else:
        kept = list(ctx.store.keep_outputs(ctx.scope, [(one.draft, one.body) for one in made], stamp))
    if any(one.new for one in kept):
        prune_outputs(ctx, *(one.output.id for one in kept))
    return [one.output for one in kept]


class _Drafted(NamedTuple):
    """A result, ready to be kept: secrets are masked and the preview is made."""

    draft: OutputDraft
    body: bytes
    call: str  # masked, and whole
    content: str  # masked
    failures: int


def _drafted(ctx: Context, tool: str, content: str, call: str, body: bytes, masks: bool) -> _Drafted:
    from limpet.previews import failures, preview
    from limpet.redaction import Redacted, redact, signs
    from limpet.text.marks import find_marks

    found: Marks | None = find_marks(body, failure=failures.PATTERN, secret=signs.pattern())
    clean = redact(content, found) if masks else Redacted(content, 0, ())
    if clean.count:
        body, found = clean.text.encode("utf-8", "surrogatepass"), None
    shown = preview(clean.text, tool=tool, budget=ctx.bounds.outputs.preview_length, marks=found)
    masked = redact(call).text  # all of it, and cut only then: half a secret would not be known for one
    draft = OutputDraft(tool, masked[: limits.OUTPUT_CALL_CHARS], shown.shape, shown.text, clean.count)
    return _Drafted(draft, body, masked, clean.text, shown.failures)


def reference(output: Output, with_preview: bool = True) -> str:
    """What stands in the window: what it is, enough to decide by, and the tool that reads more."""
    parts = [_head(output)]
    if with_preview:
        parts.append(output.preview)
    parts.append(f'Read more with scratchpad_read(id="{output.id}", …): query, lines, match, path or rows.')
    return "\n\n".join(parts)


def _head(output: Output) -> str:
    masked = f", {output.redacted} secrets masked" if output.redacted else ""
    return f"📁 Output cached: {output.id} ({size(output.size)}){masked}"


def size(count: int) -> str:
    if count < 1 << 10:
        return f"{count}B"
    return f"{count / (1 << 10):.1f}KB" if count < 1 << 20 else f"{count / (1 << 20):.2f}MB"


def scratchpad_read(ctx: Context, /, id: str, **how: Any) -> Read:
    """A part of a kept output: whichever one way of reading is given, else all of it page by page."""
    given = [name for name in KINDS_OF_READ if how.get(name) is not None]
    if len(given) > 1:
        raise errors.one_of("scratchpad_read", given)
    from limpet.outputs import repeats
    from limpet.text import slices

    output = find_output(ctx, id)
    try:
        content, cursor, note = _part(ctx, output, given[0] if given else "page", how)
    except slices.BadSlice as problem:
        raise errors.bad_slice(str(problem)) from None
    return Read(output, content, cursor, repeats.noted(ctx, output, how, content, note))


def _part(ctx: Context, output: Output, way: str, how: dict[str, Any]) -> tuple[str, str | None, str]:
    from limpet.recall.ask import ask
    from limpet.text import jsonpath, slices, tokens

    wanted: Any = how.get(way)
    cursor: str | None = how.get("cursor")
    usual = limits.OUTPUT_QUERY_TOKENS if way == "query" else limits.OUTPUT_READ_TOKENS
    cap = how.get("tokens", usual)
    around = how.get("context", MATCH_CONTEXT)
    parts = _source(ctx, output)
    ways: dict[str, Callable[[], tuple[str, str | None, str]]] = {
        "page": lambda: slices.page(parts, cursor, cap),
        "lines": lambda: slices.lines(parts, wanted, cap),
        "chars": lambda: slices.chars(parts, wanted, cap),
        "bytes": lambda: slices.bytes_(parts, wanted, cap),
        "path": lambda: jsonpath.read(text(), wanted, cap),
        "rows": lambda: slices.rows(text(), wanted, how.get("columns"), cap, cursor),
        "match": lambda: slices.match(text(), wanted, bool(how.get("regex")), around, cap, cursor),
        "query": lambda: ask(text(), wanted, cap, tokens.count),
    }

    def text() -> str:
        return parts.read(0, output.size).decode("utf-8", "surrogatepass")

    return ways[way]()


def _source(ctx: Context, output: Output) -> Source:
    """An output that is read in parts, so that a slice costs the same however long the rest is."""
    from limpet.text.slices import Source

    read, read_lines = ctx.store.output_bytes, ctx.store.output_lines
    return Source(
        output.size,
        output.lines,
        lambda start, stop: read(ctx.scope, output.id, start, stop),
        lambda first, last: read_lines(ctx.scope, output.id, first, last),
    )


def expand(ctx: Context, uri: str) -> str:
    """The text behind hold://<id>, or the part of it that #/json/pointer or #lines=a-b names."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise errors.bad_name("reference", uri, "it is written hold://<id>, hold://<id>#/json/pointer or #lines=a-b")
    from limpet.text import jsonpath, slices

    part = found[2]
    if not part:
        return whole(ctx, found[1])
    try:
        if part.startswith("lines="):
            output = find_output(ctx, found[1])
            lines = slices.line_range(part.removeprefix("lines="), output.lines)
            return ctx.store.output_lines(ctx.scope, output.id, *lines).decode("utf-8", "surrogatepass")
        return jsonpath.read(whole(ctx, found[1]), part, limits.OUTPUT_MAX_BYTES).content
    except slices.BadSlice as problem:
        raise errors.bad_slice(str(problem)) from None


def whole(ctx: Context, id: str) -> str:
    """All of an output."""
    output = find_output(ctx, id)
    return ctx.store.output_bytes(ctx.scope, output.id, 0, output.size).decode("utf-8", "surrogatepass")


def scratchpad_list(ctx: Context, limit: int = limits.NOTES_SHOWN) -> Listed:
    page = ctx.store.outputs(ctx.scope, limit)
    saved = savings(ctx).total.saved
    return Listed(page.outputs, page.total - len(page.outputs), ctx.store.output_stats(ctx.scope), saved)


def stats(ctx: Context) -> Stats:
    return Stats(*ctx.store.output_stats(ctx.scope), savings(ctx).total)


def delete_output(ctx: Context, id: str) -> Output:
    output = find_output(ctx, id)
    ctx.store.delete_output(ctx.scope, output.id, ctx.stamp("delete_output"))
    return output


def prune_outputs(ctx: Context, *just_kept: str) -> Pruned:
    """Drop what nobody has used for long, and the least used of what is too much. What is cited anywhere stays."""
    rules = ctx.bounds.outputs
    return ctx.store.prune_outputs(
        ctx.scope,
        now=ctx.now,
        max_age_ms=rules.max_age * 1_000,
        max_bytes=rules.max_cache_size,
        keep=frozenset(just_kept),
        most=limits.OUTPUT_PRUNE_MOST,
    )


def clear_outputs(ctx: Context) -> int:
    return ctx.store.clear_outputs(ctx.scope, ctx.stamp("clear_outputs"))


def find_output(ctx: Context, id: str) -> Output:
    if _ID.fullmatch(id) is None:
        raise errors.bad_name("output id", id, "it is 12 or more hexadecimal digits, as in the reference")
    output = ctx.store.output(ctx.scope, id)
    if output is None:
        gone = ctx.store.tombstone(ctx.scope, id)
        raise errors.no_output(id) if gone is None else errors.output_gone(id, _was(gone))
    return output


def _was(gone: Tombstone) -> str:
    what = f"{gone.tool}, {size(gone.size)}, kept {iso(gone.created_at)}, dropped {iso(gone.gone_at)} ({gone.why})"
    return f"{what}; the call was {gone.call}" if gone.call else what


# --- answers ----------------------------------------------------------------------------------------------------------


def output_json(output: Output) -> Json:
    return {
        "id": output.id,
        "tool": output.tool,
        "size": output.size,
        "lines": output.lines,
        "shape": output.shape,
        "session": output.session,
        "created_at": iso(output.created_at),
        "used_at": iso(output.used_at),
    }


def read_json(value: Read) -> Json:
    answer: Json = {"content": value.content}
    if value.cursor is not None:
        answer["cursor"] = value.cursor
    return answer | ({"note": value.note} if value.note else {})


def list_json(value: Listed) -> Json:
    stats = value.stats
    answer: Json = {
        "entries": [output_json(output) for output in value.outputs],
        "stats": {
            "entries": stats.entries,
            "total_bytes": stats.total_bytes,
            "stored_bytes": stats.stored_bytes,
            "oldest": None if stats.oldest is None else iso(stats.oldest),
            "newest": None if stats.newest is None else iso(stats.newest),
            "saved_tokens": value.saved,
        },
    }
    return answer | ({"left_out": value.left_out} if value.left_out else {})


def pruned_json(value: Pruned) -> Json:
    return {"deleted": value.deleted, "freed_bytes": value.freed}


def cleared_json(count: int) -> Json:
    return {"deleted": count}
