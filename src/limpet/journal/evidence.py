"""Evidence against the project's files: quotes are taken from them, checked against them, and looked for by git.

Only regular files inside the project are read, whatever links lead to. git is asked when there is one, by its own
command line; without it everything works, only less is known about what is gone.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping

from limpet import errors, limits
from limpet.journal.document import entries
from limpet.journal.document.entries import Evidence, Ref, rooted
from limpet.journal.document.quotes import DRIFTED, FRESH, MOVED, Verdict, judge, lines_of
from limpet.journal.file import Place

_GIVEN = re.compile(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?(?:\s+(\S.*))?\Z", re.DOTALL)
_SAID = re.compile(r"user:\s*(\S.*)\Z", re.DOTALL | re.IGNORECASE)
_VERIFIED = "verified.json"
_GIT_SECONDS = 5.0  # a slow repository must not hold up a session


def source(root: str, path: str) -> str | None:
    """What a file of the project says; None when there is none, or none that may be read."""
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


def given(root: str, item: str) -> tuple[Evidence, str]:
    """Evidence as an agent gives it, with the quote from the file itself, and whether it was fresh or moved."""
    if said := _SAID.match(item.strip()):
        return Evidence(_one_voice(said[1]), None), FRESH
    ref, quote = _place(item)
    place = None if ref is None else rooted(ref, os.path.realpath(root))
    if place is None or not place.first:
        raise errors.bad_evidence(item, "it names no lines of a file inside the project")
    text = source(root, place.path)
    if text is None:
        raise errors.bad_evidence(item, f"there is no readable file {place.path} in the project")
    if not quote:
        return Evidence(_quoted(item, text, place), place), FRESH
    verdict = judge(quote, place, text)
    if verdict.state == DRIFTED:
        raise errors.bad_evidence(item, f"{place.path} does not hold these words")
    return Evidence(_checked(item, quote), verdict.ref), verdict.state


def _place(item: str) -> tuple[Ref | None, str]:
    found = entries.evidence(item.strip())
    if found.ref is not None:
        return found.ref, found.quote
    plain = _GIVEN.match(item.strip())
    if plain is None:
        return None, ""
    return entries.as_ref(plain[1], int(plain[2]), int(plain[3] or plain[2])), (plain[4] or "").strip().strip("`")


def _quoted(item: str, text: str, place: Ref) -> str:
    """The lines the place names, without the indent they share."""
    lines = [line.rstrip() for line in lines_of(text, place)]
    if len(lines) < place.last - place.first + 1 or not any(lines):
        raise errors.bad_evidence(item, f"{place.path} has no words at these lines")
    indent = min(len(line) - len(line.lstrip()) for line in lines if line)
    return _checked(item, "\n".join(line[indent:] for line in lines).strip("\n"))


def _checked(item: str, quote: str) -> str:
    from limpet.redaction import redact

    if quote.count("\n") >= limits.JOURNAL_QUOTE_MAX_LINES:
        raise errors.bad_evidence(item, f"it quotes more than {limits.JOURNAL_QUOTE_MAX_LINES} lines")
    if redact(quote).count:
        raise errors.bad_evidence(item, "it quotes what looks like a secret, and a journal is shared")
    try:
        quote.encode()
    except UnicodeEncodeError:
        raise errors.bad_evidence(item, "it quotes bytes that are no text") from None
    return quote


def _one_voice(text: str) -> str:
    return text.strip().strip('"')


# --- what was said before ---------------------------------------------------------------------------------------------


def still(root: str, one: Evidence, *, ask_git: bool = True) -> Verdict | None:
    """Whether evidence still stands; None for what a person said, which no file can show."""
    if one.ref is None or not one.quote:
        return None
    verdict = judge(one.quote, one.ref, source(root, one.ref.path))
    return with_git(root, one.quote, verdict) if ask_git else verdict


def with_git(root: str, quote: str, verdict: Verdict) -> Verdict:
    """What git knows of a quote that is not where it was: the file it went to, or the commit that changed it."""
    if verdict.state in (FRESH, MOVED):
        return verdict
    for path in elsewhere(root, quote):
        found = judge(quote, verdict.ref._replace(path=path, first=1, last=1), source(root, path))
        if found.state in (FRESH, MOVED):
            return Verdict(MOVED, found.ref, f"it was in {verdict.ref.path}")
    changed = git(root, "log", "-1", "--format=%h %cs", "--", verdict.ref.path)
    return verdict._replace(detail=f"changed last in {changed.strip()}") if changed and changed.strip() else verdict


def elsewhere(root: str, quote: str) -> list[str]:
    """Files of the repository that hold the longest line of a quote, if they are few."""
    line = max((part.strip() for part in quote.split("\n")), key=len)
    if len(line) < 8:  # a bracket is everywhere
        return []
    found = git(root, "grep", "-l", "-z", "-F", "-I", "-e", line)
    paths = found.split("\0")[:-1] if found else []
    return paths if len(paths) <= 3 else []


def committed(root: str, file: str) -> str | None:
    """What the last commit holds of a file."""
    return git(root, "show", "--no-textconv", f"HEAD:./{file}")


def git(root: str, *arguments: str) -> str | None:
    """The answer of git; None when there is no git, no repository, or it does not know."""
    import subprocess

    command = ["git", "-C", root, "-c", "core.fsmonitor=false", "--literal-pathspecs", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


# --- what identifiers pointed at --------------------------------------------------------------------------------------


def verified(place: Place) -> dict[str, str]:
    """The digests of the lines that identifiers named when they were last verified."""
    try:
        with open(place.within(_VERIFIED), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def remember_verified(place: Place, digests: Mapping[str, str]) -> None:
    os.makedirs(place.side, mode=0o700, exist_ok=True)
    path = place.within(f"{_VERIFIED}.{os.getpid()}")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(digests), file)
    os.replace(path, place.within(_VERIFIED))
