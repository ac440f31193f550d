"""A conversation that another program kept, taken into a session: its messages as ours, its big results as outputs.

What the session has already is not added again: of a message that stands n times in the file and m times in the
session, n - m are new. So an import can be repeated, after it was broken off or when the file has grown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.outputs.keep import put_outputs, reference
from limpet.outputs.policy import policy
from limpet.settings import OutputRules
from limpet.window import transcript
from limpet.window.messages import Call, Message, Result, Text
from limpet.window.plan.counts import Meter
from limpet.window.plan.serialise import digest
from limpet.window.transcript import StoredMessage

BATCH = 200  # messages of one transaction
REFERENCE = "📁 Output cached: "  # a result that was kept when it came


class Imported(NamedTuple):
    messages: int  # that are new
    known: int
    outputs: int  # results of these that are kept outside


def add_messages(
    ctx: Context, messages: Sequence[Message], *, dry_run: bool = False, told: Callable[[int], None] = lambda done: None
) -> Imported:
    """Add what is new. `told` is given how many messages are on disk; what it was told stays, whatever happens next."""
    first = transcript.count(ctx)
    fresh = _fresh(messages, Counter(one.digest for one in transcript.messages(ctx, 0, first)))
    calls = {call.id: call for message in messages for call in message.calls()}
    known, kept = len(messages) - len(fresh), 0
    if dry_run:
        return Imported(len(fresh), known, sum(len(_big(ctx.bounds.outputs, one, calls)) for one in fresh))
    meter = Meter()
    for at in range(0, len(fresh), BATCH):
        batch = [_put_aside(ctx, message, calls) for message in fresh[at : at + BATCH]]
        kept += sum(count for _, count in batch)
        # The digest is that of what the file says: by it the message is known when the file is read again.
        pairs = zip(fresh[at:], batch, strict=False)
        stored = [StoredMessage(shown, digest(whole), meter.message(shown)) for whole, (shown, _) in pairs]
        transcript.append(ctx, first + at, stored)
        told(at + len(batch))
    return Imported(len(fresh), known, kept)


def _fresh(messages: Sequence[Message], known: Counter[str]) -> list[Message]:
    found = []
    for message in messages:
        name = digest(message)
        if known[name]:
            known[name] -= 1
        else:
            found.append(message)
    return found


def _put_aside(ctx: Context, message: Message, calls: Mapping[str, Call]) -> tuple[Message, int]:
    """The message with references in place of its big results, and how many these are."""
    big = _big(ctx.bounds.outputs, message, calls)
    if not big:
        return message, 0
    outputs = put_outputs(ctx, list(big.values()))
    shown = {at: reference(output, ctx.bounds.outputs.include_preview) for at, output in zip(big, outputs, strict=True)}
    parts = [
        part._replace(parts=(Text(shown[at]),)) if isinstance(part, Result) and at in shown else part
        for at, part in enumerate(message.parts)
    ]
    return message._replace(parts=tuple(parts)), len(big)


def _big(rules: OutputRules, message: Message, calls: Mapping[str, Call]) -> dict[int, tuple[str, str, str]]:
    """The results among the parts that belong outside, by their number: tool, content and call."""
    found = {}
    for at, part in enumerate(message.parts):
        if not isinstance(part, Result) or not rules.enabled:
            continue
        call = calls.get(part.call_id)
        tool = call.name if call else "tool"
        text = "\n".join(one.text for one in part.parts if isinstance(one, Text))
        least = policy(rules, tool).threshold
        size = len(text.encode("utf-8", "surrogatepass"))
        if least is not None and least <= size <= limits.OUTPUT_MAX_BYTES and not text.startswith(REFERENCE):
            found[at] = (tool, text, call.arguments if call else "")
    return found
