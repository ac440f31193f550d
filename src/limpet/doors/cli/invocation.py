"""One run of the command line: the options every command takes, the open store, and how to answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from limpet import clients, errors, settings, wiring
from limpet.catalogue.table import COMMANDS
from limpet.doors.cli import render
from limpet.doors.cli.command import ACTIVE, READING, Command
from limpet.errors import NotFound
from limpet.home.load import load, nearest, project_names

if TYPE_CHECKING:
    from limpet.api import Limpet

BY = "person/cli"
OWN_SESSION = "cli"  # where a person's writes go when no session is named
EVERY = "*"
LOOK_BACK = 1_000  # changes that are searched for the session that was active last
FOR_CLIENTS = ("mcp", "wrap", "gateway")  # a client's configuration names their options, and starts them anywhere
SERVERS = (*FOR_CLIENTS, "serve")
# Commands that may name a store and a project that are not there yet.
MAKING = (*SERVERS, "init", "restore", "import", "dashboard", "demo", "trust", "untrust", "token create")

Draw = Callable[[render.Screen], None]


class Invocation:
    """The options that were given, and what commands share. Nothing is opened before it is needed."""

    def __init__(self) -> None:
        self.store: str | None = None
        self.project: str | None = None
        self.session: str | None = None
        self.json = False
        self.command = Command("", "")
        self._settings: settings.Settings | None = None
        self._hold: Limpet | None = None

    def take(self, options: Mapping[str, Any]) -> None:
        """Remember options that every command takes."""
        for name, value in options.items():
            setattr(self, name, value)

    @property
    def settings(self) -> settings.Settings:
        if self._settings is None:
            words = self.command.words
            chosen = load(self.store, self.project, server=words in SERVERS, by_client=words in FOR_CLIENTS)
            self._settings = chosen._replace(session=chosen.session or clients.session_id())
            for remark in chosen.remarks if words in SERVERS else ():
                self.notice(remark)
        return self._settings

    @property
    def hold(self) -> Limpet:
        if self._hold is None:
            self._refuse_mistyped()
            self._hold = wiring.open_with(self.settings, session=self.writing())
            self._refuse_unknown_project(self._hold)
        return self._hold

    def _refuse_mistyped(self) -> None:
        """A store or project that is named must exist, or a typing mistake would be an empty answer."""
        if self.command.words in MAKING:
            return
        if self.store and not render.exists(self.store):
            folder, name = os.path.split(os.path.abspath(self.store))
            raise errors.no_store(self.store, nearest(name, os.listdir(folder) if os.path.isdir(folder) else ()))
        data = self.settings.data
        if self.project and self.settings.own_store and (data is None or data.path is None):
            raise errors.unknown_project(self.project, nearest(self.project, project_names()))

    def _refuse_unknown_project(self, hold: Limpet) -> None:
        """The same in a store that several projects share. There, the first write begins a project."""
        operation = COMMANDS.get(self.command.words)
        writes = not operation.read_only if operation else self.command.words == "output keep"
        if writes or self.command.words in MAKING or not self.project or self.settings.own_store:
            return
        known = hold.store.projects(hold.scope.tenant)
        if known and self.project not in known:
            place = render.shown_place(hold.store.place)
            raise errors.no_project_in_store(self.project, place, nearest(self.project, known))

    def close(self) -> None:
        if self._hold is not None:
            self._hold.close()

    # --- which session ------------------------------------------------------------------------------------------------

    def session_for(self, purpose: str) -> str:
        if purpose == READING:
            return self.session or EVERY  # a person who searches notes wants them from every session
        return self.active() if purpose == ACTIVE else self.writing()

    def writing(self) -> str:
        return self.session or self.settings.session or OWN_SESSION

    def active(self) -> str:
        """The session that is named, or else the one that was active last, which is announced."""
        if name := self.session or self.settings.session:
            return name
        guess = self._last_active() or OWN_SESSION
        why = "the command line's own" if guess == OWN_SESSION else "the one that was active last"
        self.notice(f"this is session {guess}, {why}; --session names another.")
        return guess

    def _last_active(self) -> str | None:
        """The active session of the newest change, except the command line's own, which looks after others."""
        passed = {"", OWN_SESSION}
        for event in self.call("history", {"limit": LOOK_BACK})["events"]:
            name = event["session"]
            if name not in passed:
                passed.add(name)
                if self._is_active(name):
                    return str(name)
        return None

    def _is_active(self, name: str) -> bool:
        try:
            return bool(self.call("show_session", {"id": name})["state"] == "active")
        except NotFound:
            return False

    # --- calling and answering ----------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Mapping[str, Any], session: str | None = None) -> dict[str, Any]:
        return self.hold.call(name, arguments, session=session, by=BY)

    def answer(self, reply: Any, draw: Draw) -> None:
        """Print a reply: as JSON for programs, drawn for people."""
        if self.json:
            render.to_stdout(render.as_json(reply))
        else:
            draw(render.screen())

    def notice(self, text: str) -> None:
        """A remark on standard error, which is JSON too with --json."""
        render.to_stderr(render.as_json({"notice": text}) if self.json else f"limpet: {render.one_line(text)}")

    # --- texts --------------------------------------------------------------------------------------------------------

    def text_from(self, argument: str | None) -> str:
        """A text given as an argument, or from standard input when it is `-` or missing."""
        if argument is not None and argument != "-":
            return argument
        if sys.stdin.isatty():
            self.notice("reading from the terminal; end with Ctrl-D on a line of its own.")
        # Bytes that are not UTF-8 become lone surrogates, which every operation refuses with their position.
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")

    def line_from(self, argument: str | None) -> str:
        """The same without the last line break, which `echo` adds."""
        return self.text_from(argument).removesuffix("\n")

    def lines_from(self, argument: str | None) -> str:
        """The same for a notepad: an argument becomes a whole line, standard input is taken exactly."""
        text = self.text_from(argument)
        return f"{text}\n" if text and argument not in (None, "-") and not text.endswith("\n") else text
