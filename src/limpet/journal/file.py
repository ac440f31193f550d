"""The journal's file, which people edit at the same time: read and replaced without losing a save.

A change is a function from text to text. It is applied under a lock to the current content. The result is written to a
temporary file, which is *exchanged* with the journal (renameat2), so that the previous content is displaced and not
overwritten. If the displaced content is not what was read, an editor saved in between: it is merged and exchanged
again. An editor that opened the file before the exchange may still write to the displaced file, so displaced files are
kept for a while and read again.

What is known of the file is in its log (`log.py`), and an old text cannot win against it: a change starts from the
log's head, merges what others saved, and becomes the head when it is in the file. An editor that saves an old buffer
drops later entries; the next change finds the state the buffer came from, and merges. What git puts into the file is
not a save: a change starts from it (`git.py`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from limpet import errors, limits
from limpet.journal import git
from limpet.journal.document.merge import MergeConflict, merge, origin
from limpet.journal.git import GitState
from limpet.journal.log import ABORT, COMMIT, INTENT, SAVE, JournalLog, digest_of
from limpet.journal.state import OpenFolder, StateFolder, key_of, opened
from limpet.platform import path_of_folder
from limpet.record import NamedTuple

Change = Callable[[str], str]
_DISPLACED, _LOCK = "displaced", "lock"
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_NO_FOLDER = "/proc/self/fd/none"  # a folder that nobody can make
_AT_FDCWD = -100  # AT_FDCWD


class JournalFile(NamedTuple):
    """The file itself, links resolved, and the folder for what is known of it."""

    path: str
    state: StateFolder
    name: str  # as configured, for messages
    root: str  # the project's folder, links resolved

    def state_folder(self, *, create: bool) -> AbstractContextManager[OpenFolder]:
        return opened(self.state, key_of(self.path), create=create)


class SavedFile(NamedTuple):
    text: str
    before: str  # the text it was applied to
    merged: bool = False  # the file had other changes as well
    conflicts: tuple[MergeConflict, ...] = ()
    written: bool = True
    contested: bool = False  # another program saves all the time: its last save is merged by the next change


def find(root: str, file: str, state: StateFolder) -> JournalFile:
    """The journal's place. It must be inside the project, links resolved."""
    home = os.path.realpath(root)
    plain = os.path.normpath(os.path.join(home, file))
    path = os.path.realpath(plain)
    if not path.startswith(home.rstrip(os.sep) + os.sep):
        raise errors.journal_outside(file)
    target = os.path.relpath(path, home)
    if path != plain and (not target.endswith(".md") or any(part.startswith(".") for part in target.split(os.sep))):
        raise errors.journal_link(file, target)  # a hook of git, for instance, which git would run
    return JournalFile(path, state, file, home)


def read(place: JournalFile) -> str | None:
    """The content of the file; None when there is none. Waits for an editor that is saving."""
    try:
        with _stable_folder(place) as path:
            text = _read(place, path)
            if text is None or not text.strip() or not text.endswith("\n"):
                log = _log(place)
                text = _settled(place, path, _text(log.head or b"") if log else "")
            return text
    except OSError as problem:
        raise trouble(place, problem) from problem


def size(place: JournalFile) -> int:
    """Of the file, in bytes; 0 when there is none."""
    try:
        with _stable_folder(place) as path:
            return os.lstat(path).st_size
    except OSError:
        return 0


def update(place: JournalFile, change: Change, new: Callable[[], str] | None = None) -> SavedFile:
    """Apply a change to the file. `new` gives the text of a missing file; without it, a missing file is an error."""
    with _locked(place) as journal:
        return _update(journal, change, new)


def revive(place: JournalFile, text: str) -> bool:
    """Write an empty or missing file. False when it is not empty; then it is left as it is."""
    with _locked(place) as journal:
        journal.end_intent()
        current = _read(place, journal.path)
        if current is not None and current.strip():
            return False
        journal.git = git.state_of(place.path)
        journal.put(text, current, [], list(journal.log.pending), _until())
        if journal.log.pending:  # an editor saved first
            journal.was_empty = True
            _update(journal, lambda now: now, None)
        return True


def last_seen(place: JournalFile) -> str:
    """The newest text known of the file; "" if there is none, or git has another version checked out since."""
    log = _log(place)
    if log is None or log.head is None or _wrote(place, log, git.state_of(place.path)):
        return ""
    return _text(log.head)


