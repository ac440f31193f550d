"""One visit to the dashboard: who looks at which project, where links lead, and operations called in their name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from limpet.catalogue.table import find
from limpet.doors.dashboard.html import Html, Value, address
from limpet.doors.http import policy
from limpet.importers import sample
from limpet.record import NamedTuple
from limpet.redaction import Masking

if TYPE_CHECKING:
    from limpet.api import Limpet
    from limpet.catalogue.operation import Context
    from limpet.doors.http.gate import Visit

OWN_PROJECT = "default"  # the one project of a folder's own store
DOOR = "dashboard"  # in the history
SESSION = "dashboard"  # where changes belong that no session of an agent is meant by


class DrawnPage(NamedTuple):
    """What a page shows, for frame.py to put a frame around."""

    title: str
    main: Html
    place: str  # which entry of the navigation is lit
    live: bool = True  # whether it is redrawn when something changes


class PageRow(NamedTuple):
    """A page as its file lists it. The route is /<name>."""

    name: str
    draw: Callable[[View], DrawnPage]
    menu: str = ""  # its words in the navigation; empty: reached by links
    letter: str = ""  # the key that goes there after g
    place: int = 0  # the order in the navigation


class View(NamedTuple):
    hold: Limpet
    visit: Visit
    base: str  # before every path: /p/<project>, or empty with a single project
    path: str  # of the page, without the base
    query: Mapping[str, str]
    now: int

    @property
    def own_machine(self) -> bool:
        """Whether the visitor is the one person of a local server, whose machine this is."""
        return self.visit.principal.own_machine

    @property
    def project_name(self) -> str:
        """As people call it: a folder's own project by the name of the folder."""
        project = self.hold.scope.project
        is_folders = self.visit.project is not None and self.visit.project.has_folder
        if not (is_folders and project == OWN_PROJECT):
            return project
        return os.path.basename(self.hold.root) or project

    @property
    def is_sample(self) -> bool:
        return self.own_machine and self.hold.root == sample.place()

    def link(self, path: str, **parts: Value) -> str:
        return address(self.base + path, **parts)

    def with_query(self, **changed: Value) -> str:
        """This page with another query."""
        return self.link(self.path, **{**self.query, **changed})

    def param(self, name: str) -> str:
        return self.query.get(name, "")

    def number(self, name: str) -> int | None:
        """A whole number of the query; nonsense is as if it were not there."""
        text = self.param(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None

    def context(self, session: str | None = None) -> Context:
        """For what is no operation of its own."""
        return self.hold.context(session or SESSION, self.visit.by(DOOR))

    def run(self, operation: str, session: str | None = None, /, **arguments: Any) -> Any:
        """An operation, done by the visitor. Its value."""
        return self.change(operation, session, arguments, Masking())

    def change(self, operation: str, session: str | None, arguments: Mapping[str, Any], masking: Masking) -> Any:
        """The same, with an account of the secrets that were masked."""
        return self.hold.run(find(operation), arguments, session or SESSION, self.visit.by(DOOR), masking)

    def may(self, operation: str) -> bool:
        """Whether the visitor may call it here; a button that is refused is not shown."""
        needs = policy.OPERATIONS.get(operation)
        has_files = operation not in policy.IN_FOLDER or (
            self.visit.project is not None and self.visit.project.has_folder
        )
        return needs is not None and self.visit.principal.level >= needs and has_files
