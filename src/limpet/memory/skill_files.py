"""Skills on disk: folders with a SKILL.md, in directories that people name. The one place that reads and writes them.

Reading is careful with what it finds, because a project may come from anywhere: links are not followed, only ordinary
files of a bounded size are opened, and a bad one is reported beside the good ones. Writing is atomic: a new folder
appears whole by one rename, which also decides between two who write the same one.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from typing import NamedTuple

from limpet import errors, limits
from limpet.model import Folder
from limpet.text import skill_md, terminal

FILE = "SKILL.md"
PREVIOUS = "SKILL.previous.md"  # what a replaced skill said
FILES_SHOWN = 50
# Without following a link and without waiting, so that neither a link nor a pipe can be put there for us.
CAREFUL = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class Skill(NamedTuple):
    name: str
    description: str
    body: str
    folder: str  # as people name it: from the project's root
    files: tuple[str, ...]  # what else is in its folder


class Problem(NamedTuple):
    folder: str
    why: str


class Found(NamedTuple):
    skills: tuple[Skill, ...]  # by name
    problems: tuple[Problem, ...]


def scan(folders: Iterable[Folder]) -> Found:
    """All skills. Of two with one name the first directory's counts, and the other is reported."""
    skills: dict[str, Skill] = {}
    problems: list[Problem] = []
    for folder in folders:
        names = _names(folder.path)
        if len(names) > limits.SKILLS_MOST:
            problems.append(Problem(folder.shown, f"only the first {limits.SKILLS_MOST} of {len(names)} were read"))
        for name in names[: limits.SKILLS_MOST]:
            shown = f"{folder.shown}/{name}"
            try:
                skill = _read(os.path.join(folder.path, name), shown)
            except (skill_md.BadSkill, OSError) as problem:
                why = os.strerror(problem.errno or 0) if isinstance(problem, OSError) else str(problem)
                problems.append(Problem(shown, why))
                continue
            if skill.name in skills:
                problems.append(Problem(shown, f"{skills[skill.name].folder} has the same name and comes first"))
            else:
                skills[skill.name] = skill
    return Found(tuple(skills[name] for name in sorted(skills)), tuple(problems))


def _names(path: str) -> list[str]:
    """The folders in a directory that may be skills; there need not be one."""
    with suppress(OSError), os.scandir(path) as items:
        return sorted(item.name for item in items if not item.name.startswith(".") and item.is_dir())
    return []


def _read(path: str, shown: str) -> Skill:
    if os.path.islink(path):
        raise skill_md.BadSkill("it is a link, and links are not followed; copy it or name its directory instead")
    parts = skill_md.parse(_text(os.path.join(path, FILE)))
    if len(parts.name) > limits.SKILL_NAME_CHARS or not parts.name.isprintable():
        raise skill_md.BadSkill(f"its name is longer than {limits.SKILL_NAME_CHARS} characters or not printable")
    if len(parts.description) > limits.SKILL_DESCRIPTION_CHARS:
        raise skill_md.BadSkill(f"its description has more than {limits.SKILL_DESCRIPTION_CHARS:,} characters")
    files = sorted(name for name in os.listdir(path) if name not in (FILE, PREVIOUS) and not name.startswith("."))
    return Skill(parts.name, parts.description, parts.body, shown, tuple(files[:FILES_SHOWN]))


def _text(path: str) -> str:
    try:
        handle = os.open(path, CAREFUL)
    except OSError as problem:
        if problem.errno == errno.ENOENT:
            raise skill_md.BadSkill(f"it has no {FILE}") from None
        if problem.errno == errno.ELOOP:
            raise skill_md.BadSkill(f"its {FILE} is a link, and links are not followed") from None
        raise
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise skill_md.BadSkill(f"its {FILE} is not an ordinary file")
        data = file.read(limits.SKILL_MAX_BYTES + 1)
    if len(data) > limits.SKILL_MAX_BYTES:
        raise skill_md.BadSkill(f"its {FILE} has more than {limits.SKILL_MAX_BYTES:,} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise skill_md.BadSkill(f"its {FILE} is not UTF-8") from None
    if why := terminal.problem(text):
        raise skill_md.BadSkill(f"its {FILE} holds {why}")
    return text


def save(folder: Folder, name: str, text: str, *, replace: bool) -> None:
    """Write a skill's folder. An existing one is replaced only on request, and what it said stays beside it."""
    target = os.path.join(folder.path, name)
    try:
        os.makedirs(folder.path, exist_ok=True)
        if not os.path.lexists(target):
            _create(folder.path, name, text)
        elif not replace:
            raise errors.skill_exists(name)
        elif os.path.islink(target):
            raise errors.skill_not_saved(name, "its folder is a link, and links are not followed")
        else:
            _exchange(target, text)
    except OSError as problem:
        raise errors.skill_not_saved(name, problem.strerror or str(problem)) from None


def _create(directory: str, name: str, text: str) -> None:
    temporary = os.path.join(directory, f".new-{os.urandom(6).hex()}")
    os.mkdir(temporary)
    with ExitStack() as undo:
        undo.callback(_discard, os.rmdir, temporary)
        undo.callback(_discard, os.unlink, os.path.join(temporary, FILE))
        _write(os.path.join(temporary, FILE), text.encode())
        _sync(temporary)
        _move(temporary, os.path.join(directory, name), name)
        undo.pop_all()
    _sync(directory)


def _discard(remove: Callable[[str], None], path: str) -> None:
    with suppress(OSError):
        remove(path)


def _move(temporary: str, target: str, name: str) -> None:
    try:
        os.rename(temporary, target)
    except OSError as problem:
        if problem.errno in (errno.EEXIST, errno.ENOTEMPTY):  # somebody else was faster
            raise errors.skill_exists(name) from None
        raise


def _exchange(target: str, text: str) -> None:
    path = os.path.join(target, FILE)
    with suppress(FileNotFoundError), os.fdopen(os.open(path, CAREFUL), "rb") as file:
        _put(os.path.join(target, PREVIOUS), file.read())
    _put(path, text.encode())


def _put(path: str, data: bytes) -> None:
    """A file that is the old one or the new one, whatever happens meanwhile."""
    temporary = f"{os.path.dirname(path)}/.new-{os.urandom(6).hex()}"
    with ExitStack() as undo:
        undo.callback(_discard, os.unlink, temporary)
        _write(temporary, data)
        os.replace(temporary, path)
        undo.pop_all()
    _sync(os.path.dirname(path))


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
