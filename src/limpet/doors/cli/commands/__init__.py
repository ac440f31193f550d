"""Every command: how it is declared, the parser that reads its words, and the headings it is listed under.

A command is declared once, as data, in the module of its heading, which is imported when it is needed. `parse` reads
well-formed words without importing anything further, because clients and people wait for every start. Help, completion
and mistakes are left to click, which click_program.py builds from the same declarations.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # see limpet/__init__.py
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

# The first words under each heading, in the order of `limpet --help`.
HEADINGS = {
    "remember": ("note", "memory", "review", "handoff", "pad", "prompt", "scratch", "state", "skill", "journal"),
    "find": ("recall", "tags", "context"),
    "look": ("session", "messages", "history", "undo", "window", "task", "output", "savings", "sandbox", "demo"),
    "connect": (
        *("init", "install", "uninstall", "status", "trust", "untrust", "project", "mcp", "serve", "dashboard", "wrap"),
        *("gateway", "hook", "off", "on", "tools", "seals", "completion"),
    ),
    "look_after": ("doctor", "index", "audit", "purge", "export", "import", "backup", "restore", "store", "token"),
}
# What `limpet --help` says of them, where their own help begins with more than fits a line.
BRIEFLY = {
    "pad": "The notepad of a session: its plan and progress.",
    "prompt": "What a project's agents are always told.",
    "scratch": "A quick note without tags.",
    "journal": "The project's NOTES.md: where the work stands, and why.",
    "recall": "Search everything that is kept, in all sessions.",
    "tags": "The tags in use.",
    "context": "What a model reads at the start of a new session.",
    "messages": "Read the conversation of a session.",
    "history": "What changed, newest first, and who did it.",
    "undo": "Take back your last change, or one by its number.",
    "window": "What fills a session's window, and what is folded.",
    "savings": "The tokens that kept outputs saved.",
    "sandbox": "Python over kept outputs, where it can do no harm.",
    "demo": "A short story: what survives a wiped context.",
    "init": "Make a store for the project you are in.",
    "install": "Put Limpet into a coding agent's configuration.",
    "uninstall": "Take it out again.",
    "status": "This project at a glance, and who has Limpet.",
    "trust": "Let the settings that a repository brings count.",
    "untrust": "Take that back.",
    "project": "The projects that have memory on this machine.",
    "mcp": "Speak MCP, for a client that starts it.",
    "serve": "Speak MCP over HTTP, with the dashboard.",
    "dashboard": "Look at what is kept, in a browser.",
    "wrap": "Stand in front of an MCP server: big results are kept.",
    "gateway": "The same for many MCP servers at once.",
    "hook": "What coding agents call at their events.",
    "off": "Switch the hooks off in this project.",
    "on": "Switch them on again.",
    "tools": "The tools of a profile, and the tokens they cost.",
    "seals": "Tools of other servers, as they were first seen.",
    "completion": "The script that lets a shell complete words.",
    "doctor": "Check settings, store, checksums and permissions.",
    "index": "Make the vectors that recall compares texts by.",
    "review": "What waits for your yes: proposals of agents.",
    "store": "The store as a whole, over several servers.",
    "audit": "What somebody should look at: secrets, repeats, age.",
    "purge": "Take out what came from one origin.",
    "export": "Write the project with its history to a file.",
    "import": "Read an export, a transcript or another tool's memory.",
    "backup": "Copy the whole store into a file.",
    "restore": "Put a backup into an empty store.",
    "token": "Who may come in to the HTTP server.",
}
MOST_WORDS = 3  # of a command
PLAIN = "limpet.doors.cli.plain"  # for commands that are one call of one operation

# Kinds of values.
TEXT = "text"
NUMBER = "number"  # an integer; anything else goes to the operation as it is, which refuses it in its own words
COUNT = "count"  # an integer within bounds, refused by the parser
FLAG = "flag"
SWITCH = "switch"  # "--on/--off", None when neither is given
LIST = "list"  # an option that may be repeated
REST = "rest"  # all remaining arguments
PATH = "path"
FILE = "file"  # a file that exists, or - for standard input
FOLDER = "folder"  # not a file
CHOICE = "choice"
CONFIRM = "confirm"  # --yes, or else the person is asked; `help` is the question
# Arguments that are read from standard input when they are - or missing.
LINE = "line"  # without the last line break, as `echo` adds one
LINES = "lines"  # exactly; words given as an argument become a whole line
VALUELESS = (FLAG, SWITCH, CONFIRM)

# Which session an operation is called for.
WRITING = "writing"  # the one that is named, or else the command line's own
READING = "reading"  # the one that is named, or else all
ACTIVE = "active"  # the one that is named, or else the one that was active last
BY_ID = "id"  # the one that the argument `id` names
ARGUMENT = "argument"  # the one that is named, as the argument `session` of the operation


# Plain classes: three named tuples would take longer to make than everything else in this module.
class Parameter:
    """An argument of a command, or an option if it has flags."""

    __slots__ = ("choices", "default", "flags", "help", "high", "kind", "low", "metavar", "name", "required", "value")

    def __init__(  # noqa: PLR0913 - a declaration has many fields
        self,
        name: str,  # of the value
        kind: str = TEXT,
        flags: str = "",  # "--tag" or "--done/--open"
        metavar: str = "",
        help: str = "",
        *,
        required: bool = False,
        default: Any = None,
        bounds: tuple[int, int | None] = (0, None),  # of a COUNT
        choices: tuple[str, ...] = (),
        value: Any = True,  # of a flag that is given
    ) -> None:
        self.name = name
        self.kind = kind
        self.flags = flags
        self.metavar = metavar
        self.help = help
        self.required = required
        self.default = default
        self.low, self.high = bounds
        self.choices = choices
        self.value = value


class Command:
    """A command by the words that are typed.

    It calls the operation that has these words in the table of operations, unless `run` names a function of its own.
    What a declaration leaves out comes from the operation's row: see `plain.filled`.
    """

    __slots__ = (
        "calls_for",
        "example",
        "fixed",
        "help",
        "own_words",
        "params",
        "run",
        "session",
        "standalone",
        "words",
    )

    def __init__(  # noqa: PLR0913 - a declaration has many fields
        self,
        words: str,
        example: str,
        help: str = "",  # after the description of its operation
        params: tuple[Parameter | str, ...] | None = None,  # a name: as in the row; None: all of the row
        *,
        session: bool | None = None,  # whether it takes --session
        run: str = "",  # "module:function", called with the invocation and the values
        calls_for: str = "",
        fixed: Mapping[str, Any] = {},  # arguments of the operation that follow from the words
        own_words: bool = False,  # `help` is shown alone, without the description of the operation
        standalone: bool = False,  # the function takes the values without an invocation, and ends the process
    ) -> None:
        self.words = words
        self.example = example
        self.help = help
        self.params: Any = params if params is not None or not run else ()  # of a filled command: Parameters
        self.session = session
        self.run = run
        self.calls_for = calls_for
        self.fixed = fixed
        self.own_words = own_words
        self.standalone = standalone


class Group:
    """A word that other words follow."""

    __slots__ = ("default", "help", "short_help", "words")

    def __init__(self, words: str, help: str, short_help: str = "", default: str = "") -> None:
        self.words = words
        self.help = help
        self.short_help = short_help or help
        self.default = default  # the command that runs when nothing follows


class Misuse(Exception):
    """Options or arguments that do not go together; click shows it with the command's usage."""


