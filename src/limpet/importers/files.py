"""The files of other memory tools: opened safely and given to the tool's reader.

In a folder, regular files are opened. Symbolic links are reported and not followed, also if one replaces a folder while
it is being read: every file is opened relative to its folder's descriptor. Opening a pipe or a device does not block.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from limpet import errors, limits
from limpet.importers import anthropic_memory, basic_memory, mem0, server_memory
from limpet.importers.facts import Fact, File, Reader, Unread

READERS: dict[str, Reader] = {
    module.READER.tool: module.READER for module in (server_memory, anthropic_memory, mem0, basic_memory)
}
LINK = "it is a symbolic link, and these are not followed"
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ReadFacts(NamedTuple):
    facts: tuple[Fact, ...]
    unread: tuple[Unread, ...]


def read(reader: Reader, path: str) -> ReadFacts:
    """The facts that the tool keeps at a path. Raises BadInput if there are none."""
    if reader.folder:
        if not os.path.isdir(path):
            raise errors.peer_not_readable(reader.tool, path, "it is not a folder")
        source: object = files(path)
    else:
        source = _bytes_of(reader, path)
    facts: dict[str, Fact] = {}
    unread: list[Unread] = []
    for fact in reader.read(source):  # type: ignore[arg-type]  # bytes or files, as `reader.folder` says
        if isinstance(fact, Unread):
            unread.append(fact)
        elif fact.key in facts and facts[fact.key] != fact:
            unread.append(Unread(fact.key, "another part has the same name"))
        else:
            facts[fact.key] = fact
    if not facts and unread:
        raise errors.peer_not_readable(reader.tool, path, f"{unread[0].part}: {unread[0].why}")
    return ReadFacts(tuple(facts.values()), tuple(unread))


def _bytes_of(reader: Reader, path: str) -> bytes:
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
    # The given folder may itself be a link, which is followed: the caller has named it.
    for folder, folders, names, handle in os.fwalk(os.path.realpath(top), follow_symlinks=False):
        inside = os.path.relpath(folder, os.path.realpath(top))
        prefix = "" if inside == "." else f"{inside.replace(os.sep, '/')}/"
        if prefix.count("/") >= limits.PEER_FOLDERS_DEEP:
            yield from (File(f"{prefix}{name}", "it is too many folders deep") for name in folders)
            folders.clear()
        for name in [name for name in folders if name.startswith(".")]:
            folders.remove(name)  # .git, .obsidian: files of other programs
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
        handle = os.open(name, _OPEN_FLAGS, dir_fd=folder)
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
