"""Edits of a coding agent's configuration files, as values, and their effect on a file's text.

Limpet's own part of a file is recognised by its content: an entry named `limpet` (in JSON or YAML), a hook that runs
`limpet hook`, a block between two marks, or a whole file that Limpet wrote. So an installation can be removed even if
people have changed the file since.

A hook command is `limpet hook --client NAME EVENT`, found on the PATH: no agent expands paths in all of its files.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from limpet import limits, prompts
from limpet.clients.base import HOOK_SECONDS, CodingAgent
from limpet.model import EMPTY
from limpet.record import NamedTuple
from limpet.text import json_spans

NAME = "limpet"
HOOK_MARK = "hook --client"  # part of every hook command that Limpet installs
SERVER_ARGUMENTS = ("mcp", "--profile", "coding", "--no-handoff")  # the hooks give the handoff
BEGIN = ">>> limpet: `limpet uninstall` removes what is between these marks"
END = "<<< limpet"


class ServerEntry(NamedTuple):
    """A member named `limpet` of the object at the path."""

    path: tuple[str, ...]
    value: Any


class YamlEntry(NamedTuple):
    """A member named `limpet` of a mapping at the top of a YAML file. `lines` are those below its name."""

    mapping: str
    lines: tuple[str, ...]


class HookEntry(NamedTuple):
    """An item of the list at the path that runs a hook of Limpet."""

    path: tuple[str, ...]
    value: Any


class DefaultMember(NamedTuple):
    """A member that an agent requires. It is added where it is missing, and stays unless the file is deleted."""

    path: tuple[str, ...]
    value: Any


class Block(NamedTuple):
    """Lines at the end of a file, between two comments, which begin with `opens` and end with `closes`."""

    lines: str
    opens: str = "# "
    closes: str = ""

    @property
    def marks(self) -> tuple[str, str]:
        return f"{self.opens}{BEGIN}{self.closes}", f"{self.opens}{END}{self.closes}"


class OwnFile(NamedTuple):
    """A file that Limpet writes as a whole."""

    text: str


Edit = ServerEntry | YamlEntry | HookEntry | DefaultMember | Block | OwnFile


class UnreadableConfig(ValueError):
    """The file has a syntax error, so the agent could not read it either; it is left alone. The text says why."""


class InstallTarget(NamedTuple):
    """Where Limpet is installed, and how it is started. The methods make the edits, so that the files of the agents
    need not import this module: hooks do without it."""

    scope: str  # "user"; "project" (files of this machine, where the agent has them) or "shared" (those of a team)
    root: str  # the home folder, or the project's
    command: tuple[str, ...]
    home: str = ""  # for files that an agent keeps about a project in the home folder

    def path(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def command_line(self, *arguments: str) -> str:
        """The command with these arguments, for a shell."""
        return shlex.join((*self.command, *arguments))

    def server(self, *, hooks: bool = True) -> dict[str, Any]:
        """The MCP server as most agents configure it. `hooks`: whether Limpet's hooks run in the agent too."""
        program, *arguments = self.server_command(hooks=hooks)
        return {"command": program, "args": arguments}

    def server_command(self, *, hooks: bool = True) -> list[str]:
        """The same as one list. Where hooks give the handoff, the server leaves it out."""
        return [*self.command, *(SERVER_ARGUMENTS if hooks else SERVER_ARGUMENTS[:-1])]

    def shared_server(self) -> dict[str, Any]:
        """The same for a project's .mcp.json, which several agents read, so that one entry serves them all."""
        return {"type": "stdio", **self.server()}

    def prompt(self, name: str) -> str:
        return prompts.client(name)

    def entry(self, path: tuple[str, ...], value: Any) -> ServerEntry:
        return ServerEntry(path, value)

    def yaml_entry(self, mapping: str, lines: tuple[str, ...]) -> YamlEntry:
        return YamlEntry(mapping, lines)

    def hook(self, path: tuple[str, ...], value: Any) -> HookEntry:
        return HookEntry(path, value)

    def member(self, path: tuple[str, ...], value: Any) -> DefaultMember:
        return DefaultMember(path, value)

    def block(self, lines: str) -> Block:
        return Block(lines)

    def own_file(self, text: str) -> OwnFile:
        return OwnFile(text)

    def common_hooks(
        self,
        client: str,
        events: Mapping[str, tuple[str, str]],
        timeout: int = HOOK_SECONDS,
        shorter: Mapping[str, int] = EMPTY,
    ) -> tuple[HookEntry, ...]:
        """Hooks in the form of Claude Code, which several agents have adopted. `shorter`: timeouts of some events."""
        return tuple(
            HookEntry(
                ("hooks", event),
                {
                    **({"matcher": matcher} if matcher else {}),
                    "hooks": [
                        {
                            "type": "command",
                            "command": self.command_line("hook", "--client", client, name),
                            "timeout": shorter.get(event, timeout),
                        }
                    ],
                },
            )
            for event, (name, matcher) in events.items()
        )


