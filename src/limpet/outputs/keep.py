"""Keeping outputs: a big tool result is stored, and a reference with a preview takes its place in the window.

A small result passes untouched. This module also lists, prunes and deletes what is stored; `read` reads parts of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json
from limpet.model import Output, Tombstone, iso
from limpet.outputs.policy import policy
from limpet.outputs.savings import savings
from limpet.record import NamedTuple
from limpet.redaction.entries import refuse_secret_session
from limpet.store import OutputStats, Pruned, Savings
from limpet.text import brief
from limpet.text.safe import as_name, visible

if TYPE_CHECKING:
    from limpet.outputs.prepare import Prepared

READER = "read_output"  # the tool that reads a stored output, unless a door lists it under another name
_COMMAND_CHARS = 160  # of the command above a preview
_ID = re.compile(r"[0-9a-f]{12,64}")


class Replacement(NamedTuple):
    """What to show for a tool's result: the result itself (`output` is None), or a reference to it."""

    text: str
    output: Output | None


class OutputList(NamedTuple):
    outputs: tuple[Output, ...]
    left_out: int
    stats: OutputStats
    saved: int = 0  # tokens; negative when reading back cost more than it saved


class Stats(NamedTuple):
    entries: int
    total_bytes: int  # the outputs' own sizes
    stored_bytes: int  # their compressed sizes
    oldest: int | None  # milliseconds, of the first output stored
    newest: int | None
    savings: Savings  # of every session


def keep_output(
    ctx: Context, tool: str, content: str, call: str = "", free_tokens: int | None = None, reader: str = READER
) -> Replacement:
    """Store a tool's result if it is big. `call` says how to get it again after it was pruned."""
    rules = ctx.bounds.outputs
    rule = policy(rules, tool, free_tokens)
    if not rules.enabled or not rule.is_big(content):
        return Replacement(content, None)
    return keep_big(ctx, tool, content, call, redact=rule.redact, reader=reader)


def keep_big(
    ctx: Context, tool: str, content: str, call: str = "", *, redact: bool = True, reader: str = READER
) -> Replacement:
    """Store a result that the policy has found to be big."""
    rules = ctx.bounds.outputs
    prepared = _prepared(ctx, tool, content, call, redact)
    refuse_secret_session(ctx.stamp("keep_output"))
    output, new = ctx.store.outputs.keep(ctx.scope, prepared.draft, prepared.body, ctx.stamp("keep_output"))
    if new:
        prune_outputs(ctx, output.id)
    plain = reference(output, rules.include_preview, reader, prepared.call)
    return Replacement(prepared.answer(ctx, output, new, _head(output), plain, reader), output)


def is_big(ctx: Context, tool: str, content: str) -> bool:
    """Whether `keep_output` would store it."""
    rules = ctx.bounds.outputs
    return rules.enabled and policy(rules, tool).is_big(content)


def put_output(ctx: Context, tool: str, content: str, call: str = "") -> Output:
    """Store a text, however small."""
    return put_outputs(ctx, [(tool, content, call)])[0]


def put_outputs(ctx: Context, results: Sequence[tuple[str, str, str]]) -> list[Output]:
    """Store several results in one transaction, each given as tool, content and call."""
    rules = ctx.bounds.outputs
    prepared = [_prepared(ctx, tool, text, call, policy(rules, tool).redact) for tool, text, call in results]
    stamp = ctx.stamp("keep_output")
    refuse_secret_session(stamp)
    if len(prepared) == 1:  # the store looks for a single one without a write lock; of several, most are new
        stored = [ctx.store.outputs.keep(ctx.scope, prepared[0].draft, prepared[0].body, stamp)]
    else:
        stored = list(ctx.store.outputs.keep_all(ctx.scope, [(item.draft, item.body) for item in prepared], stamp))
    if any(item.new for item in stored):
        prune_outputs(ctx, *(item.output.id for item in stored))
    return [item.output for item in stored]


def _prepared(ctx: Context, tool: str, content: str, call: str, masks: bool) -> Prepared:
    # Late: previews, redaction and repeats compile hundreds of patterns, and most results are small.
    from limpet.outputs.prepare import prepare

    masks = masks and not (ctx.masking and ctx.masking.keep)
    return prepare(tool, content, call, masks=masks, preview_tokens=ctx.bounds.outputs.preview_length)


