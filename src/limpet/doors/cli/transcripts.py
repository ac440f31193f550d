"""`limpet import transcript`: a session that a coding agent kept is taken in. Which file, and what came of it."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from limpet import errors, limits
from limpet.clients.transcripts import reading
from limpet.doors.cli import render
from limpet.doors.cli.context import State
from limpet.doors.cli.transfer import PROGRESS_AFTER_SECONDS, PROGRESS_EVERY_SECONDS, progress, read_lines
from limpet.importers import conversations

Json = dict[str, Any]
BY = "import"
CLIENTS = {reader.client: reader for reader in reading.READERS}


def run(state: State, source: str, *, every: bool, dry_run: bool) -> None:
    paths = _files(source, state.settings.root, every)
    rows = [_one(state, path, dry_run) for path in paths]
    reply = {"dry_run": dry_run, "sessions": rows}

    def draw(screen: render.Screen) -> None:
        for row in rows:
            would = "would be added to" if dry_run else "added to"
            screen.line(
                f"{row['file']}: {row['messages']:,} messages {would} session {row['session']} ({row['client']}), "
                f"{row['outputs']:,} results kept as outputs, {row['known']:,} messages were there already"
            )
            for line in row["unread"]:
                screen.line(f"  line {line['line']:,} was not read: {line['why']}")
            if (more := row["unread_count"] - len(row["unread"])) > 0:
                screen.line(f"  and {more:,} more lines")

    state.answer(reply, draw)


def _one(state: State, path: str, dry_run: bool) -> Json:
    try:
        with open(path, "rb") as file, progress(read_lines(file), "read") as lines:
            found = reading.read(lines)
    except OSError as problem:
        raise errors.not_a_transcript(path, problem.strerror or "it cannot be read", list(CLIENTS)) from None
    if not found.client:
        raise errors.not_a_transcript(path, f"none of its {found.lines:,} lines is known", list(CLIENTS))
    session = state.session or found.session or Path(path).stem
    ctx = state.hold.context(session, BY)
    done = conversations.add_messages(ctx, found.messages, dry_run=dry_run, told=_teller(len(found.messages)))
    unread = [one._asdict() for one in found.unread[: limits.UNREAD_NAMED]]
    return {
        "file": os.path.abspath(path),
        "client": found.client,
        "session": session,
        **done._asdict(),
        "lines": found.lines,
        "unread": unread,
        "unread_count": len(found.unread),
    }


def _teller(total: int) -> Any:
    """Says how far it is, on a terminal and when it takes long."""
    began = shown = time.monotonic()

    def tell(done: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if sys.stderr.isatty() and now - began > PROGRESS_AFTER_SECONDS and now - shown > PROGRESS_EVERY_SECONDS:
            shown = now
            end = "\n" if done >= total else ""
            sys.stderr.write(f"\r{done:,} of {total:,} messages kept{end}")
            sys.stderr.flush()

    return tell


def _files(source: str, root: str, every: bool) -> list[str]:
    """The files that are meant: the one that is named, or an agent's last one of this project, or all of these."""
    if source not in CLIENTS or os.path.exists(source):
        return [source]
    reader = CLIENTS[source]
    found = [path for path in _newest_first(reader.files) if _of_project(path, root)]
    chosen = list(found) if every else found[:1]
    if not chosen:
        raise errors.no_transcript(source, root, reader.advice or "Name a file instead.")
    return [str(path) for path in reversed(chosen)]


def _newest_first(patterns: tuple[str, ...]) -> list[Path]:
    found = [path for pattern in patterns for path in Path.home().glob(pattern) if path.is_file()]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def _of_project(path: Path, root: str) -> bool:
    """Whether the session worked in the project's folder or below it. One client keeps only the folder's SHA-256."""
    try:
        with path.open("rb") as file:
            folder = reading.heads(_beginning(file)).folder
    except OSError:
        return False
    if folder == hashlib.sha256(os.fsencode(root)).hexdigest():
        return True
    return os.path.isabs(folder) and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root))


def _beginning(file: Any) -> Iterator[str]:
    """Of a document it is all: where its first lines end is nowhere."""
    first = file.readline(3)
    file.seek(0)
    return read_lines(file) if first.strip() in (b"{", b"[") else islice(read_lines(file), limits.TRANSCRIPT_HEAD_LINES)
