"""Limpet: working memory for AI agents. Notes, notepad, memory and handoff that outlive the context window.

    import limpet

    with limpet.open() as hold:
        session = hold.session("port the parser")
        session.notes.add("Casts break LL(1)", tags=["grammar"])
        session.notepad.append("- [ ] casts\\n")

Nothing happens at import: the names below are fetched when first used, so that a command line or a hook that needs none
of them starts at once.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know this name; importing it from typing would cost 10 ms at every start

__version__ = "0.1.0"
__all__ = ["Limpet", "LimpetError", "Session", "Tool", "__version__", "guidance", "open"]

if TYPE_CHECKING:
    from limpet.api import Limpet, Session, Tool
    from limpet.catalogue.table import guidance
    from limpet.errors import LimpetError
    from limpet.wiring import open

_HOMES = {
    "LimpetError": "errors",
    "Limpet": "api",
    "Session": "api",
    "Tool": "api",
    "guidance": "catalogue.table",
    "open": "wiring",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'limpet' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"limpet.{_HOMES[name]}"), name)
