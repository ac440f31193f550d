"""The journal's file, which people edit at the same time: read and replaced without losing a save.

A change is a function from text to text. It is applied under a lock to the current content. The result is written to a
temporary file, which is *exchanged* with the journal (renameat2), so that the previous content is displaced and not
overwritten. If the displaced content is not what was read, an editor saved in between: it is merged and exchanged
again. An editor that opened the file before the exchange may still write to the displaced file, so displaced files are
kept for a while and read again. An editor that saves an old buffer drops later changes; recent states of the file are
kept, so that the next change finds the state the buffer came from and merges. All of this is in `.limpet/journal/`.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from limpet import errors, limits
from limpet.journal.document.merge import MergeConflict, merge, nearest

Change = Callable[[str], str]
_STATES, _DISPLACED, _LOCK = "seen", "displaced", "lock"
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_AT_FDCWD = -100  # AT_FDCWD


class JournalFile(NamedTuple):
    """The file itself, links resolved, and the folder for its states."""

    path: str
    side: str
    name: str  # as configured, for messages

    def within(self, *names: str) -> str:
        return os.path.join(self.side, *names)


class SavedFile(NamedTuple):
    text: str
    before: str  # the text it was applied to
    merged: bool = False  # the file had other changes as well
    conflicts: tuple[MergeConflict, ...] = ()
    written: bool = True


def find(root: str, file: str, side: str) -> JournalFile:
    """The journal's place, with `side` as the folder for its states. It must be inside the project, links resolved."""
    home = os.path.realpath(root)
    path = os.path.realpath(os.path.join(home, file))
    if not path.startswith(home.rstrip(os.sep) + os.sep):
        raise errors.journal_outside(file)
    return JournalFile(path, os.path.join(home, side), file)


def read(place: JournalFile) -> str | None:
    """The content of the file; None when there is none. Waits for an editor that is saving."""
    text = _read(place, place.path)
    if text is None or not text.strip() or not text.endswith("\n"):
        text = _settled(place, place.path, "".join(states(place, 1)))
    return text


def update(place: JournalFile, change: Change, new: Callable[[], str] | None = None) -> SavedFile:
    """Apply a change to the file. `new` gives the text of a missing file; without it, a missing file is an error."""
    try:
        with _locked(place):
            return _update(place, change, new)
    except OSError as problem:
        raise _trouble(place, problem) from problem


def revive(place: JournalFile, text: str) -> bool:
    """Write an empty or missing file. False when it is not empty; then it is left as it is."""
    try:
        with _locked(place):
            current = _read(place, place.path)
            if current is not None and current.strip():
                return False
            _remember(place, text)
            displaced = _exchange(place, text, current)
            if displaced and displaced.strip():  # an editor saved first
                _update(place, lambda now: merge("", now, displaced).text, None)
            return True
    except OSError as problem:
        raise _trouble(place, problem) from problem


def states(place: JournalFile, most: int | None = None) -> list[str]:
    """The recent states of the file, newest first."""
    texts = []
    for name in _names(place)[:most]:
        try:
            with open(place.within(_STATES, name), "rb") as file:
                text = file.read().decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            continue  # removed by another process
        if name.endswith(f"-{_digest(text)}.md"):  # older versions could leave half of one
            texts.append(text)
    return texts


def forget(place: JournalFile, texts: Sequence[str]) -> None:
    """Remove the states and displaced files that contain one of the texts.

    An editor that still has an old buffer open and saves it brings the texts back: no state is left to detect that.
    """
    gone = [text.encode("utf-8", "surrogateescape") for text in texts]
    try:
        with _locked(place):
            for folder in (_STATES, _DISPLACED):
                for name in os.listdir(place.within(folder)):
                    path = place.within(folder, name)
                    with open(path, "rb") as file:
                        data = file.read()
                    if any(text in data for text in gone):
                        os.unlink(path)
    except OSError as problem:
        raise _trouble(place, problem) from problem


# --- one change -------------------------------------------------------------------------------------------------------


