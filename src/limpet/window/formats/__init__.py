"""Conversations in the formats of the providers: one module per format, each with `read` and `write`.

`write(read(native)) == native`, exactly, for every conversation a provider accepts: ids, unknown fields, order and
whether a content was a string or a list are preserved. Written to another format than it was read from, a conversation
follows that format's rules; a part that the format cannot carry becomes a placeholder text.

Fields without a counterpart in `Message` are kept in `raw` under the format's name, so that a conversation may have
parts of several providers. The fields of `Message` take precedence over `raw`: a changed text is written changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet.light import Any
from limpet.record import NamedTuple
from limpet.window.formats import anthropic, mcp, openai_chat, openai_responses
from limpet.window.messages import Message


class Form(NamedTuple):
    """The format of one provider."""

    name: str
    read: Callable[[Any], tuple[Message, ...]]
    write: Callable[[Sequence[Message]], Any]


FORMS = {
    module.FORM: Form(module.FORM, module.read, module.write)
    for module in (anthropic, openai_chat, openai_responses, mcp)
}