def reference(output: Output, with_preview: bool = True, reader: str = READER, call: str = "") -> str:
    """The text that replaces an output in the window: what it is, a preview, and the tool that reads more.

    `call` is what gave this result now; the output may have been stored for another call with the same result.
    """
    command = _command(call)
    parts = [f"{_head(output)}\n$ {command}" if command else _head(output)]
    if with_preview:
        parts.append(output.preview)
    parts.append(f'Read more with {reader}(id="{output.id}", …): query, lines, match, path or rows.')
    return "\n\n".join(parts)


def _command(call: str) -> str:
    """The command of a call, on one line: that of a shell among its arguments, or the call itself if it has none."""
    start = call.find("{")
    try:
        arguments = json.loads(call[start:]) if start >= 0 else {"command": call}
    except ValueError:
        return ""
    command = arguments.get("command") or arguments.get("cmd") if isinstance(arguments, dict) else None
    words = command if isinstance(command, str) else " ".join(map(str, command)) if isinstance(command, list) else ""
    line = visible(words.strip(), keep_newlines=False)
    return line if len(line) <= _COMMAND_CHARS else f"{line[:_COMMAND_CHARS]}…"


def _head(output: Output) -> str:
    masked = f", {output.redacted} secrets masked" if output.redacted else ""
    return f"📁 Output cached: {output.id} ({size(output.size)}){masked}"


def size(count: int) -> str:
    if count < 1 << 10:
        return f"{count}B"
    return f"{count / (1 << 10):.1f}KB" if count < 1 << 20 else f"{count / (1 << 20):.2f}MB"


# --- what is stored ---------------------------------------------------------------------------------------------------


def list_outputs(ctx: Context, limit: int = limits.NOTES_SHOWN) -> OutputList:
    page = ctx.store.outputs.list(ctx.scope, limit)
    saved = savings(ctx).total.saved
    return OutputList(page.outputs, page.total - len(page.outputs), ctx.store.outputs.stats(ctx.scope), saved)


def stats(ctx: Context) -> Stats:
    return Stats(*ctx.store.outputs.stats(ctx.scope), savings(ctx).total)


def find_output(ctx: Context, id: str) -> Output:
    if _ID.fullmatch(id) is None:
        raise errors.bad_name("output id", id, "it is 12 or more hexadecimal digits, as in the reference")
    output = ctx.store.outputs.find(ctx.scope, id)
    if output is None:
        tombstone = ctx.store.outputs.tombstone(ctx.scope, id)
        raise errors.no_output(id) if tombstone is None else errors.output_gone(id, _was(tombstone))
    return output


def _was(gone: Tombstone) -> str:
    times = f"kept {iso(gone.created_at)}, dropped {iso(gone.gone_at)} ({gone.why})"
    what = f"{as_name(gone.tool)}, {size(gone.size)}, {times}"
    return f"{what}; the call was {visible(gone.call, keep_newlines=False)}" if gone.call else what


def delete_output(ctx: Context, id: str) -> Output:
    output = find_output(ctx, id)
    ctx.store.outputs.delete(ctx.scope, output.id, ctx.stamp("delete_output"))
    return output


def prune_outputs(ctx: Context, *just_kept: str) -> Pruned:
    """Delete outputs unused for too long, then the least used ones above the size limit. Cited ones stay."""
    rules = ctx.bounds.outputs
    return ctx.store.outputs.prune(
        ctx.scope,
        now=ctx.now,
        max_age_ms=rules.max_age * 1_000,
        max_bytes=rules.max_cache_size,
        keep=frozenset(just_kept),
        most=limits.OUTPUT_PRUNE_MOST,
    )


def clear_outputs(ctx: Context) -> int:
    return ctx.store.outputs.clear(ctx.scope, ctx.stamp("clear_outputs"))


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


def list_json(value: OutputList) -> Json:
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


def list_text(ctx: Context, value: OutputList) -> str:
    outputs = [_output_line(ctx, output) for output in value.outputs]
    closing = f"{brief.counted(value.stats.entries, 'output')}, {size(value.stats.total_bytes)}"
    if value.left_out:
        closing += f"; {value.left_out:,} not shown: raise limit"
    return brief.lines(outputs, f"{closing}.")


def _output_line(ctx: Context, output: Output) -> str:
    names = f"{as_name(output.tool)} {size(output.size)} {as_name(output.shape)}"  # of an import, any text
    return f"{output.id} {names} {brief.ago(output.used_at, ctx.now)}"


def pruned_json(value: Pruned) -> Json:
    return {"deleted": value.deleted, "freed_bytes": value.freed}


def cleared_json(count: int) -> Json:
    return {"deleted": count}