def forget(place: JournalFile, texts: Sequence[str]) -> None:
    """Remove earlier texts and displaced files that contain one of the texts.

    An editor that still has an old buffer open and saves it brings the texts back: no state is left to detect that.
    """
    gone = [_data(text) for text in texts]
    with _locked(place) as journal:
        journal.end_intent()
        journal.log.compact(lambda data: any(text in data for text in gone))
        for name in journal.displaced.names():
            if any(text in (journal.displaced.read(name) or b"") for text in gone):
                journal.displaced.unlink(name)


def _log(place: JournalFile) -> JournalLog | None:
    """What is known of the file, read without the lock and without writing anything."""
    try:
        with place.state_folder(create=False) as folder:
            return JournalLog(folder)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise trouble(place, problem) from problem


# --- one change -------------------------------------------------------------------------------------------------------


def _until() -> float:
    return time.monotonic() + limits.JOURNAL_CONTEST_SECONDS


def _update(journal: _KnownJournal, change: Change, new: Callable[[], str] | None) -> SavedFile:
    until = _until()
    place, log = journal.place, journal.log
    journal.end_intent()
    journal.take_displaced()
    before: str | None = None
    merged = written = False
    while True:
        current = _settled(place, journal.path, _text(log.head or b""))
        if journal.follow_git(current):
            before = None  # what this change was applied to is gone
        if before is None:
            journal.check_there(current, new)
        text, saves, merges = journal.everything(current, new)
        if before is None:
            before, merged = text, current is not None and text != current
            text = change(text)
        if text == current:
            if log.head != _data(text) or merges:
                log.took(_data(text), journal.git, merges)
            return SavedFile(text, before, merged, tuple(journal.conflicts), written)
        journal.put(text, current, saves, merges, until)
        written = True
        if not log.pending:
            return SavedFile(text, before, merged, tuple(journal.conflicts))
        # An editor saved after the read. Its text is displaced now and must be merged back.
        merged = True
        if time.monotonic() > until:
            return SavedFile(text, before, merged, tuple(journal.conflicts), contested=True)


