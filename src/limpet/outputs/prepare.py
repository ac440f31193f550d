"""Preparing a big result for the store, and the answer to a call that is made again.

Secrets are masked, a preview is rendered, and failures are counted. The same call in the same session is answered by
what is new: one line when nothing is, a diff when it is small. Both begin like every reference, name the earlier
output, and count its failure lines, so that a failing run does not look like a passing one. When the store cannot
record the call, the plain reference is returned.
"""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase

from limpet import errors, limits
from limpet.catalogue.operation import Context
from limpet.model import Output, OutputDraft, iso
from limpet.outputs import savings
from limpet.previews import failures
from limpet.previews.preview import preview
from limpet.record import NamedTuple
from limpet.redaction import Redacted, redact, signs
from limpet.store import LastResult
from limpet.text import slices, tokens
from limpet.text.diff import small_change
from limpet.text.marks import Marks, find_marks
from limpet.text.safe import printable


class Prepared(NamedTuple):
    draft: OutputDraft
    body: bytes
    call: str  # masked, and not shortened; "" when unknown
    observed: str  # the result as the tool returned it
    content: str  # the same, masked
    failures: int  # lines that say that something failed

    def answer(self, ctx: Context, output: Output, new: bool, head: str, plain: str, reader: str) -> str:
        """The plain reference, or what is new since the same call was last made in this session."""
        tool = self.draft.tool
        repeatable = self.call and not any(fnmatchcase(tool, pattern) for pattern in ctx.bounds.outputs.no_repeats)
        # Of the masked call: a hash of the original would let a reader of the store try out passwords.
        named = f"{tool}\0{self.call}".encode("utf-8", "surrogatepass")
        key = hashlib.sha256(named).hexdigest() if repeatable else ""
        try:
            previous = ctx.store.calls.last_result(ctx.scope, ctx.session, key) if key else None
            text = (_since(ctx, previous, self, output, head, reader) if previous else None) or plain
            savings.note_keep(ctx, output, key, self.observed, (text, new, text is not plain), tool)
        except errors.StoreProblem:
            return plain
        return text


def prepare(tool: str, content: str, call: str, *, masks: bool, preview_tokens: int) -> Prepared:
    # Half of a surrogate pair is not valid UTF-8, yet a tool may return one; it comes back as it was.
    body = content.encode("utf-8", "surrogatepass")
    marks: Marks | None = find_marks(body, failure=failures.PATTERN, secret=signs.pattern())
    masked = redact(content, marks) if masks else Redacted(content, 0, ())
    if masked.count:
        body, marks = masked.text.encode("utf-8", "surrogatepass"), None
    rendered = preview(masked.text, tool=tool, budget=preview_tokens, marks=marks)
    clean_call = redact(call).text  # before it is shortened: half a secret would not be recognised
    draft = OutputDraft(tool, clean_call[: limits.OUTPUT_CALL_CHARS], rendered.shape, rendered.text, masked.count)
    return Prepared(draft, body, clean_call, content, masked.text, rendered.failures)


def _since(ctx: Context, previous: LastResult, result: Prepared, output: Output, head: str, reader: str) -> str | None:
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
    old = slices.decoded(ctx.store.outputs.read_bytes(ctx.scope, before.id, 0, before.size))
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
