"""Installing Limpet in a coding agent's configuration, and removing it.

`plan_install` and `plan_uninstall` compute the files before and after without changing anything; `apply_install` and
`apply_uninstall` write them, so a dry run shows exactly what an installation does. Before a file is changed for the
first time, its bytes are saved in a record in the user's data folder. Removal restores these bytes if the file has not
changed since; otherwise it removes Limpet's part and leaves the rest.

An agent may have files of one machine for a project beside those that a team shares; some of the former are in the home
folder, and then their record is kept per project.

Extras are installed on request: guidance for the model in the agent's instruction file, and a skill. Several agents
share AGENTS.md and the folder of skills, so an extra that is installed for one counts for all of them, and stays until
the last of them is uninstalled.

The agent may also have Limpet as a plugin. The hooks of the plugin and installed hooks would both answer every event,
so the plugin's hooks do nothing where hooks are installed (`edits.has_hooks`).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import tempfile
import tomllib
from collections.abc import Iterable
from itertools import chain
from typing import Any

from limpet import clients, errors, prompts
from limpet.clients.base import CodingAgent
from limpet.clients.edits import (
    NAME,
    Block,
    Edit,
    InstallTarget,
    OwnFile,
    UnreadableConfig,
    content_of,
    text_at,
    with_edits,
    without_edits,
    wrote,
)
from limpet.record import NamedTuple
from limpet.text import json_spans
from limpet.text.diff import unified

RECORD = "installs.json"
GUIDANCE, SKILL = "guidance", "skill"
_SKILL_FILE = ("skills", "limpet", "SKILL.md")

Files = dict[str, tuple[Edit, ...]]  # by path


class FileChange(NamedTuple):
    """A file before and after; None where there is no file."""

    path: str
    before: bytes | None
    after: bytes | None
    edits: tuple[Edit, ...]
    key: str  # of its record
    restores: bool = False  # whether `after` is what was there before the installation

    @property
    def needed(self) -> bool:
        return self.before != self.after


def plan_install(client: CodingAgent, target: InstallTarget, requested: Iterable[str] = ()) -> tuple[FileChange, ...]:
    """The changes that install Limpet with these extras. Raises BadInput if the agent could not read a file."""
    files = client.files(target)
    available = extras(client, target)
    for name in requested:
        if name not in available:
            raise errors.no_such_extra(client.title, name, target.scope)
        files = {**files, **available[name]}
    changes = []
    for path, edits in files.items():
        before = _read_inside(path, target)
        changes.append(FileChange(path, before, _edited(path, before, edits), edits, _key(path, target)))
    return tuple(changes)


def plan_uninstall(client: CodingAgent, target: InstallTarget, data: str) -> tuple[FileChange, ...]:
    """The changes that remove Limpet: restore the saved bytes if the file is unchanged since, else undo the edits."""
    record = _record(data)
    files = client.files(target)
    for extra in installed_extras(client, target).values():
        files = {**files, **extra}
    changes = []
    for path, edits in files.items():
        if _others_need(client, target, path):
            continue
        now = _read_inside(path, target)
        saved = record.get(_key(path, target))
        unchanged = bool(now is not None and saved and hashlib.sha256(now).hexdigest() == saved["after"])
        if now is None:
            after = None
        elif saved and unchanged:
            after = None if saved["before"] is None else base64.b64decode(saved["before"])
        else:
            after = _taken_out(path, now, edits)
        changes.append(FileChange(path, now, after, edits, _key(path, target), unchanged))
    return tuple(changes)


def _others_need(client: CodingAgent, target: InstallTarget, path: str) -> bool:
    """Whether another agent that is installed here reads the same file: its servers, or guidance on them."""
    targets = [target] if target.scope == "user" else [target._replace(scope=scope) for scope in ("project", "shared")]
    for agent in clients.every():
        for place in targets if agent.name != client.name else ():
            files = agent.files(place)
            read = {*files, *chain.from_iterable(extras(agent, place).values())}
            if files and path in read and all(_is_in_place(name, edits, target) for name, edits in files.items()):
                return True
    return False


def _is_in_place(path: str, edits: tuple[Edit, ...], target: InstallTarget) -> bool:
    before = _read_inside(path, target)
    return before == _edited(path, before, edits)


def apply_install(changes: Iterable[FileChange], data: str, root: str) -> None:
    """All of the changes or, where one of them fails, none: hooks without their server, or the reverse, would not work.

    `root`: the folder that stays, however empty it is.
    """
    record = _record(data)
    with contextlib.ExitStack() as undo:
        undo.callback(_put_back_record, data, dict(record))
        for change in changes:
            if change.needed and change.after is not None:
                _check_unchanged(change)
                record[change.key] = {
                    "before": _bytes_to_restore(change, record.get(change.key)),
                    "after": hashlib.sha256(change.after).hexdigest(),
                }
                _write_record(data, record)  # before the file, so that a crash between the two can be undone
                undo.callback(_remove_empty_folders, change.path, root)
                _write(change.path, change.after)
                undo.callback(_put_back, change, root)
        undo.pop_all()


def apply_uninstall(changes: Iterable[FileChange], data: str, root: str) -> None:
    """All of the changes or, where one of them fails, none."""
    record = _record(data)
    with contextlib.ExitStack() as undo:
        undo.callback(_put_back_record, data, dict(record))
        for change in changes:
            if change.needed:
                _check_unchanged(change)
                _remove(change.path, root) if change.after is None else _write(change.path, change.after)
                undo.callback(_put_back, change, root)
            if record.pop(change.key, None) is not None:
                _write_record(data, record)
        undo.pop_all()


def _put_back(change: FileChange, root: str) -> None:
    with contextlib.suppress(errors.LimpetError, OSError):  # the first failure is the one that is told
        _remove(change.path, root) if change.before is None else _write(change.path, change.before)


def _put_back_record(data: str, record: dict[str, Any]) -> None:
    with contextlib.suppress(errors.LimpetError):
        _write_record(data, record)


def is_installed(client: CodingAgent, target: InstallTarget) -> bool:
    """Whether every file of the agent has Limpet's part."""
    changes = plan_install(client, target)
    return bool(changes) and not any(change.needed for change in changes)