class _KnownJournal:
    """The file and everything known of it, while this process has the lock."""

    def __init__(self, place: JournalFile, path: str, folder: OpenFolder, displaced: OpenFolder) -> None:
        self.place = place
        self.path = path  # of the file, through its folder as it was opened
        self.displaced = displaced
        self.log = JournalLog(folder)
        self.git = GitState()
        self.conflicts: list[MergeConflict] = []
        self.was_empty = False  # what others save was not edited from an earlier text

    # --- what a process that died left ---

    def end_intent(self) -> None:
        """Decide by what is in the file whether the last intent came true."""
        intent = self.log.intent
        if intent is None:
            return
        temporary = os.path.join(os.path.dirname(self.path), intent.details["temporary"])
        displaced = _bytes(self.place, temporary)
        if _bytes(self.place, self.path) == self.log.intended:
            done = True
        elif displaced is None:
            done = os.path.lexists(_spare(temporary))  # one of two steps where names cannot be exchanged
        else:
            done = not self.log.intended.startswith(displaced)  # else the temporary file is our own text, or half of it
        self.log.append([(COMMIT if done else ABORT, b"", {})])
        if not done:
            for name in (temporary, _spare(temporary)):
                with suppress(FileNotFoundError):
                    os.unlink(name)

    def take_displaced(self) -> None:
        """Record texts that others wrote to displaced files. Old untouched ones are deleted."""
        beside = os.path.dirname(self.path)
        for name in sorted(os.listdir(beside)):  # left by a process that was stopped in the middle
            if name.startswith(_prefix(self.place)):
                path = os.path.join(beside, name)
                with suppress(errors.LimpetError):  # not a file, or too big: not ours
                    data = _bytes(self.place, path) or b""
                    self.record(data)
                    self.put_aside(path, digest_of(data))
        names = self.displaced.names()
        for name in names:
            put_aside, _, digest = name.partition("-")
            late = self._written_late(name, put_aside, digest)
            if late is not None:
                self.record(late)
                self.displaced.rename(name, f"{time.time_ns()}-{digest_of(late)}")
            elif time.time_ns() - int(put_aside) > limits.JOURNAL_DISPLACED_SECONDS * 1_000_000_000:
                self.displaced.unlink(name)
        for name in names[: -limits.JOURNAL_DISPLACED]:
            self.displaced.unlink(name)

    def _written_late(self, name: str, put_aside: str, digest: str) -> bytes | None:
        """The content of a displaced file, if it was written to since it was displaced."""
        info = os.stat(name, dir_fd=self.displaced.handle, follow_symlinks=False)
        # The file system's clock may be coarse: a file written shortly before is read again to be sure.
        if not stat.S_ISREG(info.st_mode) or info.st_mtime_ns <= int(put_aside) - 100_000_000:
            return None
        path = os.path.join(self.displaced.path, name)
        data = _bytes(self.place, path)
        if data and data.strip() and digest_of(data) != digest:
            data = _data(_settled(self.place, path, _text(self.log.head or b"")) or "")
            if data.strip() and digest_of(data) != digest and not self.log.is_beginning(data):
                return data
        return None

    def record(self, data: bytes) -> None:
        """Record a text that another program wrote, unless it says nothing new.

        A text that is the beginning of a known one is a save that was caught halfway; its end is read later. Without
        a head, an older text would look like a newer one.
        """
        blank = not data.strip() or not (self.log.head or b"").strip()
        if not blank and not self.log.is_known(data) and not self.log.is_beginning(data):
            self.log.append([(SAVE, data, {})])

    # --- what is known, as one text ---

    def follow_git(self, current: str | None) -> bool:
        """If git has put another version into the file, start from it. Whether it has."""
        before, self.git = GitState(*self.log.git), git.state_of(self.place.path)
        head = _text(self.log.head or b"")
        if not head.strip() or (current == head and not self.log.pending):
            return False
        folder, name = os.path.split(self.place.path)
        if before.stash != self.git.stash and current is not None and self._is_stashed(before, head, current):
            start = _data(current)
        elif _wrote(self.place, self.log, self.git):
            start = git.committed(folder, name) or b""
            if current is not None and _lines(_text(start)) == _lines(current):
                start = _data(current)  # the same with other line ends
        else:
            return False
        if start == self.log.head:
            return False
        self.log.took(start, self.git, list(self.log.pending))
        return True

    def _is_stashed(self, before: GitState, head: str, current: str) -> bool:
        """Whether the text is what a stash leaves or brings back."""
        folder, name = os.path.split(self.place.path)
        if set(_lines(head)) <= set(_lines(current)):
            return True
        texts = [git.committed(folder, name, revision) for revision in ("HEAD", before.stash) if revision]
        return any(text is not None and _lines(_text(text)) == _lines(current) for text in texts)

    def check_there(self, current: str | None, new: Callable[[], str] | None) -> None:
        newest = _text(self.log.head or b"")
        if current is None and (new is None or newest.strip()):
            raise errors.journal_missing(self.place.name)
        if current is not None and not current.strip() and newest.strip():
            raise errors.journal_emptied(self.place.name)

    def everything(self, current: str | None, new: Callable[[], str] | None) -> tuple[str, list[bytes], list[str]]:
        """The head with all saves in it, those of them that are not in the log yet, and the digests of all."""
        head = _text(self.log.head or b"")
        if not head.strip():
            if current is None:
                return (new() if new else ""), [], []
            if current.strip():
                self.log.took(_data(current), self.git, list(self.log.pending))  # the ancestor of later texts
            else:
                self.log.forget_earlier()  # an editor may have emptied it to save: then there was a text
            return current, [], []
        saves: list[bytes] = []
        merges = list(self.log.pending)
        for data in self.log.pending.values():
            head = self._merged(head, _text(data))
        if current is not None and not self.log.is_known(_data(current)):
            head = self._merged(head, current)
            saves.append(_data(current))
            merges.append(digest_of(saves[0]))
        return head, saves, merges

    def _merged(self, head: str, theirs: str) -> str:
        """The newest text merged with a saved one, from the state that the saved one came from."""
        states = self.log.states
        base = "" if self.was_empty else origin(lambda: map(_text, states()), theirs, forgot=self.log.forgot)
        result = merge(base, head, theirs)
        self.conflicts += result.conflicts
        return result.text

    # --- putting a text into the file ---

    def put(self, text: str, current: str | None, saves: list[bytes], merges: list[str], until: float) -> None:
        """Exchange the file's content durably. A save that this displaced is pending in the log afterwards."""
        if self.log.is_long():
            self.log.compact()
        folder = os.path.dirname(self.path)
        name = f"{_prefix(self.place)}{os.getpid()}-{time.time_ns()}"
        temporary = os.path.join(folder, name)
        intent = {"temporary": name, "git": self.git, "merged": merges}
        self.log.append([*((SAVE, data, {}) for data in saves), (INTENT, _data(text), intent)])
        try:
            _write(self.place, temporary, _data(text))
            gone = _swap(self.place, temporary, current, until)
        except (OSError, errors.LimpetError):
            with suppress(OSError):
                os.unlink(temporary)
            with suppress(OSError):
                self.log.append([(ABORT, b"", {})])
            raise
        try:
            _sync(folder)
            self.log.append([(COMMIT, b"", {})])
            if gone:
                displaced = _data(_settled(self.place, temporary, current or "") or "")
                self.record(displaced)
                self.put_aside(temporary, digest_of(displaced))
        except OSError as problem:
            raise errors.journal_unconfirmed(self.place.name, problem.strerror or str(problem)) from problem

    def put_aside(self, path: str, digest: str) -> None:
        """Keep a displaced file for later changes to read again: an editor may still have it open."""
        try:
            os.rename(path, f"{time.time_ns()}-{digest}", dst_dir_fd=self.displaced.handle)
        except OSError as problem:
            if problem.errno != errno.EXDEV:
                raise
            time.sleep(limits.JOURNAL_LATE_SECONDS)
            self.record(_bytes(self.place, path) or b"")
            os.unlink(path)


