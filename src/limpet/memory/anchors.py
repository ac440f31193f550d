"""Anchors: what an entry cites, and whether the cited lines still say the same.

An anchor is `path:line`, `path:first-last` or a whole file of the project, a commit, or a URL. The lines are hashed
when the entry is written and looked at again when it is shown: fresh, moved to other lines, drifted, or gone. Commits
and URLs are shown and not looked at: a commit does not change, and nothing here goes to the network.

A repository is a stranger's: paths lead into the project, through no link, to a regular file.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json
from limpet.journal.document import entries
from limpet.journal.document.markup import scan
from limpet.journal.document.quotes import DRIFTED, FRESH, GONE, MOVED
from limpet.journal.document.quotes import judge as judge_quote
from limpet.light import re
from limpet.model import DIGEST, Anchor, Entry, iso
from limpet.platform import sha256
from limpet.record import NamedTuple
from limpet.text import brief
from limpet.text.safe import as_name, visible

CITED = "cited"  # a commit or a URL, or a file that this process cannot look at
ROOT = "${PROJECT_ROOT}/"
STATES = (GONE, DRIFTED, MOVED, FRESH, CITED)  # the worst first: it speaks for the entry
_URL = re.compile(r"https?://[^\s<>]{1,1000}")
_COMMIT = re.compile(r"(?:commit[: ]\s*)?([0-9a-f]{7,40})")
_LINES = re.compile(r"(.+?)(?::(\d{1,9})(?:-(\d{1,9}))?)?", re.DOTALL)
Reader = Callable[[str], str | None]


class CitedLines(NamedTuple):
    """A place in a file of the project. Without numbers it is the whole file."""

    path: str
    first: int = 0
    last: int = 0

    def __str__(self) -> str:
        if not self.first:
            return self.path
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last != self.first else "")


class Look(NamedTuple):
    """What one look at an anchor shows. `place` is where the lines are now."""

    state: str
    place: str
    at: int  # when it was cited

    @property
    def holds(self) -> bool:
        return self.state not in (DRIFTED, GONE)


# --- citing -----------------------------------------------------------------------------------------------------------


def cited(ctx: Context, places: Sequence[str]) -> tuple[Anchor, ...]:
    """The anchors that a writer gives, with the digests of their lines."""
    if len(places) > limits.ANCHORS_MAX:
        raise errors.bad_anchor(places[limits.ANCHORS_MAX], f"an entry cites at most {limits.ANCHORS_MAX} places")
    return tuple(_cited(ctx, place.strip()) for place in places)


def _cited(ctx: Context, place: str) -> Anchor:
    if visible(place, keep_newlines=False) != place:  # it is shown to a model beside the text
        raise errors.bad_anchor(place, "it must be one line of visible characters")
    if _URL.fullmatch(place):
        return Anchor(place, at=ctx.now)
    if commit := _COMMIT.fullmatch(place):
        return Anchor(f"commit {commit[1]}", at=ctx.now)
    lines = _parsed(ctx, place)
    text = _read_once(ctx.root, lines.path, place)
    every = text.split("\n")
    if lines.last > len(every):
        count = len(every) - (not every[-1])  # a line feed ends a line
        raise errors.bad_anchor(place, f"{lines.path} has {brief.counted(count, 'line')}")
    quoted = every[lines.first - 1 : lines.last] if lines.first else every
    if not any(line.strip() for line in quoted):
        raise errors.bad_anchor(place, "there is no text on these lines")
    return Anchor(str(lines), digest_of(quoted), ctx.now)


def _parsed(ctx: Context, place: str) -> CitedLines:
    matched = _LINES.fullmatch(place.removeprefix(ROOT))
    if matched is None:
        raise errors.bad_anchor(place, "it is empty")
    home = os.path.realpath(ctx.root)
    path = matched[1]
    if os.path.isabs(path):
        path = os.path.relpath(path, home)
    path = os.path.normpath(path)
    if path.startswith(("..", "~")) or os.path.isabs(path):
        raise errors.bad_anchor(place, "it is outside the project")
    if not os.path.isdir(home):
        raise errors.bad_anchor(place, "this server has no folder of the project")
    first = int(matched[2] or 0)
    last = int(matched[3] or first)
    if matched[2] and not 1 <= first <= last:
        raise errors.bad_anchor(place, "lines count from 1, and the first is not behind the last")
    return CitedLines(path.replace(os.sep, "/"), first, last)


def _read_once(root: str, path: str, place: str) -> str:
    home = os.path.realpath(root)
    target = os.path.join(home, path)
    if os.path.realpath(target) != target:
        raise errors.bad_anchor(place, "it leads through a link")
    try:
        text, steady = _read(home, path)
    except OSError as problem:
        raise errors.bad_anchor(place, problem.strerror or str(problem)) from None
    if text is None and os.path.getsize(target) > limits.ANCHOR_FILE_MAX_BYTES:
        raise errors.bad_anchor(place, f"the file has more than {limits.ANCHOR_FILE_MAX_BYTES >> 20} MiB")
    if text is None or "\0" in text:
        raise errors.bad_anchor(place, "it is no readable text file of the project")
    if not steady:
        raise errors.bad_anchor(place, "the file changed while it was read; call again")
    return text


def _read(home: str, path: str) -> tuple[str | None, bool]:
    """The text of a regular file, and whether it stayed the same while it was read."""
    handle = _open(home, path)
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode) or before.st_size > limits.ANCHOR_FILE_MAX_BYTES:
            return None, True
        with open(handle, "rb", closefd=False) as file:
            body = file.read(limits.ANCHOR_FILE_MAX_BYTES + 1)
        after = os.fstat(handle)
    finally:
        os.close(handle)
    steady = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and len(body) == after.st_size
    return body.decode("utf-8", "surrogateescape"), steady


def _open(home: str, path: str) -> int:
    """A file of the project, opened part by part: a link that is put there meanwhile is not followed either."""
    through = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
    *folders, name = path.split("/")
    above = os.open(home, through)
    try:
        for folder in folders:
            inner = os.open(folder, through | os.O_NOFOLLOW, dir_fd=above)
            os.close(above)
            above = inner
        return os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    finally:
        os.close(above)


# --- looking again ----------------------------------------------------------------------------------------------------


def reader(root: str) -> Reader:
    """Reads files of the project for several anchors, each file once. None: there is no such file to read."""
    home = os.path.realpath(root)
    return lru_cache(limits.ANCHOR_FILES_READ)(partial(_source, home))


def _source(home: str, path: str) -> str | None:
    target = os.path.join(home, path)
    try:
        if "\0" in path or os.path.realpath(target) != target or not target.startswith(home.rstrip(os.sep) + os.sep):
            return None
        return _read(home, path)[0]
    except (OSError, ValueError):
        return None


def look(anchor: Anchor, read: Reader | None) -> Look:
    """One look at what an anchor names; without a reader nothing is looked at."""
    if not anchor.digest or read is None:
        return Look(CITED, anchor.place, anchor.at)
    lines = _stored(anchor.place)
    state, place = judge(anchor.digest, lines, read(lines.path))
    return Look(state, str(place), anchor.at)


def looks(ctx: Context, anchors: Iterable[Anchor], read: Reader | None = None) -> tuple[Look, ...]:
    every = tuple(anchors)
    if not every:
        return ()
    if read is None and os.path.isdir(ctx.root):
        read = reader(ctx.root)
    return tuple(look(anchor, read) for anchor in every)


def decision_source(entry: Entry, read: Reader | None) -> Look | None:
    """What one look at the evidence of a decision in the journal shows; None for other entries."""
    if read is None:
        return None
    doc = scan(entry.content)  # one block of the journal's file
    looked = []
    for item in entries.decision(doc, doc.headings[0], len(entry.content)).evidence if doc.headings else ():
        if item.ref is not None and item.quote:
            verdict = judge_quote(item.quote, item.ref, read(item.ref.path))
            looked.append(Look(verdict.state, str(verdict.ref._replace(rooted=False)), entry.created_at))
    return worst(looked)


def worst(looked: Sequence[Look]) -> Look | None:
    """The look that speaks for an entry: what is gone or has drifted comes before what is fresh."""
    return min(looked, key=lambda item: STATES.index(item.state), default=None)


def judge(digest: str, lines: CitedLines, text: str | None) -> tuple[str, CitedLines]:
    """Whether lines still say what they said, and where they are now. Line ends and blanks before them do not count."""
    if text is None:
        return GONE, lines
    every = text.split("\n")
    first, last = (lines.first, lines.last) if lines.first else (1, len(every))
    if digest_of(every[first - 1 : last]) == digest:
        return FRESH, lines
    if not lines.first or not re.fullmatch(DIGEST, digest):  # an older import may have brought a digest of any form
        return DRIFTED, lines
    offset, check = _key_line(digest)
    size = last - first + 1
    starts = (at - offset for at, line in enumerate(every) if _check(line) == check)
    places = sorted((at for at in starts if 0 <= at <= len(every) - size), key=lambda at: abs(at + 1 - first))
    for at in places[: limits.ANCHOR_PLACES_COMPARED]:
        if digest_of(every[at : at + size]) == digest:
            return MOVED, CitedLines(lines.path, at + 1, at + size)
    return DRIFTED, lines


def digest_of(lines: Sequence[str]) -> str:
    """A digest of lines, before it the offset and a short check of the longest one, by which moved lines are found."""
    plain = [line.rstrip() for line in lines]
    offset = max(range(len(plain)), key=lambda at: len(plain[at].strip())) if plain else 0
    body = "\n".join(plain).encode("utf-8", "surrogateescape")
    return f"{offset}.{_check(plain[offset] if plain else '')}.{sha256(body).hexdigest()}"


def _key_line(digest: str) -> tuple[int, str]:
    offset, check, _ = digest.split(".", 2)
    return int(offset), check


def _check(line: str) -> str:
    return f"{zlib.crc32(line.rstrip().encode('utf-8', 'surrogateescape')):x}"


def _stored(place: str) -> CitedLines:
    matched = _LINES.fullmatch(place)
    if matched is None:
        return CitedLines(place)
    first = int(matched[2] or 0)
    return CitedLines(matched[1], first, int(matched[3] or first))


# --- labels -----------------------------------------------------------------------------------------------------------


def label(item: Look | None) -> str:
    """What is said beside a text: nothing while it is fresh."""
    if item is None or item.state in (FRESH, CITED):
        return ""
    place = as_name(item.place)  # a name of a file, which its author chose
    if item.state == MOVED:
        return f"(its source moved to {place})"
    what = "has changed since" if item.state == DRIFTED else "is gone"
    return f"(was true at {iso(item.at)[:10]}: {place} {what})"


def look_json(item: Look | None) -> Json:
    """The state of an entry's source, for a program."""
    if item is None:
        return {}
    answer: Json = {"state": item.state, "place": item.place}
    return {"source": answer if item.holds else answer | {"was_true_at": iso(item.at)}}
