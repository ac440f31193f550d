"""Preparing a big result for the store: secrets masked, a preview rendered, failures counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limpet import limits
from limpet.model import Output, OutputDraft
from limpet.outputs import repeats
from limpet.previews import failures
from limpet.previews.preview import preview
from limpet.redaction import Redacted, redact, signs
from limpet.text.marks import Marks, find_marks

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context


class Prepared(NamedTuple):
    draft: OutputDraft
    body: bytes
    call: str  # masked, and not shortened
    observed: str  # the result as the tool returned it
    content: str  # masked
    failures: int

    def answer(self, ctx: Context, output: Output, new: bool, head: str, plain: str, reader: str) -> str:
        """The reference to the stored output, or what is new since the same call was last made in this session."""
        result = repeats.KeptResult(self.draft.tool, self.call, self.observed, self.content, self.failures, new)
        return repeats.answer(ctx, result, output, head, plain, reader)


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