def rendered(change: FileChange) -> str:
    """A change as a unified diff; empty if nothing changes."""
    old, new = ((side or b"").decode("utf-8", "replace") for side in (change.before, change.after))
    old_name, new_name = (os.devnull if side is None else change.path for side in (change.before, change.after))
    return unified(old, new, before_name=old_name, after_name=new_name)


# --- extras -----------------------------------------------------------------------------------------------------------


def extras(client: CodingAgent, target: InstallTarget) -> dict[str, Files]:
    """The extras that the agent can have in this scope, by name."""
    skill = target.path(client.skills_folder, *_SKILL_FILE)
    available: dict[str, Files] = {SKILL: {skill: (OwnFile(prompts.client("SKILL.md")),)}}
    if parts := client.user_guidance if target.scope == "user" else client.project_guidance:
        available[GUIDANCE] = {target.path(*parts): (Block(prompts.client("guidance.md"), "<!-- ", " -->"),)}
    return available


def installed_extras(client: CodingAgent, target: InstallTarget) -> dict[str, Files]:
    return {
        name: files
        for name, files in extras(client, target).items()
        if all(_has(path, edit) for path, edits in files.items() for edit in edits)
    }


def _has(path: str, edit: Edit) -> bool:
    if not os.path.isfile(path):
        return False
    text = text_at(path)
    if isinstance(edit, Block):
        return edit.marks[0] in text and edit.marks[1] in text
    return isinstance(edit, OwnFile) and wrote(text, edit)


# --- plugins ----------------------------------------------------------------------------------------------------------


def plugin_enabled(client: CodingAgent, root: str, home: str) -> bool:
    """Whether the agent's plugin of Limpet is on."""
    enabled = False
    for path in client.plugin_settings(root, home):
        plugins = _member(text_at(path), "enabledPlugins")
        for name, value in plugins.items() if isinstance(plugins, dict) else ():
            if name.partition("@")[0] == NAME:
                enabled = value is True
    return enabled


def _member(text: str, name: str) -> Any:
    try:
        node = json_spans.find(text, (name,)) if text.strip() else None
        return None if node is None else json_spans.value(text, node)
    except json_spans.NotJson:
        return None


# --- files ------------------------------------------------------------------------------------------------------------


