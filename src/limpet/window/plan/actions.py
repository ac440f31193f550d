"""Actions: what each tool call did, judged by its name, its arguments and its result.

The ledger of a task is the list of its actions, so that folded work is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from limpet.light import Any, json, re
from limpet.previews.failures import failure_lines
from limpet.record import NamedTuple
from limpet.text import tokens
from limpet.window.messages import ASSISTANT, USER, Call, Message, Result, Text
from limpet.window.plan.rules import groups

READ, COMMAND, EFFECT, OTHER = "read", "command", "effect", "other"
SCANNED_CHARS = 20_000  # of a result that are searched for failures, half at each end
LINE_CHARS = 160  # of one action as it is listed
_PATHS = ("path", "file_path", "filepath", "filename", "file", "notebook_path", "uri", "url")
_COMMANDS = ("command", "cmd", "script", "code")
_CHANGES = re.compile(
    r"(?:^|[_\W])(?:write|edit|create|delete|remove|update|patch|apply|move|rename|insert|replace|append|commit|push"
    r"|send|post|put|deploy|install|publish|merge|upload|set)(?:$|[_\W])"
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Limpet's own tools write to the store, which keeps what they wrote; listing them again would repeat it.
_OWN_TOOLS = re.compile(r"note|memory|handoff|scratch|_task$|uncompact|recall|show_window")

USER_SAID = "the user said"
USER_SAID_LENGTHS = (2_000, 400, 160)  # characters of one message; the first length with which all of them fit
# Sections of a ledger, in the order in which they get a share of the budget.
FAILED, EFFECTS, ANSWERED, FILES, COMMANDS = "failed", "side effects", "answered", "files read", "commands run"
LEDGER_SECTIONS = (FAILED, EFFECTS, ANSWERED, FILES, COMMANDS)
SECTION_MAX_ITEMS = 30  # more would not fit into the budget anyway
_SECTION_OF = {READ: FILES, COMMAND: COMMANDS, EFFECT: EFFECTS}


class ToolAction(NamedTuple):
    kind: str
    target: str  # a path, a command, or the call itself
    tool: str
    failure: str  # the failure in one line; empty if the call succeeded

    @property
    def subject(self) -> str:
        """What to name in a list: the target, else the tool."""
        return self.target or self.tool


def actions(group: Sequence[Message]) -> Iterator[ToolAction]:
    """The calls of one group, each with its outcome."""
    results = {result.call_id: result for message in group for result in message.results()}
    for message in group:
        for call in message.calls():
            yield _action(call, results.get(call.id))


def _action(call: Call, result: Result | None) -> ToolAction:
    arguments = _parsed(call.arguments)
    name = _HUMP.sub("_", call.name).lower()
    command = next((line for key in _COMMANDS if (line := _command_line(arguments.get(key)))), "")
    failure = "" if result is None else _failure(result, is_command=bool(command))
    if command:
        return ToolAction(COMMAND, _one_line(command), call.name, failure)
    path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), "")
    if _OWN_TOOLS.search(name):
        return ToolAction(OTHER, "", call.name, failure)
    if _CHANGES.search(name):
        return ToolAction(EFFECT, _one_line(f"{call.name} {path or _first(arguments)}"), call.name, failure)
    if path:
        return ToolAction(READ, _one_line(path), call.name, failure)
    return ToolAction(OTHER, _one_line(f"{call.name} {_first(arguments)}"), call.name, failure)


def _command_line(command: object) -> str:
    """A command as it is typed; some tools take a list of words."""
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return " ".join(command)
    return command if isinstance(command, str) else ""


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments) if arguments else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _first(arguments: dict[str, Any]) -> str:
    return next((str(value) for value in arguments.values() if isinstance(value, str | int | float)), "")


def _failure(result: Result, *, is_command: bool) -> str:
    """The failure that a result reports. The output of a command is searched for it; a file may well mention errors."""
    if not (is_command or result.error):
        return ""
    text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
    if len(text) > SCANNED_CHARS:
        text = f"{text[: SCANNED_CHARS // 2]}\n{text[-SCANNED_CHARS // 2 :]}"
    lines = failure_lines(text)
    if lines:
        return _one_line(lines[0].text)
    return (_one_line(text) or "it failed") if result.error else ""


def _one_line(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= LINE_CHARS else f"{plain[: LINE_CHARS - 1]}…"


def said_by_user(messages: Sequence[Message], budget: int) -> str:
    """What the user said, in the user's words, within a budget; empty if nothing was said."""
    texts = [" ".join(message.text().split()) for message in messages if message.role == USER]
    texts = list(dict.fromkeys(text for text in texts if text))
    for most in USER_SAID_LENGTHS:
        line = _quotes([text if len(text) <= most else f"{text[: most - 1]}…" for text in texts])
        if tokens.count(line) <= budget:
            return line
    shorter = [text[: USER_SAID_LENGTHS[-1]] for text in texts]
    while shorter:  # the last words count most
        shorter = shorter[1:]
        line = _quotes([f"{len(texts) - len(shorter)} earlier messages, which recall finds", *shorter])
        if tokens.count(line) <= budget:
            return line
    return ""


def _quotes(texts: Sequence[str]) -> str:
    return "\n".join(f"- {USER_SAID}: {text}" for text in texts)


def ledger(messages: Sequence[Message], budget: int) -> str:
    """A few lines: what failed, what was changed, what was answered, which files were read, which commands ran."""
    sections: dict[str, dict[str, None]] = {name: {} for name in LEDGER_SECTIONS}
    for group in groups(messages):
        for action in actions([messages[index] for index in group]):
            if action.failure:
                sections[FAILED][f"{action.subject} ({action.failure})"] = None
            elif action.kind in _SECTION_OF:
                sections[_SECTION_OF[action.kind]][action.target] = None
    for question, reply in pairwise(messages):
        if question.role == USER and reply.role == ASSISTANT and reply.text().strip():
            sections[ANSWERED][_one_line(reply.text())] = None
    lines: list[str] = []
    for name in LEDGER_SECTIONS:
        items = list(sections[name])[-SECTION_MAX_ITEMS:]
        while items:
            line = f"- {name}: {'; '.join(items)}"
            if tokens.count("\n".join([*lines, line])) <= budget:
                lines.append(line)
                break
            items = items[1:]  # the next step builds on the last ones
    return "\n".join(lines)
