"""The pages, by name: each is a function from a View to a Page. The policy has a route for every one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.doors.dashboard.pages import (
    history,
    journal,
    kept,
    notepad,
    notes,
    outputs,
    overview,
    recall,
    savings,
    story,
)
from holdfast.doors.dashboard.view import Page, View

PAGES: Mapping[str, Callable[[View], Page]] = {
    "overview": overview.overview,
    "session": story.session,
    "messages": story.messages,
    "notepad": notepad.notepad,
    "notes": notes.notes,
    "note": notes.note,
    "memory": kept.memory,
    "remembered": kept.remembered,
    "handoffs": kept.handoffs,
    "handoff": kept.handoff,
    "outputs": outputs.outputs,
    "output": outputs.output,
    "journal": journal.journal,
    "recall": recall.recall,
    "savings": savings.savings,
    "history": history.history,
    "change": history.change,
}
