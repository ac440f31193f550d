"""Savings: what kept outputs did not cost the window. Observed, less what was shown instead, less what was read back.

Only what was really about to enter a window is counted: the result of a call that a reference replaced, as it came from
the tool. Small results pass untouched and are not counted at all; they would add the same to both sides and cost a
write each. What programs take out (`read_content`, `hold://` among arguments) enters no window and is not counted.
A read by anybody counts, so that the figure is rather too low than too high; and it may be below zero.

Tokens are the house's estimate. Of a long text a sample is counted, evenly spread and always the same.
"""

from __future__ import annotations

from typing import NamedTuple

from limpet.catalogue.operation import Context, Json
from limpet.model import Output
from limpet.store import CallRecord, Savings
from limpet.text import tokens

PIECE_CHARS = 256
RESULT_PIECES = 16  # of a result: 4 KiB take half a millisecond, all of 10 MB more than a second
READ_PIECES = 2  # of what was read back: its beginning and its end, in a tenth of a millisecond
TOTAL = "*"  # stands for every session and tool in a sum


class Saved(NamedTuple):
    """The ledger by session and tool, and its sum."""

    rows: tuple[Savings, ...]
    total: Savings


def estimate(text: str, pieces: int) -> int:
    """About how many tokens, counted over so many pieces of the text if it is longer than these."""
    sample = pieces * PIECE_CHARS
    if len(text) <= sample:
        return tokens.count(text)
    step = (len(text) - PIECE_CHARS) / (pieces - 1)
    places = (round(step * number) for number in range(pieces))
    counted = sum(tokens.count(text[at : at + PIECE_CHARS]) for at in places)
    return round(counted * len(text) / sample)


def note_keep(ctx: Context, output: Output, call: str, content: str, answer: tuple[str, bool, bool], tool: str) -> None:
    """Add an answered call to the ledger. `answer` is its text, whether the output is new, and whether it repeats."""
    text, new, repeated = answer
    observed, returned = estimate(content, RESULT_PIECES), tokens.count(text)
    note = CallRecord(
        ctx.session,
        tool,
        call,
        output.id,
        output.digest,
        ctx.now,
        new,
        repeated,
        tokens.NAME,
        observed,
        returned,
    )
    ctx.store.calls.record_call(ctx.scope, note, ctx.now - ctx.bounds.outputs.max_age * 1_000)


def savings(ctx: Context, session: str | None = None) -> Saved:
    rows = ctx.store.calls.savings(ctx.scope, session)
    sums = [sum(column) for column in zip(*(row[3:] for row in rows), strict=True)] or [0] * len(Savings._fields[3:])
    names = sorted({row.tokenizer for row in rows})
    return Saved(rows, Savings(session or TOTAL, TOTAL, ", ".join(names) or tokens.NAME, *sums))


def savings_json(saved: Saved) -> Json:
    return {
        "tokenizer": saved.total.tokenizer,
        "saved": saved.total.saved,
        "total": _figures(saved.total),
        "tools": [{"session": row.session, "tool": row.tool} | _figures(row) for row in saved.rows],
    }


def _figures(row: Savings) -> Json:
    return dict(zip(Savings._fields[3:], row[3:], strict=True)) | {"saved": row.saved}
