"""`limpet export` and `import`: a project as JSON Lines.

`import transcript` reads what coding agents keep instead (transcripts.py), `import mem0` and its like what other memory
tools keep (peers.py).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import BinaryIO

import click

from limpet import errors, limits
from limpet.doors.cli import render
from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State

PEERS = ("server-memory", "anthropic-memory", "mem0", "basic-memory")  # whose memory can be taken in
PROGRESS_AFTER_SECONDS = 0.5  # shorter work is over before anybody wonders
PROGRESS_EVERY_SECONDS = 0.2


def add_to(root: Group) -> None:
    _add_export(root)
    _add_import(root)


def _add_export(root: Group) -> None:
    @command(
        root,
        "export",
        "limpet export memory.jsonl\nlimpet export | gzip > memory.jsonl.gz",
        "Write the project with its history and its outputs as JSON Lines, to standard output unless a file is named.",
    )
    @click.argument("file", default="-", type=click.Path())
    @click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
    @click.option("--without-outputs", is_flag=True, help="Leave out kept outputs and what is known of deleted ones.")
    @pass_state
    def export(state: State, file: str, force: bool, without_outputs: bool) -> None:
        if file != "-" and not force and os.path.lexists(file):
            raise errors.target_exists(file)
        lines = (render.quiet_json(line) for line in state.hold.export_lines(outputs=not without_outputs))
        if file == "-":
            with progress(lines, "written", quiet=sys.stdout.isatty()) as counted:
                for line in counted:
                    render.to_stdout(line)
            return
        with progress(lines, "written") as counted:
            count = write_file(file, counted, force=force)
        reply = {"export": os.path.abspath(file), "lines": count}
        state.answer(reply, lambda screen: screen.line(f"{reply['export']} written ({count:,} lines)"))


def _add_import(root: Group) -> None:
    @command(
        root,
        "import",
        "limpet import memory.jsonl --project copy\ngunzip -c memory.jsonl.gz | limpet import -\n"
        "limpet import transcript claude-code --dry-run\nlimpet import transcript rollout.jsonl --session parser\n"
        "limpet import server-memory memory.jsonl --dry-run\nlimpet import basic-memory ~/basic-memory",
        "Read an export into an empty project, exactly as it was; - reads standard input. All of it, or nothing. "
        "`import transcript` takes in a session that a coding agent kept: messages as messages, big results as "
        "outputs. It names a file, or an agent whose last session in this project is meant; doing it again adds only "
        "what is new. `import server-memory FILE`, `anthropic-memory FOLDER`, `mem0 FILE` and `basic-memory FOLDER` "
        "take what these tools keep into this project's memory; doing it twice adds nothing.",
        session=True,
    )
    @click.argument("file", type=click.Path())
    @click.argument("source", required=False, type=click.Path(), metavar="[FILE|AGENT|FOLDER]")
    @click.option("--merge", is_flag=True, help="Add to what the project has; stops if an entry differs.")
    @click.option("--all", "every", is_flag=True, help="Of a transcript: every session of the agent in this project.")
    @click.option("--dry-run", is_flag=True, help="Of a transcript or another tool: say what would be added.")
    @pass_state
    def import_(state: State, file: str, source: str | None, merge: bool, every: bool, dry_run: bool) -> None:
        if file == "transcript" and (source is not None or not os.path.exists(file)):
            from limpet.doors.cli import transcripts  # late, like all that only one command needs

            if merge or source is None:
                raise click.UsageError("import transcript takes a file or an agent's name, and no --merge.")
            transcripts.run(state, source, every=every, dry_run=dry_run)
            return
        if file in PEERS and (source is not None or not os.path.exists(file)):
            from limpet.doors.cli import import_memory  # late, as above

            if merge or every or state.session or source is None:
                raise click.UsageError(f"import {file} takes the place where it keeps things, and at most --dry-run.")
            import_memory.run(state, file, source, dry_run=dry_run)
            return
        if source is not None or every or dry_run or state.session:
            raise click.UsageError("One file is read; --session, --all and --dry-run go with `import transcript`.")
        hold = state.hold
        with _source(file) as opened, progress(read_lines(opened), "read") as lines:
            count = hold.import_lines(lines, merge=merge)
        reply = {"imported": count, "project": hold.scope.project}
        state.answer(reply, lambda screen: screen.line(f"{count:,} entries imported into project {hold.scope.project}"))


def _source(file: str) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return open(file, "rb")
    except OSError as problem:
        raise errors.bad_import(1, f"{file} cannot be opened ({problem.strerror})") from None


def read_lines(source: BinaryIO) -> Iterator[str]:
    """Lines as text. One without end is read no further than needed to say that it is too long."""
    most = 4 * limits.IMPORT_LINE_MAX_BYTES + 4  # no character takes more than four bytes
    while line := source.readline(most):
        yield line.decode("utf-8", "surrogateescape").removesuffix("\n")


def write_file(target: str, lines: Iterable[str], *, force: bool) -> int:
    """Write a private file that appears whole or not at all. The number of lines."""
    draft = f"{target}.{os.urandom(4).hex()}.part"
    count = 0
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for line in lines:
                file.write(line.encode() + b"\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        _put_in_place(draft, target, force)
    except FileExistsError:
        raise errors.target_exists(target) from None
    except OSError as problem:
        raise errors.store_read_only(target, problem.strerror or str(problem)) from problem
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(draft)
    return count


def _put_in_place(draft: str, target: str, force: bool) -> None:
    if force:
        os.replace(draft, target)
    else:
        try:
            os.link(draft, target)  # unlike a rename, it refuses when somebody made the file meanwhile
        except FileExistsError:
            raise
        except OSError:
            # A file system without hard links; look first, which is nearly as good.
            if os.path.lexists(target):
                raise FileExistsError(target) from None
            os.replace(draft, target)
    folder = os.open(os.path.dirname(os.path.abspath(target)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def progress(lines: Iterable[str], done: str, *, quiet: bool = False) -> Iterator[Iterable[str]]:
    """The same lines, counted on standard error when it is a terminal and the work takes long."""
    if quiet or not sys.stderr.isatty():
        yield lines
        return
    counted = _counted(lines, done)
    try:
        yield counted
    finally:
        counted.close()  # now, and not when it is collected: the line must end before the next message


def _counted(lines: Iterable[str], done: str) -> Generator[str]:
    began = shown = time.monotonic()
    count = 0
    try:
        for count, line in enumerate(lines, 1):
            now = time.monotonic()
            if now - began > PROGRESS_AFTER_SECONDS and now - shown > PROGRESS_EVERY_SECONDS:
                sys.stderr.write(f"\r{count:,} lines {done}")
                sys.stderr.flush()
                shown = now
            yield line
    finally:
        if shown != began:
            sys.stderr.write(f"\r{count:,} lines {done}\n")