def wrote(text: str, edit: OwnFile) -> bool:
    """Whether any version of Limpet wrote a file with this text; people may have a file of the same name."""
    return HOOK_MARK in text or text.splitlines()[:2] == edit.text.splitlines()[:2]


def with_edits(text: str, edits: tuple[Edit, ...]) -> str:
    """The text with all edits applied. Applying them again changes nothing; an older version of an edit is replaced."""
    for edit in edits:
        text = _applied(text, edit)
    return text


def without_edits(text: str, edits: tuple[Edit, ...]) -> str:
    """The text without the edits; empty if nothing else is left."""
    for edit in edits:
        text = _removed(text, edit)
    return text


def has_hooks(client: CodingAgent, root: str, home: str) -> bool:
    """Whether hooks are installed in the agent's own files, for this project or for all."""
    targets = [InstallTarget("user", home, (NAME,), home)]
    targets += [InstallTarget(scope, root, (NAME,), home) for scope in ("project", "shared")]
    return any(hooks_in(client, target) for target in targets)


def hooks_in(client: CodingAgent, target: InstallTarget) -> bool:
    """Whether hooks of any version are installed there. A file for servers alone may quote a hook in its history."""
    return any(
        HOOK_MARK in text_at(path)
        for path, edits in client.files(target).items()
        if not all(isinstance(edit, ServerEntry) for edit in edits)
    )


def text_at(path: str) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        return content_of(path).decode("utf-8", "replace")
    except OSError:
        return ""


def content_of(path: str) -> bytes:
    """The content of a configuration file. OSError if it is not a file, or larger than any configuration.

    A repository may have a pipe, a link to a device or a file without end in its place.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with open(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is not a file", path)
        if info.st_size > limits.CLIENT_CONFIG_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {limits.CLIENT_CONFIG_BYTES:,} bytes", path)
        return file.read(limits.CLIENT_CONFIG_BYTES)


# --- details ----------------------------------------------------------------------------------------------------------


def _applied(text: str, edit: Edit) -> str:
    if isinstance(edit, OwnFile):
        return edit.text
    if isinstance(edit, Block):
        return _with_block(_removed(text, edit), edit)
    if isinstance(edit, YamlEntry):
        return _yaml(text, edit, edit.lines)
    return _in_json(_put, text, edit)


def _put(text: str, edit: ServerEntry | HookEntry | DefaultMember) -> str:
    if isinstance(edit, ServerEntry):
        return json_spans.put(text, (*edit.path, NAME), edit.value)
    node = json_spans.find(text, edit.path) if text.strip() else None
    if isinstance(edit, DefaultMember):
        return text if node else json_spans.put(text, edit.path, edit.value)
    if node is not None and edit.value in json_spans.value(text, node):
        return text
    return json_spans.append(_take(text, edit), edit.path, edit.value)


def _removed(text: str, edit: Edit) -> str:
    if isinstance(edit, OwnFile):
        return ""
    if isinstance(edit, Block):
        return _without_block(text, edit)
    if isinstance(edit, YamlEntry):
        return _yaml(text, edit, ())
    return _in_json(_take, text, edit) if text.strip() else text


def _take(text: str, edit: ServerEntry | HookEntry | DefaultMember) -> str:
    if isinstance(edit, DefaultMember) or not text.strip():
        return text
    if isinstance(edit, ServerEntry):
        text = json_spans.drop(text, edit.path, lambda name, value: name == NAME)
    else:
        text = json_spans.drop(text, edit.path, lambda name, value: HOOK_MARK in json.dumps(value))
    return _pruned(text, edit.path)


def _pruned(text: str, path: tuple[str, ...]) -> str:
    """The text without the objects and lists along the path that are now empty."""
    while path:
        node = json_spans.find(text, path)
        if node is None or node.members or node.kind == "value":
            return text
        last = path[-1]
        path = path[:-1]
        text = json_spans.drop(text, path, lambda name, value, last=last: name == last and not value)  # type: ignore[misc]
    return text


def _in_json(change: Callable[[str, Any], str], text: str, edit: ServerEntry | HookEntry | DefaultMember) -> str:
    try:
        return change(text, edit)
    except json_spans.NotJson as problem:
        raise UnreadableConfig(str(problem)) from None


def _with_block(text: str, edit: Block) -> str:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    begin, end = edit.marks
    return f"{text}{gap}{begin}\n{edit.lines.strip()}\n{end}\n"


def _without_block(text: str, edit: Block) -> str:
    begin, end = edit.marks
    start = text.find(begin)
    stop = text.find(end, start)
    if start < 0 or stop < 0:
        return text
    before = text[:start]
    if before.endswith("\n\n"):
        before = before[:-1]  # the empty line that `_with_block` added
    return before + text[stop + len(end) :].removeprefix("\r").removeprefix("\n")


def _yaml(text: str, edit: YamlEntry, member_lines: tuple[str, ...]) -> str:
    """The text with these lines below `limpet:` in the mapping, or without the entry. All other lines stay."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    if member_lines:
        _check_yaml(lines)
    at = next((at for at, line in enumerate(lines) if _names(line, "", edit.mapping)), None)
    if at is None:
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{edit.mapping}:\n{_yaml_member('  ', member_lines)}" if member_lines else text
    if not re.fullmatch(r"[^:]*:[ \t]*(#.*)?", lines[at].rstrip("\r\n")):
        if member_lines:
            raise UnreadableConfig(f"line {at + 1}: `{edit.mapping}` has its members on one line; give each its own")
        return text
    end = next((end for end in range(at + 1, len(lines)) if re.match(r"[^\s#]", lines[end])), len(lines))
    rows = [row for row in range(at + 1, end) if _has_content(lines[row])]
    indent = re.match(r" *", lines[rows[0]])[0] if rows else "  "  # type: ignore[index]
    if rows and not re.match(r" +[^\s{[-]", lines[rows[0]]):
        if member_lines:
            raise UnreadableConfig(f"line {rows[0] + 1}: indent the members of `{edit.mapping}` with spaces")
        return text
    start = next((row for row in rows if _names(lines[row], indent, NAME)), None)
    stop = start
    if start is not None:
        deeper = re.compile(rf"{indent}[ ]+\S")
        following = next((row for row in rows if row > start and not deeper.match(lines[row])), end)
        stop = max(row for row in rows if start <= row < following) + 1
        if member_lines and _yaml_values(member_lines).items() <= _yaml_values(lines[start + 1 : stop]).items():
            return text  # the agent may have written it again in its own way, with more of its own
    else:
        start = stop = at + 1
        lines[at] = lines[at] if lines[at].endswith("\n") else lines[at] + "\n"
    if not member_lines and start == stop:
        return text
    changed = [*lines[:start], *([_yaml_member(indent, member_lines)] if member_lines else ()), *lines[stop:]]
    if not member_lines and end - at == stop - start + 1:
        del changed[at]  # the mapping has no other member
    return "".join(changed)