def _wrote(place: JournalFile, log: JournalLog, now: GitState) -> bool:
    """Whether git wrote the file since the head was written."""
    before = GitState(*log.git)
    if not now.head or not log.git:
        return False
    wrote = git.wrote(place.path, before)
    if wrote is not None:
        return wrote
    # Without the log of HEAD: a version that is ours was committed, another one was checked out.
    text = git.committed(*os.path.split(place.path))
    return before.blob != now.blob and (text is None or not log.is_known(text))


# --- the folder -------------------------------------------------------------------------------------------------------


@contextmanager
def _stable_folder(place: JournalFile) -> Iterator[str]:
    """The path of the file through its open folder, so that a link put in the folder's place leads nowhere.

    Where the system has no such path, it is the plain one.
    """
    handle = _open_folder(place)
    try:
        if handle is None:
            yield os.path.join(_NO_FOLDER, os.path.basename(place.path))
        else:
            folder, name = os.path.split(place.path)
            yield os.path.join(path_of_folder(handle) or folder, name)
    finally:
        if handle is not None:
            os.close(handle)


def _open_folder(place: JournalFile) -> int | None:
    """The folder of the file, opened part by part below the project's and through no link; None if it is missing."""
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
    below = os.path.relpath(os.path.dirname(place.path), place.root)
    handle: int | None = None
    try:
        handle = os.open(place.root, flags)
        for part in below.split(os.sep):
            above, handle = handle, None
            try:
                handle = os.open(part, flags | os.O_NOFOLLOW, dir_fd=above)
            finally:
                os.close(above)
    except FileNotFoundError:
        return None
    return handle


# --- reading ----------------------------------------------------------------------------------------------------------


