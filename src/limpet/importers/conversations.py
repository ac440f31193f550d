"""Adding a conversation from another program to a session: its messages, and its big results as outputs.

Messages that the session has are not added again: of a message that is n times in the file and m times in the session,
n - m are new. So an import can be repeated, after it was interrupted or when the file has grown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.outputs.keep import put_outputs, reference
from limpet.outputs.policy import policy
from limpet.record import NamedTuple
from limpet.settings import OutputRules
from limpet.window import transcript
from limpet.window.messages import Call, Message, Result, Text
from limpet.window.plan.counts import Meter
from limpet.window.plan.serialise import digest
from limpet.window.transcript import StoredMessage

BATCH = 200  # messages per transaction
REFERENCE = "📁 Output cached: "  # begins a result that is already a reference


class Imported(NamedTuple):
    messages: int  # that are new
    known: int
    outputs: int  # results of these that are kept as outputs


def add_messages(
    ctx: Context,
    messages: Sequence[Message],
    times: Sequence[int] = (),
    *,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Imported:
    """Add new messages, with the time of each if it is known. `progress` gets the number of messages stored so far; a
    later failure keeps these."""
    first = transcript.count(ctx)
    new = _new(messages, Counter(stored.digest for stored in transcript.messages(ctx, 0, first)))
    fresh = [messages[index] for index in new]
    dates = _in_order([times[index] for index in new] if times else [0] * len(new))
    calls = {call.id: call for message in messages for call in message.calls()}
    duplicates, outputs = len(messages) - len(fresh), 0
    if dry_run:
        return Imported(len(fresh), duplicates, sum(len(_big(ctx.bounds.outputs, message, calls)) for message in fresh))
    meter = Meter()
    for start in range(0, len(fresh), BATCH):
        batch = [_with_references(ctx, message, calls) for message in fresh[start : start + BATCH]]
        outputs += sum(count for _, count in batch)
        # The digest is that of the message in the file, so that it is recognised when the file is read again.
        stored = [
            StoredMessage(short, digest(original), meter.message(short), at=at)
            for original, (short, _), at in zip(fresh[start:], batch, dates[start:], strict=False)
        ]
        transcript.append(ctx, first + start, stored)
        progress(start + len(batch))
    return Imported(len(fresh), duplicates, outputs)


def _new(messages: Sequence[Message], stored: Counter[str]) -> list[int]:
    """The positions of the messages that are not stored."""
    positions = []
    for position, message in enumerate(messages):
        name = digest(message)
        if stored[name]:
            stored[name] -= 1
        else:
            positions.append(position)
    return positions


def _in_order(times: Sequence[int]) -> list[int]:
    """No message is older than the one before it, also where a time is missing or a clock went back."""
    return list(accumulate(times, max))


def _with_references(ctx: Context, message: Message, calls: Mapping[str, Call]) -> tuple[Message, int]:
    """The message with references in place of its big results, and their number."""
    big = _big(ctx.bounds.outputs, message, calls)
    if not big:
        return message, 0
    outputs = put_outputs(ctx, list(big.values()))
    references = {
        index: reference(output, ctx.bounds.outputs.include_preview) for index, output in zip(big, outputs, strict=True)
    }
    parts = [
        part._replace(parts=(Text(references[index]),)) if isinstance(part, Result) and index in references else part
        for index, part in enumerate(message.parts)
    ]
    return message._replace(parts=tuple(parts)), len(big)


def _big(rules: OutputRules, message: Message, calls: Mapping[str, Call]) -> dict[int, tuple[str, str, str]]:
    """The big results of a message, by the index of their part: tool, content and call."""
    results = {}
    for index, part in enumerate(message.parts):
        if not isinstance(part, Result) or not rules.enabled:
            continue
        call = calls.get(part.call_id)
        tool = call.name if call else "tool"
        text = "\n".join(item.text for item in part.parts if isinstance(item, Text))
        least = policy(rules, tool).threshold
        size = len(text.encode("utf-8", "surrogatepass"))
        if least is not None and least <= size <= limits.OUTPUT_MAX_BYTES and not text.startswith(REFERENCE):
            results[index] = (tool, text, call.arguments if call else "")
    return results