def _check_yaml(lines: list[str]) -> None:
    """Refuse a file that is not one mapping written as lines, to which a line at the end adds a member."""
    rows = [row for row, line in enumerate(lines) if _has_content(line)]
    if rows and re.fullmatch(r"---\s*(#.*)?\s*", lines[rows[0]]):
        del rows[0]
    if rows and not re.match(r"[^\s{[-]", lines[rows[0]].removeprefix("\ufeff")):
        raise UnreadableConfig(f"line {rows[0] + 1}: write it as lines with names, without braces and indentation")
    for row in rows:
        if re.match(r"(---|\.\.\.)(\s|$)", lines[row]):
            raise UnreadableConfig(f"line {row + 1}: it holds more than one document")


def _has_content(line: str) -> bool:
    return line.strip()[:1] not in ("", "#")


def _names(line: str, indent: str, name: str) -> bool:
    """Whether a line of YAML begins the member of that name, in quotes or not."""
    return re.match(rf"\ufeff?{indent}([\"']?){name}\1[ \t]*:", line) is not None


def _yaml_values(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The texts and lists below a name, each as a tuple, however they are written."""
    values: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in lines:
        words = line.strip()
        if match := re.match(r"(\w+)[ \t]*:(.*)", words):
            name, words = match[1], match[2].strip()
            values[name] = ()
        elif not words.startswith("- "):
            continue
        else:
            words = words[2:].strip()
        values[name] = (*values.get(name, ()), *_yaml_texts(words))
    return values


def _yaml_texts(words: str) -> list[str]:
    if words.startswith(("[", '"')):
        with contextlib.suppress(ValueError):
            found = json.loads(words)
            return list(map(str, found)) if isinstance(found, list) else [str(found)]
    if words.startswith("'") and words.endswith("'"):
        return [words[1:-1].replace("''", "'")]
    return [words] if words else []


def _yaml_member(indent: str, lines: tuple[str, ...]) -> str:
    return "".join([f"{indent}{NAME}:\n", *(f"{indent * 2}{line}\n" for line in lines)])
