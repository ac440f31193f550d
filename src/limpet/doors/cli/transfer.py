"""`limpet export`, `import`, `backup` and `restore`: a project as JSON Lines, or a whole store as a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import BinaryIO

from limpet import errors
from limpet.doors.cli import import_others, render
from limpet.doors.cli.command import Misuse
from limpet.doors.cli.import_others import read_lines
from limpet.doors.cli.invocation import Invocation
from limpet.doors.cli.progress import Progress, counted
from limpet.doors.cli.store_address import shown_place


def export(cli: Invocation, file: str, force: bool, without_outputs: bool) -> None:
    if file != "-" and not force and os.path.lexists(file):
        raise errors.target_exists(file)
    lines = (render.quiet_json(line) for line in cli.hold.export_lines(outputs=not without_outputs))
    if file == "-":
        with counted(lines, "written", quiet=sys.stdout.isatty()) as counting:
            for line in counting:
                render.to_stdout(line)
        return
    with counted(lines, "written") as counting:
        count = write_file(file, counting, force=force)
    reply = {"export": os.path.abspath(file), "lines": count}
    cli.answer(reply, lambda screen: screen.line(f"{reply['export']} written ({count:,} lines)"))


def import_(cli: Invocation, file: str, source: str | None, merge: bool, every: bool, dry_run: bool) -> None:
    if file == "transcript" and (source is not None or not os.path.exists(file)):
        if merge or source is None:
            raise Misuse("import transcript takes a file or an agent's name, and no --merge.")
        import_others.transcripts(cli, source, every=every, dry_run=dry_run)
        return
    if file in import_others.TOOLS and (source is not None or not os.path.exists(file)):
        if merge or every or cli.session or source is None:
            raise Misuse(f"import {file} takes the place where it keeps things, and at most --dry-run.")
        import_others.memory_of(cli, file, source, dry_run=dry_run)
        return
    if source is not None or every or dry_run or cli.session:
        raise Misuse("One file is read; --session, --all and --dry-run go with `import transcript`.")
    hold = cli.hold
    with _source(file) as stream, counted(read_lines(stream), "read") as lines:
        count = hold.import_lines(lines, merge=merge)
    reply = {"imported": count, "project": hold.scope.project}
    cli.answer(reply, lambda screen: screen.line(f"{count:,} entries imported into project {hold.scope.project}"))


def _source(file: str) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return open(file, "rb")
    except OSError as problem:
        raise errors.bad_import(1, f"{file} cannot be opened ({problem.strerror})") from None


def write_file(target: str, lines: Iterable[str], *, force: bool) -> int:
    """Write a private file that appears complete or not at all. The number of lines."""
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
            os.link(draft, target)  # unlike a rename, it fails if the file was created in the meantime
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


def backup(cli: Invocation, file: str) -> int:
    with _rows("copied") as show:
        findings = cli.hold.backup(file, show)
    damage = [f"{finding.name}: {finding.detail}" for finding in findings if not finding.ok]
    reply = {"backup": os.path.abspath(file)}
    cli.answer(
        {**reply, "damaged": damage} if damage else reply,
        lambda screen: screen.line(f"{reply['backup']} holds the whole store"),
    )
    for detail in damage:
        cli.notice(f"damaged in the store, and so in its copy: {detail}. `limpet doctor` says more.")
    return errors.StoreProblem.exit_code if damage else 0


def restore(cli: Invocation, file: str) -> None:
    with _rows("restored") as show:
        copied = cli.hold.restore(file, show)
    place = shown_place(cli.settings.store)
    reply = {"restored": os.path.abspath(file), "store": place, **copied._asdict()}
    counts = ", ".join(f"{count:,} {name}" for name, count in copied._asdict().items())
    cli.answer(reply, lambda screen: screen.line(f"{place} is as it was: {counts}"))


@contextmanager
def _rows(verb: str) -> Iterator[Callable[[int], None]]:
    progress = Progress()
    try:
        yield lambda count: progress.show(f"{count:,} rows {verb}")
    finally:
        progress.end()
