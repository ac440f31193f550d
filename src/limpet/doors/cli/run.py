"""One run of the command line: the options every command takes, the open store, how to answer, and how it ended.

Every way a command can end becomes an exit code and at most one line: 0 done, 1 a fault in Limpet, 2 bad input,
3 not found, 4 conflict, 5 trouble with the store, 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from importlib import import_module

from limpet import clients, errors, settings, wiring
from limpet.catalogue.table import COMMANDS, for_people
from limpet.doors.cli import render
from limpet.doors.cli.commands import ACTIVE, READING, Command, Misuse, function
from limpet.errors import LimpetError, NotFound
from limpet.home.load import load, nearest, project_names
from limpet.light import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limpet.api import Limpet

BY = "person/cli"
OWN_SESSION = "cli"  # where a person's writes go when no session is named
EVERY = "*"
MASKED_HINT = "--keep-secret stores it as it is."
LOOK_BACK = 1_000  # changes that are searched for the session that was active last
FOR_CLIENTS = ("mcp", "wrap", "gateway")  # a client's configuration names their options, and starts them anywhere
SERVERS = (*FOR_CLIENTS, "serve")
# Commands that may name a store or project that is not there yet.
MAKING = (*SERVERS, "init", "restore", "import", "dashboard", "demo", "trust", "untrust", "token create")

Draw = Callable[[render.Screen], None]
INTERRUPTED = 130
READER_GONE = 141
CLICK = "limpet.doors.cli.click_program"  # for help, completion and mistakes; importing it takes 50 ms and more


class Invocation:
    """The options that were given, and what commands share. Nothing is opened before it is needed."""

    def __init__(self) -> None:
        self.store: str | None = None
        self.project: str | None = None
        self.session: str | None = None
        self.json = False
        self.keep_secret = False
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

    def leave_project(self) -> None:
        """Work in the project of the folder, whatever --project says. Nothing must be open yet."""
        self.project = self._settings = None

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

    def session_for(self, purpose: str, *, rewrites: bool = False) -> str:
        """The session that a command works in. One that rewrites an agent's text is asked about first."""
        if purpose == READING:
            return self.session or EVERY  # a person who searches notes wants them from every session
        return self.active(rewrites=rewrites) if purpose == ACTIVE else self.writing()

    def writing(self) -> str:
        return self.session or self.settings.session or OWN_SESSION

    def active(self, *, rewrites: bool = False) -> str:
        """The session that is named, or else the one that was active last, which is announced."""
        if name := self.session or self.settings.session:
            return name
        guess = self._last_active() or OWN_SESSION
        if rewrites and guess != OWN_SESSION:
            if self.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
                raise Misuse(f"This would change a text of session {guess}. If you mean that one: --session {guess}")
            render.ask(f"This changes a text of session {guess}, the one that was active last. Go on?")
            return guess
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
        return self.hold.call(name, arguments, session=session, by=BY, keep_secret=self.keep_secret)

    def answer(self, reply: Any, draw: Draw) -> None:
        """Print a reply: as JSON for programs, drawn for people."""
        if self.json:
            render.to_stdout(render.as_json(reply))
        else:
            draw(render.screen())

    def say_masked(self, reply: dict[str, Any]) -> None:
        """Say in the words of the command line that secrets were masked: in the reply, or beside it."""
        if masked := reply.get("masked"):
            masked["hint"] = MASKED_HINT
            if not self.json:
                were = "secret was" if masked["count"] == 1 else "secrets were"
                kinds = ", ".join(masked["kinds"])
                self.notice(f"{masked['count']:,} {were} masked before storing ({kinds}). {MASKED_HINT}")

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


# --- running a command ------------------------------------------------------------------------------------------------


def run(args: list[str], recognised: tuple[Command, dict[str, Any], dict[str, Any]] | None) -> int:
    """Run the command that was recognised, or let click look at the words; the exit code."""
    # An error may come before the options are read, so whether it is to be JSON is decided by looking.
    as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
    cli = Invocation()
    try:
        with closing(cli):
            if recognised is None:
                code = import_module(CLICK).run(args, cli, as_json=as_json)
            else:
                cli.command, options, values = recognised
                cli.take(options)
                code = function(cli.command)(cli, **values)
        render.flushed()
        return code or 0
    except Misuse as problem:
        return int(import_module(CLICK).refuse(cli.command, str(problem), as_json=as_json))
    except (Exception, KeyboardInterrupt) as problem:
        return ended_by(problem, as_json=as_json, command=cli.command.words)


def ended_by(problem: BaseException, *, as_json: bool = False, command: str = "") -> int:
    """Report what stopped a command; its exit code. Programs, which read JSON, get the words of the library."""
    if isinstance(problem, LimpetError):
        if problem.code == "answer_lost":
            _drop_output()
        _report(problem.code, problem.message if as_json else for_people(problem.message, command), as_json)
        return problem.exit_code
    if isinstance(problem, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(problem, (BrokenPipeError, render.OutputClosed)):
        _drop_output()
        return READER_GONE
    if settings.debug():
        sys.excepthook(type(problem), problem, problem.__traceback__)
    what = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
    _report(
        "internal",
        f"something went wrong inside Limpet ({what}). Nothing more was done. Please report it; "
        f"LIMPET_DEBUG=1 shows where it happened.",
        as_json,
    )
    return 1


def _report(code: str, message: str, as_json: bool) -> None:
    if as_json:
        render.to_stderr(render.as_json({"error": {"code": code, "message": message}}))
    else:
        render.to_stderr(f"limpet: {render.one_line(message)}")


def _drop_output() -> None:
    """Discard what is still in the buffer: the interpreter would complain about it when it ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return