def _data(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _read(place: JournalFile, path: str) -> str | None:
    data = _bytes(place, path)
    return None if data is None else _text(data)


def _bytes(place: JournalFile, path: str) -> bytes | None:
    """The content of a regular file; None when there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise trouble(place, problem) from problem
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise errors.journal_not_a_file(place.name)
        if info.st_size > limits.JOURNAL_MAX_BYTES:
            raise errors.journal_too_big(place.name, info.st_size, limits.JOURNAL_MAX_BYTES)
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def _settled(place: JournalFile, path: str, expected: str) -> str | None:
    """The content of a file, after waiting for a save that appears to be in progress."""
    text = _read(place, path)
    until = time.monotonic() + limits.JOURNAL_SETTLE_SECONDS
    calm = 0
    while _looks_unfinished(text, expected) and calm < 3 and time.monotonic() < until:
        time.sleep(0.02)
        again = _read(place, path)
        calm = calm + 1 if again == text and again else 0
        text = again
    return text


def _looks_unfinished(text: str | None, expected: str) -> bool:
    if not expected:
        return False
    if text is None or not text.strip():
        return True
    return text != expected and (
        len(text) < 0.7 * len(expected) or (expected.endswith("\n") and not text.endswith("\n"))
    )


# --- writing ----------------------------------------------------------------------------------------------------------


def _write(place: JournalFile, path: str, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        try:
            info = os.lstat(_beside(place, path))
            os.fchmod(handle, stat.S_IMODE(info.st_mode))
            if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle, info.st_uid, info.st_gid)
        except (FileNotFoundError, PermissionError):
            pass  # a new file, or one of another user: it becomes this user's, as with every editor
        os.fsync(handle)


def _swap(place: JournalFile, temporary: str, expected: str | None, until: float) -> bool:
    """Exchange the two files. False when there was none to exchange with, and the file is new."""
    target = _beside(place, temporary)
    settled = time.monotonic() + (limits.JOURNAL_SETTLE_SECONDS if expected is not None else 0)
    while True:
        try:
            _exchange_names(temporary, target)
        except FileNotFoundError:
            pass  # an editor moved it away and is about to replace it
        else:
            return True
        if time.monotonic() >= settled:
            try:
                os.link(temporary, target)
            except FileExistsError:
                if time.monotonic() >= until:
                    raise errors.journal_contested(place.name, limits.JOURNAL_CONTEST_SECONDS) from None
                continue
            os.unlink(temporary)
            return False
        time.sleep(0.005)


def _exchange_names(source: str, target: str) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(source), os.fsencode(target)
    code = errno.ENOSYS
    if hasattr(libc, "renameat2"):
        code = ctypes.get_errno() if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) else 0
    elif hasattr(libc, "renamex_np"):
        code = ctypes.get_errno() if libc.renamex_np(*names, _EXCHANGE) else 0
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        _replace_names(source, target)
    elif code:
        raise OSError(code, os.strerror(code), target)


def _replace_names(source: str, target: str) -> None:
    """Without an exchange of names: link the old file under a second name, then replace it."""
    spare = _spare(source)
    os.link(target, spare)
    os.rename(source, target)
    os.rename(spare, source)


def _spare(temporary: str) -> str:
    return f"{temporary}-old"


def _beside(place: JournalFile, temporary: str) -> str:
    """The journal in the folder of a temporary file."""
    return os.path.join(os.path.dirname(temporary), os.path.basename(place.path))


def _prefix(place: JournalFile) -> str:
    """How the names of our temporary files begin."""
    return f".{os.path.basename(place.path)}.limpet-"


def _sync(folder: str) -> None:
    """fsync a folder: until then, a new name in it is not durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- the lock ---------------------------------------------------------------------------------------------------------


@contextmanager
def _locked(place: JournalFile) -> Iterator[_KnownJournal]:
    try:
        with place.state_folder(create=True) as folder, _lock(place, folder), _stable_folder(place) as path:
            displaced = folder.folder(_DISPLACED, create=True)
            try:
                journal = _KnownJournal(place, path, folder, displaced)
                try:
                    yield journal
                finally:
                    journal.log.close()
            finally:
                displaced.close()
    except OSError as problem:
        raise trouble(place, problem) from problem


@contextmanager
def _lock(place: JournalFile, folder: OpenFolder) -> Iterator[None]:
    handle = folder.open(_LOCK, os.O_RDWR | os.O_CREAT)
    try:
        until = time.monotonic() + limits.LOCK_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise errors.journal_busy(place.name, limits.LOCK_WAIT_SECONDS) from None
                time.sleep(0.002)
        yield
    finally:
        os.close(handle)


def trouble(place: JournalFile, problem: OSError) -> errors.LimpetError:
    """What to say when the file or its state could not be read or written."""
    why = problem.strerror or str(problem)
    if problem.errno in (errno.EISDIR, errno.ENXIO, errno.ENOTDIR, errno.ELOOP):
        return errors.journal_not_a_file(place.name)
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.store_full(place.name)
    return errors.journal_unwritable(place.name, why)
