"""Savings: the tokens that stored outputs kept out of the window, less the references shown, less what was read back.

The results counted are those that a reference replaced, as the tool returned them. Small results pass untouched and are
not counted: they would add the same to both sides and cost a write each. Text that programs take out (`read_content`,
`hold://` in arguments) enters no window and is not counted. Every read counts, so the figure is a lower bound; it may
be negative.

Tokens are estimates. Of a long text, an evenly spread, fixed sample is counted.
"""

from __future__ import annotations

from limpet.catalogue.operation import Context, Json
from limpet.model import Output
from limpet.record import NamedTuple
from limpet.store import CallRecord, Savings
from limpet.text import tokens

PIECE_CHARS = 256
RESULT_PIECES = 16  # of a result: 4 KiB take half a millisecond, all of 10 MB more than a second
READ_PIECES = 2  # of what was read back: its beginning and its end, in a tenth of a millisecond
TOTAL = "*"  # every session or tool, in a sum


class SavingsReport(NamedTuple):
    """The call log by session and tool, and its sum."""

    rows: tuple[Savings, ...]
    total: Savings


def estimate(text: str, pieces: int) -> int:
    """The estimated tokens of a text, from this many pieces of it if it is longer than they are together."""
    sample = pieces * PIECE_CHARS
    if len(text) <= sample:
        return tokens.count(text)
    step = (len(text) - PIECE_CHARS) / (pieces - 1)
    places = (round(step * number) for number in range(pieces))
    counted = sum(tokens.count(text[at : at + PIECE_CHARS]) for at in places)
    return round(counted * len(text) / sample)


def note_keep(ctx: Context, output: Output, call: str, content: str, answer: tuple[str, bool, bool], tool: str) -> None:
    """Add an answered call to the log. `answer` is its text, whether the output is new, and whether it repeats."""
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


def savings(ctx: Context, session: str | None = None) -> SavingsReport:
    rows = ctx.store.calls.savings(ctx.scope, session)
    sums = [sum(column) for column in zip(*(row[3:] for row in rows), strict=True)] or [0] * len(Savings._fields[3:])
    names = sorted({row.tokenizer for row in rows})
    return SavingsReport(rows, Savings(session or TOTAL, TOTAL, ", ".join(names) or tokens.NAME, *sums))


def savings_json(saved: SavingsReport) -> Json:
    return {
        "tokenizer": saved.total.tokenizer,
        "saved": saved.total.saved,
        "total": _figures(saved.total),
        "tools": [{"session": row.session, "tool": row.tool} | _figures(row) for row in saved.rows],
    }


def _figures(row: Savings) -> Json:
    return dict(zip(Savings._fields[3:], row[3:], strict=True)) | {"saved": row.saved}