def _update(place: JournalFile, change: Change, new: Callable[[], str] | None) -> SavedFile:
    # The newest state contains everything; each older one is an ancestor of it. A text from an old buffer is merged
    # from the state it came from, and the result becomes the newest state.
    newest = next(iter(states(place)), "")
    late = list(_texts_in_displaced(place, newest))
    if not newest.strip():
        late = []  # without a state, an older text looks like a newer one
    current = _settled(place, place.path, newest)
    if current is None and (new is None or newest.strip()):
        raise errors.journal_missing(place.name)
    if current is not None and not current.strip() and newest.strip():
        raise errors.journal_emptied(place.name)
    conflicts: list[MergeConflict] = []
    head = newest if newest.strip() else current if current is not None or new is None else new()
    head = head or ""
    for theirs in late:
        head = _merged(place, head, theirs, conflicts)
    if current is not None and not newest.strip():
        _remember(place, current)  # seen for the first time: the ancestor of later texts
    elif current is not None and current != head:
        head = current if _is_reverted(place, current) else _merged(place, head, current, conflicts)
    before, merged = head, current is not None and head != current
    target = change(head)
    while target != current:
        _remember(place, target)
        displaced = _exchange(place, target, current)
        if displaced is None or displaced == current or _says_nothing_new(place, displaced):
            return SavedFile(target, before, merged, tuple(conflicts))
        # An editor saved after the read. Its text is displaced now and must be merged back.
        target, merged = _merged(place, target, displaced, conflicts), True
        current = _settled(place, place.path, target)
        target = target if current is None else _merged(place, target, current, conflicts)
    _remember(place, target)
    return SavedFile(target, before, merged, tuple(conflicts), written=merged)


def _is_reverted(place: JournalFile, current: str) -> bool:
    """Whether the file was reverted on purpose to an earlier state, by hand or by git.

    Shortly after a write it is more likely an editor that saved an old buffer, and the write is restored.
    """
    names = _names(place)
    if not names or not any(name.endswith(f"-{_digest(current)}.md") for name in names[1:]):
        return False
    ours_at = os.stat(place.within(_STATES, names[0])).st_mtime
    return os.stat(place.path).st_mtime - ours_at > limits.JOURNAL_STALE_SECONDS


def _merged(place: JournalFile, head: str, theirs: str, conflicts: list[MergeConflict]) -> str:
    """The newest text merged with a saved one, from the state that the saved one came from."""
    ancestors = states(place)
    if not ancestors:
        _remember(place, theirs)
        return theirs
    if theirs in ancestors:
        return head
    result = merge(ancestors[nearest(ancestors, theirs)], head, theirs)
    conflicts += result.conflicts
    _remember(place, theirs, result.text)
    return result.text


def _says_nothing_new(place: JournalFile, displaced: str) -> bool:
    """Whether the text is the beginning of a known state: a save was caught halfway, and its end is read later."""
    return any(state.startswith(displaced) for state in states(place))


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(place: JournalFile, path: str) -> str | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _trouble(place, problem) from problem
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise errors.journal_not_a_file(place.name)
        if info.st_size > limits.JOURNAL_MAX_BYTES:
            raise errors.journal_too_big(place.name, info.st_size, limits.JOURNAL_MAX_BYTES)
        with open(handle, "rb", closefd=False) as file:
            return file.read().decode("utf-8", "surrogateescape")
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


# --- states -----------------------------------------------------------------------------------------------------------


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _names(place: JournalFile) -> list[str]:
    """The files of the states, newest first."""
    try:
        return sorted((name for name in os.listdir(place.within(_STATES)) if name.endswith(".md")), reverse=True)
    except FileNotFoundError:
        return []


