"""Checking evidence against the project's files, and asking git where a missing quote went.

Regular files inside the project are read, after links are resolved. Without git everything works, with less detail
about what is gone.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping

from limpet import limits
from limpet.journal import git
from limpet.journal.document.entries import Evidence
from limpet.journal.document.quotes import FRESH, MOVED, Verdict, judge
from limpet.journal.file import JournalFile, trouble

_VERIFIED = "verified.json"
Reader = Callable[[str], str | None]


def source(root: str, path: str) -> str | None:
    """The content of a file of the project; None when it is missing or may not be read."""
    home = os.path.realpath(root)
    if "\0" in path:
        return None
    try:
        real = os.path.realpath(os.path.join(home, path))  # fails when a link is replaced while it is followed
        if not real.startswith(home.rstrip(os.sep) + os.sep):
            return None
        handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_size > limits.JOURNAL_SOURCE_MAX_BYTES:
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read().decode("utf-8", "surrogateescape")
    except OSError:
        return None
    finally:
        os.close(handle)


def is_quick(root: str, path: str) -> bool:
    """Whether a file is small enough to be read while a session waits for its start."""
    try:
        return os.stat(os.path.join(root, path)).st_size <= limits.JOURNAL_QUICK_BYTES
    except (OSError, ValueError):
        return True  # missing: nothing is read


# --- quotes -----------------------------------------------------------------------------------------------------------


def still(root: str, evidence: Evidence, *, ask_git: bool = True, read: Reader | None = None) -> Verdict | None:
    """Whether evidence still holds; None for what a person said, which no file can show."""
    if evidence.ref is None or not evidence.quote:
        return None
    text = read(evidence.ref.path) if read else source(root, evidence.ref.path)
    verdict = judge(evidence.quote, evidence.ref, text)
    return with_git(root, evidence.quote, verdict) if ask_git else verdict


def with_git(root: str, quote: str, verdict: Verdict) -> Verdict:
    """What git knows about a quote that is not in its place: the file it moved to, or the commit that changed it."""
    if verdict.state in (FRESH, MOVED):
        return verdict
    for path in elsewhere(root, quote):
        elsewhere_verdict = judge(quote, verdict.ref._replace(path=path, first=1, last=1), source(root, path))
        if elsewhere_verdict.state in (FRESH, MOVED):
            return Verdict(MOVED, elsewhere_verdict.ref, f"it was in {verdict.ref.path}")
    changed = git.last_change(root, verdict.ref.path)
    return verdict._replace(detail=f"changed last in {changed}") if changed else verdict


def elsewhere(root: str, quote: str) -> list[str]:
    """Files of the repository that contain the longest line of a quote, if there are at most three."""
    line = max((part.strip() for part in quote.split("\n")), key=len)
    if len(line) < 8:  # a bracket is everywhere
        return []
    paths = git.containing(root, line)
    return paths if len(paths) <= 3 else []


# --- digests of identifiers -------------------------------------------------------------------------------------------


def verified(place: JournalFile) -> dict[str, str]:
    """Digests of the lines of each identifier, as of the last verification."""
    try:
        with place.state_folder(create=False) as folder:
            digests = json.loads(folder.read(_VERIFIED) or b"{}")
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in digests.items()} if isinstance(digests, dict) else {}


def remember_verified(place: JournalFile, digests: Mapping[str, str]) -> None:
    try:
        with place.state_folder(create=True) as folder:
            folder.replace(_VERIFIED, json.dumps(dict(digests)).encode())
    except OSError as problem:
        raise trouble(place, problem) from problem
