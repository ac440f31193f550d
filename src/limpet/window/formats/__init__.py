"""Conversations in the forms of the providers: one module a form, each with `read` and `write`.

`write(read(native)) == native`, exactly, for every conversation a provider accepts: ids, unknown fields, order and
whether a content was a string or a list stay as they were. Written to another form than it was read from, a
conversation follows that form's rules; what the form has no place for is named in a short text instead.

What a form says and ours has no word for is kept in `raw` under the form's name, so that parts of several providers may
stand in one conversation. The words of our own model always win over `raw`: a changed text is written changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from limpet.window.formats import anthropic, mcp, openai_chat, openai_responses
from limpet.window.messages import Message


class Form(NamedTuple):
    """How conversations look at one provider."""

    name: str
    read: Callable[[Any], tuple[Message, ...]]
    write: Callable[[Sequence[Message]], Any]


FORMS = {
    module.FORM: Form(module.FORM, module.read, module.write)
    for module in (anthropic, openai_chat, openai_responses, mcp)
}
