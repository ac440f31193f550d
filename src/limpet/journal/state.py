"""The state folder: what Limpet keeps about each journal file, opened without following links.

The caller says where it is, as a folder it trusts and the names below it. Those names may have come with a repository
that a stranger wrote, so each is opened relative to the one before it, and a link or a folder of another user is
refused. Everything below belongs to this user alone: folders have mode 0700 and files 0600, under any umask.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from limpet import errors
from limpet.model import DataFolder
from limpet.record import NamedTuple

PROJECT, REPOSITORY = ".limpet", ".git"
# A folder named .limpet would turn a folder that is no project into one, with notes and memory of its own.
ELSEWHERE = ".limpet-journal"
MISSING = os.path.join(os.devnull, "none")  # a path where no file can be
_IGNORE = b"# What Limpet knows of the journal, so that nothing is lost.\n*\n"


class StateFolder(NamedTuple):
    """`names` are opened one by one below `base`, whose own path is trusted."""

    base: str
    names: tuple[str, ...]
    data: DataFolder | None = None  # makes `base` before the first write

    def path(self, *more: str) -> str:
        return os.path.join(self.base, *self.names, *more)


def in_data(data: DataFolder) -> StateFolder:
    """Where the state of a project's journal is: in the person's data folder."""
    return StateFolder(data.path or MISSING, ("journal",), data)


def of_project(root: str) -> StateFolder:
    """The same for a Limpet that has no data folder: beside the journal."""
    home = os.path.realpath(root)
    project = any(os.path.lexists(os.path.join(home, mark)) for mark in (PROJECT, REPOSITORY))
    return StateFolder(home, (PROJECT, "journal") if project else (ELSEWHERE,))


def key_of(path: str) -> str:
    """The name of the folder for the journal at this real path."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


class OpenFolder:
    """A folder of the state, by its descriptor. Names in it are single names, and none is followed as a link."""

    def __init__(self, handle: int, path: str) -> None:
        self.handle = handle
        self.path = path

    def open(self, name: str, flags: int) -> int:
        """A regular file of this user in the folder."""
        try:
            handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=self.handle)
        except OSError as problem:
            if problem.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise errors.journal_state_unsafe(self._path(name), "it is a link or not a file") from None
            raise
        with ExitStack() as on_error:
            on_error.callback(os.close, handle)
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                raise errors.journal_state_unsafe(self._path(name), "it is not a file")
            _owned(info, self._path(name))
            if stat.S_IMODE(info.st_mode) != 0o600:
                os.fchmod(handle, 0o600)
            on_error.pop_all()
        return handle

    def read(self, name: str) -> bytes | None:
        try:
            handle = self.open(name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with open(handle, "rb") as file:
            return file.read()

    def replace(self, name: str, data: bytes) -> None:
        """Write a file durably: a crash leaves the old content or the new one."""
        self.write(f"{name}.new", data)
        self.rename(f"{name}.new", name)
        self.sync()

    def write(self, name: str, data: bytes) -> None:
        with open(self.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def names(self) -> list[str]:
        return sorted(os.listdir(self.handle))

    def rename(self, name: str, to: str) -> None:
        os.rename(name, to, src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def unlink(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.handle)

    def sync(self) -> None:
        """Until then, a new name in the folder is not durable."""
        os.fsync(self.handle)

    def folder(self, name: str, *, create: bool) -> OpenFolder:
        """A folder in this one. Without `create`, a missing folder is a FileNotFoundError."""
        path = self._path(name)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.handle)
                os.chmod(name, 0o700, dir_fd=self.handle)  # a umask may have taken our own permissions away
                self.sync()
        try:
            handle = os.open(name, flags, dir_fd=self.handle)
        except OSError as problem:
            if problem.errno in (errno.ELOOP, errno.ENOTDIR):
                raise errors.journal_state_unsafe(path, "it is a link or not a folder") from None
            raise
        with ExitStack() as on_error:
            on_error.callback(os.close, handle)
            info = os.fstat(handle)
            _owned(info, path)
            if stat.S_IMODE(info.st_mode) != 0o700 and name != PROJECT:  # .limpet is shared with other parts
                os.fchmod(handle, 0o700)
            on_error.pop_all()
        return OpenFolder(handle, path)

    def close(self) -> None:
        os.close(self.handle)

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)


@contextmanager
def opened(state: StateFolder, key: str, *, create: bool) -> Iterator[OpenFolder]:
    """The folder of one journal file. Without `create` nothing is written; a missing folder is a FileNotFoundError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    base = state.data.make() if state.data is not None and create else state.base
    folder = OpenFolder(_open_base(base, flags), base)
    try:
        for name in state.names:
            folder = _step(folder, name, create)
        if create and state.data is None:
            with suppress(FileExistsError):
                _ignore(folder.open(".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        folder = _step(folder, key, create)
        yield folder
    finally:
        folder.close()


def _open_base(path: str, flags: int) -> int:
    try:
        return os.open(path, flags)
    except NotADirectoryError:  # MISSING
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None


def _step(folder: OpenFolder, name: str, create: bool) -> OpenFolder:
    below = folder.folder(name, create=create)
    folder.close()
    return below


def _ignore(handle: int) -> None:
    with open(handle, "wb") as file:
        file.write(_IGNORE)


def _owned(info: os.stat_result, path: str) -> None:
    if info.st_uid != os.geteuid():
        raise errors.journal_state_unsafe(path, "it belongs to another user")