def _edited(path: str, before: bytes | None, edits: tuple[Edit, ...]) -> bytes:
    try:
        text = (before or b"").decode("utf-8")
        after = with_edits(text, edits)
        if path.endswith(".toml"):
            _check_toml(without_edits(text, edits), after)
        return after.encode("utf-8")
    except UnicodeDecodeError as problem:
        raise errors.bad_config_file(path, f"it is not UTF-8 ({problem.reason})") from None
    except UnreadableConfig as problem:
        raise errors.bad_config_file(path, str(problem)) from None


def _check_toml(before: str, after: str) -> None:
    """A block at the end of a file is no TOML where the file is none, or has a table of that name."""
    try:
        tomllib.loads(before)
    except tomllib.TOMLDecodeError as problem:
        raise UnreadableConfig(str(problem)) from None
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        raise UnreadableConfig(
            f"it has a server `{NAME}` of its own, or `mcp_servers` on one line; take it out, or give each a table"
        ) from None


def _taken_out(path: str, now: bytes, edits: tuple[Edit, ...]) -> bytes | None:
    try:
        text = without_edits(now.decode("utf-8"), edits)
    except UnicodeDecodeError as problem:
        raise errors.bad_config_file(path, f"it is not UTF-8 ({problem.reason})") from None
    except UnreadableConfig as problem:
        raise errors.bad_config_file(path, str(problem)) from None
    return text.encode("utf-8") if text.strip() else None


def _bytes_to_restore(change: FileChange, saved: dict[str, Any] | None) -> str | None:
    """What removal will restore, without any older installation."""
    if change.before is None:
        return None
    if saved and hashlib.sha256(change.before).hexdigest() == saved["after"]:
        first: str | None = saved["before"]
        return first
    text = change.before.decode("utf-8", "replace")
    if any(isinstance(edit, OwnFile) and not wrote(text, edit) for edit in change.edits):
        return base64.b64encode(change.before).decode("ascii")
    clean = _taken_out(change.path, change.before, change.edits)
    return None if clean is None and change.before.strip() else base64.b64encode(clean or change.before).decode("ascii")


def _read_inside(path: str, target: InstallTarget) -> bytes | None:
    """A file of the agent. In a project, which another person may have written, no link may lead out of it."""
    in_project = target.scope != "user" and _is_below(path, target.root)
    if in_project and not _is_below(os.path.realpath(path), os.path.realpath(target.root)):
        raise errors.bad_config_file(path, "it is a link that leads out of the project")
    return _read(path)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _key(path: str, target: InstallTarget) -> str:
    """Where the way back of a file is recorded: a file in the home folder may have entries of many projects."""
    return path if target.scope == "user" or _is_below(path, target.root) else f"{path} for {target.root}"


def _read(path: str) -> bytes | None:
    try:
        return content_of(path)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise errors.bad_config_file(path, problem.strerror or str(problem)) from None


def _write(path: str, content: bytes) -> None:
    """Replace a file atomically, with its permissions. A symbolic link stays and its target is replaced."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".limpet-")
        with contextlib.ExitStack() as undo:
            undo.callback(_unlink, temporary)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o600)
            os.replace(temporary, path)
            undo.pop_all()
    except OSError as problem:
        raise errors.bad_config_file(path, problem.strerror or str(problem)) from None


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _check_unchanged(change: FileChange) -> None:
    """An agent that runs writes its own files too."""
    if _read(change.path) != change.before:
        raise errors.config_file_changed(change.path)


def _remove(path: str, root: str) -> None:
    """Remove a file, and the folders below `root` that are empty without it."""
    os.unlink(path)
    _remove_empty_folders(path, root)


def _remove_empty_folders(path: str, root: str) -> None:
    folder = os.path.dirname(path)
    with contextlib.suppress(OSError):
        while folder.startswith(root.rstrip(os.sep) + os.sep):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def _record(data: str) -> dict[str, Any]:
    content = _read(os.path.join(data, RECORD))
    try:
        record = json.loads(content) if content else {}
    except ValueError:
        return {}  # without a record, Limpet's part is still recognised by its content
    return record if isinstance(record, dict) else {}


def _write_record(data: str, record: dict[str, Any]) -> None:
    _write(os.path.join(data, RECORD), json.dumps(record, indent=1).encode())
