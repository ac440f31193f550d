"""Limpet: working memory for AI agents. Notes, notepad, memory and handoff that outlive the context window.

    import limpet

    with limpet.open() as hold:
        session = hold.session("port the parser")
        session.notes.add("Casts break LL(1)", tags=["grammar"])
        session.notepad.append("- [ ] casts\\n")

Nothing happens at import. The names below are imported at first use, so that a command or a hook that needs none of
them starts at once.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know this name; importing it from typing would cost 10 ms at every start

__version__ = "0.2.0"
__all__ = [
    "Agent",
    "AsyncLimpet",
    "AsyncSession",
    "BadInput",
    "Call",
    "Clear",
    "Compact",
    "Conflict",
    "Limits",
    "Limpet",
    "LimpetError",
    "Media",
    "Message",
    "Meter",
    "NotAStore",
    "NotFound",
    "Proceed",
    "ProviderCount",
    "Reply",
    "Result",
    "Session",
    "StoreBusy",
    "StoreDamaged",
    "StoreFull",
    "StoreGone",
    "StoreProblem",
    "StoreReadOnly",
    "StoreTooNew",
    "Text",
    "Thinking",
    "TooBig",
    "Tool",
    "Warn",
    "__version__",
    "aopen",
    "assistant",
    "formats",
    "guidance",
    "message_problems",
    "open",
    "repair_messages",
    "result",
    "spent",
    "system",
    "user",
]

if TYPE_CHECKING:
    from limpet.agent import Agent, Limits, Reply
    from limpet.api import Limpet, Session, Tool
    from limpet.async_api import AsyncLimpet, AsyncSession, aopen
    from limpet.catalogue.table import guidance
    from limpet.errors import (
        BadInput,
        Conflict,
        LimpetError,
        NotAStore,
        NotFound,
        StoreBusy,
        StoreDamaged,
        StoreFull,
        StoreGone,
        StoreProblem,
        StoreReadOnly,
        StoreTooNew,
    )
    from limpet.window import formats
    from limpet.window.messages import Call, Media, Message, Result, Text, Thinking, assistant, result, system, user
    from limpet.window.plan.controller import Clear, Compact, Proceed, TooBig, Warn
    from limpet.window.plan.counts import Meter, ProviderCount, spent
    from limpet.window.plan.rules import problems as message_problems
    from limpet.window.plan.rules import repair as repair_messages
    from limpet.wiring import open

_MODULES = {  # module: the names that come from it
    "agent": "Agent Limits Reply",
    "api": "Limpet Session Tool",
    "async_api": "AsyncLimpet AsyncSession aopen",
    "catalogue.table": "guidance",
    "errors": "BadInput Conflict LimpetError NotAStore NotFound"
    " StoreBusy StoreDamaged StoreFull StoreGone StoreProblem StoreReadOnly StoreTooNew",
    "window": "formats",
    "window.messages": "Call Media Message Result Text Thinking assistant result system user",
    "window.plan.controller": "Clear Compact Proceed TooBig Warn",
    "window.plan.counts": "Meter ProviderCount spent",
    "window.plan.rules": "message_problems repair_messages",
    "wiring": "open",
}
_OTHER_NAMES = {"message_problems": "problems", "repair_messages": "repair"}


def __getattr__(name: str) -> object:
    from importlib import import_module  # a stdlib module that a start can do without

    for module, names in _MODULES.items():
        if name in names.split():
            if name == "formats":
                return import_module("limpet.window.formats")
            return getattr(import_module(f"limpet.{module}"), _OTHER_NAMES.get(name, name))
    raise AttributeError(f"module 'limpet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
