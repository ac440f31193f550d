"""What differs between operating systems: file locks, exchanging two files, durable names, private files.

`here` is the implementation for this machine. The others can be created anywhere, with stand-ins for the modules of
their systems, which is how they are tested: macOS and Windows themselves were not at hand.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module

from limpet.light import Any, BinaryIO, Protocol

SHORT = 2_048  # bytes that Python's own SHA-256 hashes in about ten microseconds
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)  # NFS, SMB, some FUSE mounts
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux
RENAME_SWAP = 2  # of macOS


class Hash(Protocol):
    """What hashes are asked for."""

    def update(self, more: bytes, /) -> None: ...

    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


class System(Protocol):
    """Failures are OSErrors."""

    def try_lock(self, file: int) -> bool:
        """Lock an open file for this process, without waiting. False when another process has locked it."""

    def unlock(self, file: int) -> None: ...

    def lock_holder(self, file: int) -> int | None:
        """The process that has locked a file, where the system tells."""

    def exchange(self, source: str, target: str) -> None:
        """Exchange the names of two files, so that neither name is missing at any moment."""

    def sync_folder(self, folder: str) -> None:
        """Until then a new name in the folder may be gone after a power cut."""

    def create_file(self, path: str, *, new: bool = True) -> int:
        """Open a file for reading and writing that this user alone can read, under any umask. With `new` it must not
        exist yet; otherwise an existing one keeps its mode."""

    def free_bytes(self, folder: str) -> int:
        """The space that this user may still write."""

    def allocate(self, file: int, size: int) -> None:
        """Take space on the disk for an empty file."""

    def make_folder(self, path: str) -> None:
        """Create a folder and its missing parents, private to this user under any umask."""


class Posix:
    def __init__(self, fcntl: Any = None, libc: Any = None) -> None:
        module: Any = fcntl or import_module("fcntl")
        self._flock = module.flock  # looked up once: every write locks
        self._exclusive, self._unlock = module.LOCK_EX | module.LOCK_NB, module.LOCK_UN
        self._libc = libc

    def try_lock(self, file: int) -> bool:
        try:
            self._flock(file, self._exclusive)
        except BlockingIOError:
            return False
        return True

    def unlock(self, file: int) -> None:
        self._flock(file, self._unlock)

    def lock_holder(self, file: int) -> int | None:
        return None

    def exchange(self, source: str, target: str) -> None:
        code = self._swap(os.fsencode(source), os.fsencode(target))
        if code in NO_EXCHANGE:
            _replace(source, target)
        elif code:
            raise OSError(code, os.strerror(code), target)

    def _swap(self, source: bytes, target: bytes) -> int:
        """The error number of the system call, or 0."""
        return errno.ENOSYS

    def _call(self, name: str, *values: object) -> int:
        ctypes = import_module("ctypes")  # a millisecond, and few processes exchange files
        libc = self._libc or ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, name):
            return errno.ENOSYS
        return int(ctypes.get_errno()) if getattr(libc, name)(*values) else 0

    def sync_folder(self, folder: str) -> None:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def create_file(self, path: str, *, new: bool = True) -> int:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        except FileExistsError:
            if new:
                raise
            return os.open(path, os.O_RDWR)
        with suppress(PermissionError):  # some mounts have one mode for all files
            os.fchmod(file, PRIVATE_FILE)
        return file

    def free_bytes(self, folder: str) -> int:
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize

    def allocate(self, file: int, size: int) -> None:
        _write_zeros(file, size)

    def make_folder(self, path: str) -> None:
        if not path or os.path.isdir(path):
            return
        self.make_folder(os.path.dirname(path))
        try:
            os.mkdir(path, PRIVATE_FOLDER)
        except FileExistsError:
            return
        with suppress(PermissionError):
            os.chmod(path, PRIVATE_FOLDER)


class Linux(Posix):
    def allocate(self, file: int, size: int) -> None:
        os.posix_fallocate(file, 0, size)

    def _swap(self, source: bytes, target: bytes) -> int:
        return self._call("renameat2", AT_FDCWD, source, AT_FDCWD, target, RENAME_EXCHANGE)

    def lock_holder(self, file: int) -> int | None:
        """From /proc/locks, whose lines end in: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF."""
        number = str(os.fstat(file).st_ino)
        try:
            with open("/proc/locks", encoding="ascii") as locks:
                rows = [line.split() for line in locks if " FLOCK " in line and "->" not in line]
        except OSError:
            return None
        holders = [int(row[4]) for row in rows if row[5].rpartition(":")[2] == number and row[4].isdecimal()]
        return holders[0] if holders and holders[0] > 0 else None  # 0: a process of another container


class MacOS(Posix):
    def _swap(self, source: bytes, target: bytes) -> int:
        return self._call("renamex_np", source, target, RENAME_SWAP)


class Windows:
    """Files below a user's profile are private there by inheritance, so no mode is set."""

    def __init__(self, msvcrt: Any = None, kernel: Any = None) -> None:
        self._msvcrt: Any = msvcrt or import_module("msvcrt")
        self._kernel = kernel

    def try_lock(self, file: int) -> bool:
        # A locked byte cannot be read by others, so it is one far behind the content.
        os.lseek(file, 1 << 30, os.SEEK_SET)
        try:
            self._msvcrt.locking(file, self._msvcrt.LK_NBLCK, 1)
        except OSError as problem:
            if problem.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

    def unlock(self, file: int) -> None:
        os.lseek(file, 1 << 30, os.SEEK_SET)
        self._msvcrt.locking(file, self._msvcrt.LK_UNLCK, 1)

    def lock_holder(self, file: int) -> int | None:
        return None

    def exchange(self, source: str, target: str) -> None:
        kernel = self._kernel or import_module("ctypes").WinDLL("kernel32", use_last_error=True)
        spare = f"{source}-old"
        if not kernel.ReplaceFileW(target, source, spare, 0, None, None):
            code = int(import_module("ctypes").get_last_error()) if self._kernel is None else errno.EIO
            raise OSError(code, "the file could not be replaced", target)
        os.replace(spare, source)

    def sync_folder(self, folder: str) -> None:
        """NTFS writes names to its own journal, and a folder cannot be opened to sync it."""

    def create_file(self, path: str, *, new: bool = True) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | (os.O_EXCL if new else 0) | getattr(os, "O_BINARY", 0))

    def free_bytes(self, folder: str) -> int:
        return int(import_module("shutil").disk_usage(folder).free)

    def allocate(self, file: int, size: int) -> None:
        _write_zeros(file, size)

    def make_folder(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)