def _name(flags: str) -> str:
    return flags.partition("/")[0].removeprefix("--").replace("-", "_")


def argument(name: str, kind: str = TEXT, *, required: bool = True, default: Any = None, **more: Any) -> Parameter:
    return Parameter(name, kind, required=required and default is None, default=default, **more)


def optional(name: str, kind: str = TEXT, **more: Any) -> Parameter:
    return Parameter(name, kind, **more)


def option(flags: str, metavar: str, help: str, kind: str = TEXT, *, to: str = "", **more: Any) -> Parameter:
    """An option with a value, under the name `to` if that is not the one of its flag."""
    return Parameter(to or _name(flags), kind, flags, metavar, help, **more)


def flag(flags: str, help: str, kind: str = FLAG, *, to: str = "", **more: Any) -> Parameter:
    return Parameter(to or _name(flags), kind, flags, "", help, **more)


def number(flags: str, metavar: str, help: str, *, to: str = "") -> Parameter:
    return option(flags, metavar, help, NUMBER, to=to)


def repeated(flags: str, metavar: str, help: str, *, to: str = "") -> Parameter:
    return option(flags, metavar, help, LIST, to=to)


LIMIT = number("--limit", "N", "At most so many.")
STORE = option("--store", "PLACE", "A path or a postgresql:// address. Otherwise that of the project you are in.")
PROJECT = option("--project", "NAME", "A project by its name or id. Otherwise the one you are in.")
SESSION = option(
    "--session",
    "ID",
    "The session. Otherwise the command line's own, `cli`; for notepads and windows the last active one.",
)
JSON = flag("--json", "Answer in one line of JSON; errors too, on standard error.")
KEEP_SECRET = flag("--keep-secret", "Store what looks like a secret as it is; otherwise it is masked.")
SHARED = (STORE, PROJECT, SESSION, JSON)  # before the command or after it; the last one counts


# The commands that store a text; tests/doors/test_secrets.py compares them with the operations that do.
STORE_TEXT = frozenset(
    (
        *(
            "note add",
            "note update",
            "note edit",
            "memory write",
            "memory edit",
            "handoff write",
            "scratch",
            "state set",
            "skill promote",
        ),
        *("pad write", "pad append", "pad prepend", "pad edit", "prompt write", "prompt append", "prompt prepend"),
        *("prompt edit", "journal decision add", "journal question add", "journal goal add", "journal debt add"),
        *("journal blocker add", "journal identifier add", "journal set task", "journal set state"),
        *("journal checkpoint", "session begin", "session spawn", "session fork", "session report", "session end"),
        *("window pin", "task begin", "task end", "task cancel", "sandbox run", "output keep", "import"),
    )
)


