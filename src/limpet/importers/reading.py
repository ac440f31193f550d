"""A file or a folder of another tool, opened with care and given to its reader.

Of a folder only real files inside it are opened. A symbolic link is named and not followed, also one that takes the
place of a folder while we are reading: every file is opened from its folder's own handle. A file that is a pipe or a
device is not waited for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from limpet import errors, limits
from limpet.importers import anthropic_memory, basic_memory, mem0, server_memory
from limpet.importers.memories import Fact
from limpet.importers.shape import File, Reader, Unread

READERS: dict[str, Reader] = {
    module.READER.tool: module.READER for module in (server_memory, anthropic_memory, mem0, basic_memory)
}
LINK = "it is a symbolic link, and these are not followed"
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Found(NamedTuple):
    facts: tuple[Fact, ...]
    unread: tuple[Unread, ...]


def read(reader: Reader, path: str) -> Found:
    """What the tool kept there. Raises BadInput when there is nothing of it."""
    if reader.folder:
        if not os.path.isdir(path):
            raise errors.peer_not_readable(reader.tool, path, "it is not a folder")
        given: object = files(path)
    else:
        given = _whole(reader, path)
    facts: dict[str, Fact] = {}
    unread: list[Unread] = []
    for one in reader.read(given):  # type: ignore[arg-type]  # what it takes is what its kind says
        if isinstance(one, Unread):
            unread.append(one)
        elif one.key in facts and facts[one.key] != one:
            unread.append(Unread(one.key, "another part has the same name"))
        else:
            facts[one.key] = one
    if not facts and unread:
        raise errors.peer_not_readable(reader.tool, path, f"{unread[0].part}: {unread[0].why}")
    return Found(tuple(facts.values()), tuple(unread))


def _whole(reader: Reader, path: str) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise errors.peer_not_readable(reader.tool, path, "it is not a file")
            if about.st_size > limits.PEER_FILE_MAX_BYTES:
                raise errors.peer_too_big(reader.tool, path, about.st_size, limits.PEER_FILE_MAX_BYTES)
            return file.read(limits.PEER_FILE_MAX_BYTES)
    except OSError as problem:
        raise errors.peer_not_readable(reader.tool, path, problem.strerror or str(problem)) from None


def files(top: str) -> Iterator[File]:
    """The files of a folder and those below it, by name. What is not read says why."""
    count = 0
    # The folder that is named may be a link: whoever names it means what it leads to.
    for folder, folders, names, handle in os.fwalk(os.path.realpath(top), follow_symlinks=False):
        inside = os.path.relpath(folder, os.path.realpath(top))
        prefix = "" if inside == "." else f"{inside.replace(os.sep, '/')}/"
        if prefix.count("/") >= limits.PEER_FOLDERS_DEEP:
            yield from (File(f"{prefix}{name}", "it is too many folders deep") for name in folders)
            folders.clear()
        for name in [one for one in folders if one.startswith(".")]:
            folders.remove(name)  # .git, .obsidian: the work of other programs
        folders.sort()
        yield from (File(f"{prefix}{name}", LINK) for name in folders if _is_link(name, handle))
        for name in sorted(names):
            if name.startswith("."):
                continue
            count += 1
            if count > limits.PEER_FILES_MAX:
                yield File(f"{prefix}{name}", f"it comes after {limits.PEER_FILES_MAX:,} other files")
                return
            yield File(f"{prefix}{name}", _content(name, handle))


def _content(name: str, folder: int) -> bytes | str:
    try:
        handle = os.open(name, _OPENING, dir_fd=folder)
    except OSError as problem:
        return LINK if _is_link(name, folder) else f"it cannot be opened ({problem.strerror})"
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            return "it is not a file"
        if about.st_size > limits.PEER_NOTE_MAX_BYTES:
            return f"it has {about.st_size:,} bytes; files are read up to {limits.PEER_NOTE_MAX_BYTES:,}"
        return file.read(limits.PEER_NOTE_MAX_BYTES)


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
