"""`limpet import transcript` and `limpet import TOOL`: sessions of coding agents, and what other memory tools keep."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from limpet import clients, errors, limits
from limpet.doors.cli.invocation import Invocation
from limpet.doors.cli.progress import Progress, counted
from limpet.doors.cli.render import Screen
from limpet.importers import conversations, memories, reading
from limpet.importers import transcripts as transcript_files

Json = dict[str, Any]
TOOLS = tuple(reading.READERS)
CLIENTS = {client.name: client for client in clients.every() if client.has_transcripts}


def read_lines(source: BinaryIO) -> Iterator[str]:
    """Lines as text. An endless one is read no further than needed to say that it is too long."""
    most = 4 * limits.IMPORT_LINE_MAX_BYTES + 4  # no character takes more than four bytes
    while line := source.readline(most):
        yield line.decode("utf-8", "surrogateescape").removesuffix("\n")


# --- transcripts ------------------------------------------------------------------------------------------------------


def transcripts(cli: Invocation, source: str, *, every: bool, dry_run: bool) -> None:
    rows = [_transcript(cli, path, dry_run) for path in _files(source, cli.settings.root, every)]

    def draw(screen: Screen) -> None:
        for row in rows:
            would = "would be added to" if dry_run else "added to"
            screen.line(
                f"{row['file']}: {row['messages']:,} messages {would} session {row['session']} ({row['client']}), "
                f"{row['outputs']:,} results kept as outputs, {row['known']:,} messages were there already"
            )
            for line in row["unread"]:
                screen.line(f"  line {line['line']:,} was not read: {line['why']}")
            _more(screen, row["unread_count"] - len(row["unread"]), " lines")

    cli.answer({"dry_run": dry_run, "sessions": rows}, draw)


def _transcript(cli: Invocation, path: str, dry_run: bool) -> Json:
    try:
        with open(path, "rb") as file, counted(read_lines(file), "read") as lines:
            transcript = transcript_files.read(lines)
    except OSError as problem:
        raise errors.not_a_transcript(path, problem.strerror or "it cannot be read", list(CLIENTS)) from None
    if not transcript.client:
        raise errors.not_a_transcript(path, f"none of its {transcript.lines:,} lines is known", list(CLIENTS))
    session = cli.session or transcript.session or Path(path).stem
    total, progress = len(transcript.messages), Progress()
    added = conversations.add_messages(
        cli.hold.context(session, "import"),
        transcript.messages,
        dry_run=dry_run,
        told=lambda count: progress.show(f"{count:,} of {total:,} messages kept"),
    )
    progress.end()
    return {
        "file": os.path.abspath(path),
        "client": transcript.client,
        "session": session,
        **added._asdict(),
        "lines": transcript.lines,
        "unread": [line._asdict() for line in transcript.unread[: limits.UNREAD_NAMED]],
        "unread_count": len(transcript.unread),
    }


def _files(source: str, root: str, every: bool) -> list[str]:
    """The file that is named, or an agent's last one of this project, or all of these."""
    if source not in CLIENTS or os.path.exists(source):
        return [source]
    client = CLIENTS[source]
    files = [path for path in _newest_first(client.transcript_files) if _of_project(path, root)]
    if not files:
        raise errors.no_transcript(source, root, client.transcript_advice or "Name a file instead.")
    return [str(path) for path in reversed(files if every else files[:1])]


def _newest_first(patterns: tuple[str, ...]) -> list[Path]:
    files = [path for pattern in patterns for path in Path.home().glob(pattern) if path.is_file()]
    return sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)


def _of_project(path: Path, root: str) -> bool:
    """Whether the session worked in the project's folder or below it. One client keeps only the folder's SHA-256."""
    try:
        with path.open("rb") as file:
            _, folder = transcript_files.session_of(_beginning(file))
    except OSError:
        return False
    if folder == hashlib.sha256(os.fsencode(root)).hexdigest():
        return True
    return os.path.isabs(folder) and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root))


def _beginning(file: BinaryIO) -> Iterator[str]:
    """The first lines of JSON Lines, but all of a single JSON document, which cannot be cut."""
    first = file.readline(3)
    file.seek(0)
    return read_lines(file) if first.strip() in (b"{", b"[") else islice(read_lines(file), limits.TRANSCRIPT_HEAD_LINES)


# --- other memory tools -----------------------------------------------------------------------------------------------


def memory_of(cli: Invocation, tool: str, source: str, *, dry_run: bool) -> None:
    """Take what another memory tool keeps into this project's memory."""
    memory = reading.read(reading.READERS[tool], source)
    progress = Progress()
    added = memories.add_facts(
        cli.hold.context(by="import/peer"),
        memory.facts,
        dry_run=dry_run,
        told=lambda count, total: progress.show(f"{count:,} of {total:,} kept"),
    )
    progress.end()
    reply: Json = {
        "tool": tool,
        "source": os.path.abspath(source),
        "project": cli.hold.scope.project,
        "dry_run": dry_run,
        **added._asdict(),
        "kept": list(added.kept[: limits.UNREAD_NAMED]),
        "kept_count": len(added.kept),
        "unread": [part._asdict() for part in memory.unread[: limits.UNREAD_NAMED]],
        "unread_count": len(memory.unread),
    }
    cli.answer(reply, lambda screen: _draw(screen, reply))


def _draw(screen: Screen, reply: Json) -> None:
    would = "would be " if reply["dry_run"] else ""
    screen.line(
        f"{reply['source']}: {reply['added']:,} {would}added to the memory of project {reply['project']}, "
        f"{reply['updated']:,} {would}brought up to date, {reply['known']:,} were there already"
    )
    for key in reply["kept"]:
        screen.line(f"  {key} stays as it is: it was changed here")
    _more(screen, reply["kept_count"] - len(reply["kept"]))
    for part in reply["unread"]:
        screen.line(f"  {part['part']} was not read: {part['why']}")
    _more(screen, reply["unread_count"] - len(reply["unread"]))


def _more(screen: Screen, count: int, noun: str = "") -> None:
    if count > 0:
        screen.line(f"  and {count:,} more{noun}")