def shared(command: Command | None = None) -> tuple[Parameter, ...]:
    """The options every command takes. --session and --keep-secret are for those they mean something to."""
    options = SHARED if command is None or command.session else (STORE, PROJECT, JSON)
    return (*options, KEEP_SECRET) if command is not None and command.words in STORE_TEXT else options


def parse(params: tuple[Parameter, ...], words: list[str]) -> dict[str, Any] | None:
    """The values by name, those that were given; None when click has to look at the words."""
    by_flag = {text: param for param in params for text in param.flags.split("/") if text}
    values: dict[str, Any] = {}
    arguments: list[str] = []
    rest = words[::-1]
    while rest:
        word = rest.pop()
        if word == "--":
            arguments += rest[::-1]
            break
        if not is_option(word):
            arguments.append(word)
            continue
        text, equals, value = word.partition("=")
        param = by_flag.get(text)
        if param is None or (equals if param.kind in VALUELESS else not (equals or rest)):
            return None
        if param.kind in VALUELESS:
            values[param.name] = param.value if param.kind != SWITCH else param.flags.startswith(f"{text}/")
        elif not _put(values, param, value if equals else rest.pop()):
            return None
    return values if _place(values, [param for param in params if not param.flags], arguments) else None


def is_option(word: str) -> bool:
    """People write lists: "- [ ] casts" is a text."""
    return len(word) > 1 and word[0] == "-" and not word[1].isspace()


def completed(params: tuple[Parameter, ...], values: dict[str, Any]) -> dict[str, Any] | None:
    """The values with the defaults of those that were not given; None when one is missing."""
    if any((param.required or param.kind == CONFIRM) and param.name not in values for param in params):
        return None
    return {param.name: values.get(param.name, _default(param)) for param in params if param.kind != CONFIRM}


def _default(param: Parameter) -> Any:
    if param.kind == FLAG:
        return False if param.value is True else None
    return () if param.kind in (LIST, REST) else param.default


def _put(values: dict[str, Any], param: Parameter, word: str) -> bool:
    """Add a value in the form its kind has; False when the word cannot be one."""
    value: Any = word
    if param.kind == NUMBER:
        value = as_number(word)
    elif param.kind == COUNT:
        value = as_number(word)
        if isinstance(value, str) or not param.low <= value <= (value if param.high is None else param.high):
            return False
    elif param.kind == LIST:
        value = (*values.get(param.name, ()), word)
    elif param.kind in (FILE, FOLDER) or (param.kind == CHOICE and word not in param.choices):
        return False  # click looks whether the file exists, and names the choices
    values[param.name] = value
    return True


def as_number(word: str) -> Any:
    try:
        return int(word)
    except ValueError:
        return word


def _place(values: dict[str, Any], params: list[Parameter], words: list[str]) -> bool:
    if params and params[-1].kind == REST:
        values[params[-1].name] = tuple(words)
        return bool(words) or not params[-1].required
    return len(words) <= len(params) and all(map(_put, [values] * len(words), params, words))


# --- which command ----------------------------------------------------------------------------------------------------


def under(heading: str) -> tuple[Command | Group, ...]:
    commands: tuple[Command | Group, ...] = import_module(f"limpet.doors.cli.commands.{heading}").COMMANDS
    return commands


def every() -> Iterator[Command | Group]:
    """Every declared command with the words of its help, and every group."""
    for heading in HEADINGS:
        for row in under(heading):
            yield _filled(row, with_help=True) if isinstance(row, Command) else row


def match(words: list[str]) -> tuple[Command, list[str]] | None:
    """The command that the words begin with, and the words after it."""
    heading = next((name for name, firsts in HEADINGS.items() if words[0] in firsts), None) if words else None
    rows = under(heading) if heading else ()
    commands = {row.words: row for row in rows if isinstance(row, Command)}
    for count in range(MOST_WORDS, 0, -1):
        if command := commands.get(" ".join(words[:count])):
            return _filled(command), words[count:]
    undeclared: tuple[Command, list[str]] | None = import_module(PLAIN).undeclared(words) if words else None
    return undeclared


def _filled(command: Command, *, with_help: bool = False) -> Command:
    if command.run:
        return command
    filled: Command = import_module(PLAIN).filled(command, with_help=with_help)
    return filled


def recognise(args: list[str]) -> tuple[Command, dict[str, Any], dict[str, Any]] | None:
    """A well-formed command, the shared options and its own values; None when click has to look at the words."""
    first = 0
    while first < len(args) and is_option(args[first]):
        first += 1 if "=" in args[first] or args[first] == JSON.flags else 2
    before = parse(shared(), args[:first])
    matched = match(args[first:])
    if before is None or matched is None:
        return None
    command, words = matched
    values = parse((*command.params, *shared(command)), words)
    own = None if values is None else completed(command.params, values)
    if values is None or own is None:
        return None
    after = {param.name: values[param.name] for param in shared(command) if param.name in values}
    return command, {**before, **after}, own


def function(command: Command) -> Callable[..., int | None]:
    """What the command runs. Its module is imported now, with everything it needs."""
    module, _, name = (command.run or f"{PLAIN}:run").partition(":")
    run: Callable[..., int | None] = getattr(import_module(module), name)
    return run