def sha256(content: bytes = b"") -> Hash:
    """SHA-256 by the implementation that is faster for the size.

    OpenSSL's is several times faster, but loading its library takes two milliseconds: longer than a hook needs to hash
    everything it writes. Python's own implementation is fast enough for short texts.
    """
    return (_builtin_sha256 if len(content) <= SHORT else openssl_sha256)()(content)


@cache
def _builtin_sha256() -> Callable[[bytes], Hash]:
    for name in ("_sha2", "_sha256"):  # since Python 3.12, and before
        with suppress(ImportError):
            builtin: Callable[[bytes], Hash] = import_module(name).sha256
            return builtin
    return openssl_sha256()


@cache
def openssl_sha256() -> Callable[[bytes], Hash]:
    sha256: Callable[[bytes], Hash] = import_module("hashlib").sha256  # imported late: see above
    return sha256


def no_descriptors() -> bool:
    """Whether this process can open no more files."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as problem:
        return problem.errno in NO_DESCRIPTORS
    return False


def open_ordinary(path: str, flags: int = 0) -> BinaryIO:
    """An ordinary file to read; OSError for others, without waiting: a pipe has no end, and neither has a device."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no ordinary file", path)
    return open(handle, "rb")


def path_of_folder(handle: int) -> str | None:
    """A path that leads through an open folder, also when it was renamed; None where the system has none."""
    path = f"/proc/self/fd/{handle}"
    return path if os.path.isdir(path) else None


def _write_zeros(file: int, size: int) -> None:
    written = 0
    while written < size:
        written += os.write(file, bytes(min(size - written, 1 << 20)))


def _replace(source: str, target: str) -> None:
    """Without an exchange of names: link the old file under a second name, then replace it."""
    spare = f"{source}-old"
    os.link(target, spare)
    os.rename(source, target)
    os.rename(spare, source)


def _choose(name: str) -> System:
    if name == "win32":
        return Windows()
    if name == "darwin":
        return MacOS()
    return Linux() if name == "linux" else Posix()


here: System = _choose(sys.platform)
