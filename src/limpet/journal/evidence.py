"""Checking evidence against the project's files, and asking git where a missing quote went.

Regular files inside the project are read, after links are resolved. git is called by its command line; without it
everything works, with less detail about what is gone.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping

from limpet import limits
from limpet.journal.document.entries import Evidence
from limpet.journal.document.quotes import FRESH, MOVED, Verdict, judge
from limpet.journal.file import JournalFile

_VERIFIED = "verified.json"
_GIT_SECONDS = 5.0  # a slow repository must not hold up a session


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


# --- quotes -----------------------------------------------------------------------------------------------------------


def still(root: str, evidence: Evidence, *, ask_git: bool = True) -> Verdict | None:
    """Whether evidence still holds; None for what a person said, which no file can show."""
    if evidence.ref is None or not evidence.quote:
        return None
    verdict = judge(evidence.quote, evidence.ref, source(root, evidence.ref.path))
    return with_git(root, evidence.quote, verdict) if ask_git else verdict


def with_git(root: str, quote: str, verdict: Verdict) -> Verdict:
    """What git knows about a quote that is not in its place: the file it moved to, or the commit that changed it."""
    if verdict.state in (FRESH, MOVED):
        return verdict
    for path in elsewhere(root, quote):
        elsewhere_verdict = judge(quote, verdict.ref._replace(path=path, first=1, last=1), source(root, path))
        if elsewhere_verdict.state in (FRESH, MOVED):
            return Verdict(MOVED, elsewhere_verdict.ref, f"it was in {verdict.ref.path}")
    changed = git(root, "log", "-1", "--format=%h %cs", "--", verdict.ref.path)
    return verdict._replace(detail=f"changed last in {changed.strip()}") if changed and changed.strip() else verdict


def elsewhere(root: str, quote: str) -> list[str]:
    """Files of the repository that contain the longest line of a quote, if there are at most three."""
    line = max((part.strip() for part in quote.split("\n")), key=len)
    if len(line) < 8:  # a bracket is everywhere
        return []
    listing = git(root, "grep", "-l", "-z", "-F", "-I", "-e", line)
    paths = listing.split("\0")[:-1] if listing else []
    return paths if len(paths) <= 3 else []


def committed(root: str, file: str) -> str | None:
    """A file as it is in the last commit."""
    return git(root, "show", "--no-textconv", f"HEAD:./{file}")


def git(root: str, *arguments: str) -> str | None:
    """The output of a git command; None when it fails, or there is no git or no repository."""
    import subprocess

    command = ["git", "-C", root, "-c", "core.fsmonitor=false", "--literal-pathspecs", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


# --- digests of identifiers -------------------------------------------------------------------------------------------


def verified(place: JournalFile) -> dict[str, str]:
    """Digests of the lines of each identifier, as of the last verification."""
    try:
        with open(place.within(_VERIFIED), encoding="utf-8") as file:
            digests = json.load(file)
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in digests.items()} if isinstance(digests, dict) else {}


def remember_verified(place: JournalFile, digests: Mapping[str, str]) -> None:
    os.makedirs(place.side, mode=0o700, exist_ok=True)
    path = place.within(f"{_VERIFIED}.{os.getpid()}")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(digests), file)
    os.replace(path, place.within(_VERIFIED))
