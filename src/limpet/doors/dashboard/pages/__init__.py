"""The pages, by name: each is a function from a View to a Page. The policy has a route for every one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from limpet.doors.dashboard.pages import (
    history,
    journal,
    memory,
    notepad,
    notes,
    outputs,
    overview,
    recall,
    savings,
    session,
)
from limpet.doors.dashboard.view import Page, View

PAGES: Mapping[str, Callable[[View], Page]] = {
    "overview": overview.overview,
    "session": session.session,
    "messages": session.messages,
    "notepad": notepad.notepad,
    "notes": notes.notes,
    "note": notes.note,
    "memory": memory.memory,
    "remembered": memory.remembered,
    "handoffs": memory.handoffs,
    "handoff": memory.handoff,
    "outputs": outputs.outputs,
    "output": outputs.output,
    "journal": journal.journal,
    "recall": recall.recall,
    "savings": savings.savings,
    "history": history.history,
    "change": history.change,
}