def _remember(place: JournalFile, *texts: str) -> None:
    """Store texts as states, the last one as the newest: the content of the file now."""
    for text in texts:
        names = _names(place)
        if names and names[0].endswith(f"-{_digest(text)}.md"):
            continue
        number = int(names[0].split("-")[0]) + 1 if names else 1
        data = text.encode("utf-8", "surrogateescape")
        path = place.within(_STATES, f"{number:010d}-{_digest(text)}")
        with open(path, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # before the journal itself: a power cut must not leave it without its ancestors
        os.rename(path, f"{path}.md")
        _sync(place.within(_STATES))
        limit = min(limits.JOURNAL_STATES, max(8, limits.JOURNAL_STATES_BYTES // max(1, len(data))))
        for name in names[limit - 1 :]:
            os.unlink(place.within(_STATES, name))


def _texts_in_displaced(place: JournalFile, newest: str) -> Iterator[str]:
    """Texts written to displaced files since they were displaced. Old untouched ones are deleted."""
    folder = place.within(_DISPLACED)
    beside = os.path.dirname(place.path)
    for name in os.listdir(beside):  # left by a process that was stopped in the middle
        if name.startswith(_temporary(place)):
            _put_aside(place, os.path.join(beside, name), "left")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        put_aside, _, digest = name.partition("-")
        info = os.stat(path)
        # The file system's clock may be coarse: a file written shortly before is read again to be sure.
        if digest == "left" or info.st_mtime_ns > int(put_aside) - 100_000_000:
            text = _read(place, path) or ""
            if text.strip() and _digest(text) != digest:
                text = _settled(place, path, newest) or ""
            if text.strip() and _digest(text) != digest and not _says_nothing_new(place, text):
                os.rename(path, os.path.join(folder, f"{time.time_ns()}-{_digest(text)}"))
                yield text
                continue
        if time.time_ns() - int(put_aside) > limits.JOURNAL_DISPLACED_SECONDS * 1_000_000_000:
            os.unlink(path)


# --- writing ----------------------------------------------------------------------------------------------------------


def _exchange(place: JournalFile, text: str, expected: str | None) -> str | None:
    """Exchange the file's content durably. Returns the displaced content; None when there was none."""
    folder = os.path.dirname(place.path)
    temporary = os.path.join(folder, f"{_temporary(place)}{os.getpid()}-{time.time_ns()}")
    try:
        _write(place, temporary, text)
        gone = _swap(place, temporary, expected)
    except OSError:  # after an exchange this name holds the displaced text, which must not be deleted
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync(folder)
    if not gone:
        return None
    displaced = _settled(place, temporary, expected or "") or ""
    _put_aside(place, temporary, _digest(displaced))
    return displaced


def _write(place: JournalFile, path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.flush()
        try:
            info = os.stat(place.path)
            os.fchmod(handle, stat.S_IMODE(info.st_mode))
            if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle, info.st_uid, info.st_gid)
        except (FileNotFoundError, PermissionError):
            pass  # a new file, or one of another user: it becomes this user's, as with every editor
        os.fsync(handle)


def _swap(place: JournalFile, temporary: str, expected: str | None) -> bool:
    """Exchange the two files. False when there was none to exchange with, and the file is new."""
    until = time.monotonic() + (limits.JOURNAL_SETTLE_SECONDS if expected is not None else 0)
    while True:
        try:
            _exchange_names(temporary, place.path)
        except FileNotFoundError:
            pass  # an editor moved it away and is about to replace it
        else:
            return True
        if time.monotonic() >= until:
            try:
                os.link(temporary, place.path)
            except FileExistsError:
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
    spare = f"{source}-old"
    os.link(target, spare)
    os.rename(source, target)
    os.rename(spare, source)


def _put_aside(place: JournalFile, path: str, digest: str) -> None:
    """Keep a displaced file for later changes to read again: an editor may still have it open."""
    target = place.within(_DISPLACED, f"{time.time_ns()}-{digest}")
    try:
        os.rename(path, target)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        os.unlink(path)  # it cannot be kept on another file system; its text is among the states


def _temporary(place: JournalFile) -> str:
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
def _locked(place: JournalFile) -> Iterator[None]:
    import fcntl

    _make_side(place)
    handle = os.open(place.within(_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


def _make_side(place: JournalFile) -> None:
    for name in (_STATES, _DISPLACED):
        os.makedirs(place.within(name), mode=0o700, exist_ok=True)
    ignore = place.within(".gitignore")
    if not os.path.exists(ignore):
        with open(ignore, "w", encoding="utf-8") as file:
            file.write("# What Limpet has seen of the journal lately, so that nothing is lost.\n*\n")


def _trouble(place: JournalFile, problem: OSError) -> errors.LimpetError:
    why = problem.strerror or str(problem)
    if problem.errno in (errno.EISDIR, errno.ENXIO, errno.ENOTDIR):
        return errors.journal_not_a_file(place.name)
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.store_full(place.name)
    return errors.journal_unwritable(place.name, why)
