"""What every command needs: the options given anywhere on the line, the open store, and how to answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from limpet import settings
from limpet.doors.cli import render

if TYPE_CHECKING:
    from limpet.api import Limpet

BY = "person/cli"
OWN_SESSION = "cli"  # where a person's writes go when no session is named
EVERY = "*"
LOOK_BACK = 1_000  # changes that are looked through for the session that was active last

Draw = Callable[[render.Screen], None]


class State:
    """One run of the command line."""

    def __init__(self) -> None:
        self.store: str | None = None
        self.project: str | None = None
        self.session: str | None = None
        self.json = False
        self._settings: settings.Settings | None = None
        self._hold: Limpet | None = None

    @property
    def settings(self) -> settings.Settings:
        if self._settings is None:
            self._settings = settings.load(self.store, self.project)
        return self._settings

    @property
    def hold(self) -> Limpet:
        if self._hold is None:
            from limpet import wiring  # late: help and completion need no store

            self._hold = wiring.open_with(self.settings, session=self.writing())
        return self._hold

    def close(self) -> None:
        if self._hold is not None:
            self._hold.close()

    # --- which session ------------------------------------------------------------------------------------------------

    def writing(self) -> str:
        return self.session or self.settings.session or OWN_SESSION

    def reading(self) -> str:
        """Who looks for notes wants to find them, whichever session wrote them."""
        return self.session or EVERY

    def pad(self) -> str:
        """A notepad belongs to one session. When none is named it is the one that was active last, and we say so."""
        named = self.session or self.settings.session
        if named:
            return named
        guess = self._last_active() or OWN_SESSION
        self.notice(f"this is session {guess}, {_why(guess)}; --session names another.")
        return guess

    def _last_active(self) -> str | None:
        """The active session of the newest change. The command line's own is passed over: it looks after others."""
        passed = {"", OWN_SESSION}
        for event in self.call("history", {"limit": LOOK_BACK})["events"]:
            name = event["session"]
            if name not in passed:
                passed.add(name)
                if self._is_active(name):
                    return str(name)
        return None

    def _is_active(self, name: str) -> bool:
        from limpet.errors import NotFound

        try:
            return bool(self.call("show_session", {"id": name})["state"] == "active")
        except NotFound:
            return False

    # --- asking and answering -----------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Mapping[str, Any], session: str | None = None) -> dict[str, Any]:
        return self.hold.call(name, arguments, session=session, by=BY)

    def answer(self, reply: Any, draw: Draw) -> None:
        """Show a reply: as it is for machines, drawn for people."""
        if self.json:
            render.to_stdout(render.as_json(reply))
        else:
            draw(render.screen())

    def notice(self, text: str) -> None:
        """Something worth knowing beside the answer. With --json standard error is JSON too."""
        render.to_stderr(render.as_json({"notice": text}) if self.json else f"limpet: {render.one_line(text)}")


def say_twin(state: State, reply: Mapping[str, Any]) -> None:
    """That what was written says the same as something else."""
    if not state.json and (other := reply.get("duplicate_of") or reply.get("similar_to")):
        state.notice(f"{other} says {'' if 'duplicate_of' in reply else 'nearly '}the same.")


def _why(guess: str) -> str:
    return "the command line's own" if guess == OWN_SESSION else "the one that was active last"


def text_from(argument: str | None, state: State) -> str:
    """A text given as an argument, or from standard input when it is `-` or missing."""
    if argument is not None and argument != "-":
        return argument
    if sys.stdin.isatty():
        state.notice("reading from the terminal; end with Ctrl-D on a line of its own.")
    # Bytes that are not UTF-8 become lone surrogates, which every operation refuses with their position.
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def line_from(argument: str | None, state: State) -> str:
    """The same for a text whose last line break means nothing, as `echo` adds one."""
    return text_from(argument, state).removesuffix("\n")


def lines_from(argument: str | None, state: State) -> str:
    """The same for a notepad: words given as an argument are a whole line, standard input is taken exactly."""
    text = text_from(argument, state)
    return f"{text}\n" if text and argument not in (None, "-") and not text.endswith("\n") else text
