"""`limpet export`, `import`, `backup`, `restore` and `index`: a project as JSON Lines, a store as a file, its vectors.

`import` also takes in transcripts of coding agents, and what other memory tools keep.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from limpet import clients, errors, limits, settings, wiring
from limpet.api import Limpet
from limpet.catalogue.operation import masked_json
from limpet.doors.cli import render
from limpet.doors.cli.commands import Misuse
from limpet.doors.cli.render import Screen, shown_place
from limpet.doors.cli.run import Invocation
from limpet.home.trust import FOLDER
from limpet.importers import chats, conversations, facts, memory_tools
from limpet.importers import transcripts as transcript_files
from limpet.importers.transcripts import Transcript
from limpet.model import Scope
from limpet.recall import embeddings
from limpet.redaction import Masking
from limpet.session import sessions
from limpet.upkeep import markdown as markdown_folder
from limpet.upkeep.export import several
from limpet.window.messages import USER

Json = dict[str, Any]
TOOLS = tuple(memory_tools.READERS)
CLIENTS = {client.name: client for client in clients.every() if client.has_transcripts}
INDEX_TEXTS = 32  # between two looks at the progress
PROGRESS_AFTER_SECONDS = 0.5  # shorter work is over before a person wonders
PROGRESS_EVERY_SECONDS = 0.2


# --- export and import ------------------------------------------------------------------------------------------------


def export(cli: Invocation, file: str, force: bool, without_outputs: bool, markdown: str | None) -> None:
    if markdown is not None:
        if file != "-" or force:
            raise Misuse("--markdown names the folder to write; no file goes with it.")
        _export_markdown(cli, markdown, outputs=not without_outputs)
        return
    if file != "-" and not force and os.path.lexists(file):
        raise errors.target_exists(file)
    if file == "-" and sys.stdout.isatty():
        raise Misuse("This would fill the screen. Name a file, or send it through a pipe: limpet export | less")
    lines = (render.quiet_json(line) for line in cli.hold.export_lines(outputs=not without_outputs))
    if file == "-":
        with counted(lines, "written", quiet=sys.stdout.isatty()) as counting:
            for line in counting:
                render.to_stdout(line)
        return
    with counted(lines, "written") as counting:
        count = _write_file(file, counting, force=force)
    reply = {"export": os.path.abspath(file), "lines": count}
    cli.answer(reply, lambda screen: screen.line(f"{reply['export']} written ({count:,} lines)"))


def _export_markdown(cli: Invocation, folder: str, *, outputs: bool) -> None:
    written = markdown_folder.export_markdown(cli.hold.context(), os.path.abspath(folder), outputs=outputs)
    gone = f", {written.deleted:,} of an earlier export deleted" if written.deleted else ""
    cli.answer(
        written._asdict(), lambda screen: screen.line(f"{written.folder}: {written.files:,} files written{gone}")
    )


def import_(
    cli: Invocation, file: str, source: str | None, merge: bool, exact: bool, every: bool, dry_run: bool
) -> None:
    if exact and (merge or source is not None):
        raise Misuse("--exact goes with one export, into an empty project.")
    if file == "transcript" and (source is not None or not os.path.exists(file)):
        if merge or source is None:
            raise Misuse("import transcript takes a file or an agent's name, and no --merge.")
        _import_transcripts(cli, source, every=every, dry_run=dry_run)
        return
    if file == "store" and source is not None:
        if merge or every or cli.session or dry_run:
            raise Misuse("import store takes the file of a store, and nothing else.")
        _import_store(cli, source)
        return
    if file in chats.APPS and (source is not None or not os.path.exists(file)):
        if merge or every or cli.session or source is None:
            raise Misuse(f"import {file} takes the file of an export, and at most --dry-run.")
        _import_chats(cli, file, source, dry_run=dry_run)
        return
    if file in TOOLS and (source is not None or not os.path.exists(file)):
        if merge or every or cli.session or source is None:
            raise Misuse(f"import {file} takes the place where it keeps things, and at most --dry-run.")
        _import_memory(cli, file, source, dry_run=dry_run)
        return
    if source is not None:
        raise errors.no_import(file, ", ".join(("transcript", "store", *chats.APPS, *TOOLS)))
    if every or dry_run or cli.session:
        raise Misuse("One file is read; --session, --all and --dry-run go with `import transcript`.")
    if file != "-" and not os.path.lexists(file):
        raise errors.no_import(file, ", ".join(("transcript", "store", *chats.APPS, *TOOLS)))
    hold, masking = cli.hold, Masking(cli.keep_secret)
    with _source(file) as stream, counted(_read_lines(stream), "read") as lines:
        count = hold.import_lines(lines, merge=merge, exact=exact, masking=masking)
    reply = {"imported": count, "project": hold.scope.project, **masked_json(masking)}
    cli.say_masked(reply)
    cli.answer(reply, lambda screen: screen.line(f"{count:,} entries imported into project {hold.scope.project}"))


def _import_store(cli: Invocation, source: str) -> None:
    """Take the entries of another store in as data. It may come from anybody, so a private copy is opened."""
    _refuse_link(source)
    masking = Masking(cli.keep_secret)
    with closing(wiring.open_foreign(source)) as other:
        scopes = [Scope(settings.TENANT, project) for project in other.projects(settings.TENANT)]
        exports = (Limpet(other, scope).export_lines() for scope in scopes)
        with closing(several(exports)) as lines:
            count = cli.hold.import_lines(lines, merge=True, masking=masking)
    reply = {"imported": count, "project": cli.settings.name, **masked_json(masking)}
    cli.say_masked(reply)
    cli.answer(reply, lambda screen: screen.line(f"{count:,} entries of {source} taken in, with the origin import"))


def _refuse_link(path: str) -> None:
    """A repository's own folder comes from its author, whose link could lead to a file of another project."""
    at = Path(path).absolute()
    inside = at.parts.index(FOLDER) if FOLDER in at.parts else len(at.parts)
    places = [Path(*at.parts[: count + 1]) for count in range(inside, len(at.parts))]
    for place in (*places, *(Path(f"{at}{suffix}") for suffix in ("-wal", "-shm") if places)):
        if place.is_symlink():
            raise errors.foreign_store(
                path, f"{place.name} is a link, and a repository's own files are read, not its links"
            )


def _source(file: str) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    _refuse_link(file)
    try:
        return open(file, "rb")
    except OSError as problem:
        raise errors.bad_import(1, f"{file} cannot be opened ({problem.strerror})") from None


def _write_file(target: str, lines: Iterable[str], *, force: bool) -> int:
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


# --- backup and restore -----------------------------------------------------------------------------------------------


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


def distribute(cli: Invocation, *, dry_run: bool) -> None:
    planned = cli.hold.store.distribute(dry_run=dry_run)
    place, servers = shown_place(cli.settings.store), ", ".join(planned.servers)

    def draw(screen: Screen) -> None:
        if not planned.tables:
            screen.line(f"{place} is distributed already: {planned.done} tables, by tenant, over {servers}")
            return
        screen.table(("table", "rows"), [(name, f"{count:,}") for name, count in planned.tables])
        what = "would be distributed" if dry_run else "are distributed"
        screen.line(f"{len(planned.tables)} tables of {place} {what} by tenant, over {servers}")

    cli.answer({"store": place, "dry_run": dry_run, **planned._asdict(), "tables": dict(planned.tables)}, draw)


@contextmanager
def _rows(verb: str) -> Iterator[Callable[[int], None]]:
    progress = Progress()
    try:
        yield lambda count: progress.show(f"{count:,} rows {verb}")
    finally:
        progress.end()


# --- progress ---------------------------------------------------------------------------------------------------------


class Progress:
    """Shows a count now and then. `end` finishes the line if one was begun."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._began = self._last = time.monotonic()
        self._quiet = quiet or not sys.stderr.isatty()
        self._text = ""

    def show(self, text: str) -> None:
        now = time.monotonic()
        self._text = text
        if not self._quiet and now - self._began > PROGRESS_AFTER_SECONDS and now - self._last > PROGRESS_EVERY_SECONDS:
            self._last = now
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    def end(self) -> None:
        if self._last != self._began:
            sys.stderr.write(f"\r{self._text}\n")
            self._last = self._began


@contextmanager
def counted(lines: Iterable[str], verb: str, *, quiet: bool = False) -> Iterator[Iterable[str]]:
    """The same lines, counted as they are used."""
    counting = _count(lines, verb, quiet)
    try:
        yield counting
    finally:
        counting.close()  # now, and not when it is collected: the line must end before the next message


def _count(lines: Iterable[str], verb: str, quiet: bool) -> Generator[str]:
    progress = Progress(quiet=quiet)
    try:
        for count, line in enumerate(lines, 1):
            progress.show(f"{count:,} lines {verb}")
            yield line
    finally:
        progress.end()


def _read_lines(source: BinaryIO) -> Iterator[str]:
    """Lines as text. An endless one is read no further than needed to say that it is too long."""
    most = 4 * limits.IMPORT_LINE_MAX_BYTES + 4  # no character takes more than four bytes
    while line := source.readline(most):
        yield line.decode("utf-8", "surrogateescape").removesuffix("\n")


# --- transcripts ------------------------------------------------------------------------------------------------------


def _import_transcripts(cli: Invocation, source: str, *, every: bool, dry_run: bool) -> None:
    masking = Masking(cli.keep_secret)
    rows = [_transcript(cli, path, dry_run, masking) for path in _files(source, cli.settings.root, every)]

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

    reply: Json = {"dry_run": dry_run, "sessions": rows, **masked_json(masking)}
    cli.say_masked(reply)
    cli.answer(reply, draw)


def _transcript(cli: Invocation, path: str, dry_run: bool, masking: Masking) -> Json:
    try:
        with open(path, "rb") as file, counted(_read_lines(file), "read") as lines:
            transcript = transcript_files.read(lines)
    except OSError as problem:
        raise errors.not_a_transcript(path, problem.strerror or "it cannot be read", list(CLIENTS)) from None
    if not transcript.client:
        raise errors.not_a_transcript(path, f"none of its {transcript.lines:,} lines is known", list(CLIENTS))
    session = cli.session or transcript.session or Path(path).stem
    progress = Progress()
    added = _add_conversation(cli, session, transcript, dry_run, masking, progress)
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


def _add_conversation(
    cli: Invocation, session: str, talk: Transcript, dry_run: bool, masking: Masking, progress: Progress
) -> conversations.Imported:
    """Its messages with their times, and its title."""
    ctx, total = cli.hold.context(session, "import", masking), len(talk.messages)
    added = conversations.add_messages(
        ctx,
        talk.messages,
        talk.times,
        dry_run=dry_run,
        progress=lambda count: progress.show(f"{count:,} of {total:,} messages kept"),
    )
    if not dry_run:
        requests = (message.text() for message in talk.messages if message.role == USER)
        sessions.name_session(ctx, talk.title or next(requests, ""), max(talk.times, default=0))
    return added


# --- chats ------------------------------------------------------------------------------------------------------------


def _import_chats(cli: Invocation, app: str, source: str, *, dry_run: bool) -> None:
    """Take every conversation of a chat program's export in, each as a session."""
    masking, progress = Masking(cli.keep_secret), Progress()
    totals = conversations.Imported(0, 0, 0)
    talks, unread = chats.read(app, source)
    for count, talk in enumerate(talks, 1):
        added = _add_conversation(cli, talk.session, talk, dry_run, masking, Progress(quiet=True))
        totals = conversations.Imported(*map(sum, zip(totals, added, strict=True)))
        progress.show(f"{count:,} of {len(talks):,} conversations kept")
    progress.end()
    reply: Json = {
        "app": app,
        "source": os.path.abspath(source),
        "project": cli.hold.scope.project,
        "dry_run": dry_run,
        "sessions": len(talks),
        **totals._asdict(),
        "unread": [part._asdict() for part in unread[: limits.UNREAD_NAMED]],
        "unread_count": len(unread),
        **({} if dry_run else masked_json(masking)),
    }

    def draw(screen: Screen) -> None:
        would = "would be added" if dry_run else "added"
        screen.line(
            f"{source}: {len(talks):,} conversations, {totals.messages:,} messages {would} to project "
            f"{reply['project']}, {totals.known:,} were there already"
        )
        for part in reply["unread"]:
            screen.line(f"  {part['part']} was not read: {part['why']}")
        _more(screen, reply["unread_count"] - len(reply["unread"]))

    cli.say_masked(reply)
    cli.answer(reply, draw)


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
    """Whether the session worked in the project's folder or below it. One client stores the folder's SHA-256."""
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
    return (
        _read_lines(file) if first.strip() in (b"{", b"[") else islice(_read_lines(file), limits.TRANSCRIPT_HEAD_LINES)
    )


# --- vectors ----------------------------------------------------------------------------------------------------------


def index(cli: Invocation) -> None:
    """Embed every text of the project that has no vector of the best model there is."""
    ctx = cli.hold.context()
    models = ctx.embeddings.models() if ctx.embeddings else None
    best = models.best() if models else None
    if models is not None and models.problem is not None:
        raise models.problem
    if best is None:
        raise errors.no_model()
    before = ctx.store.vectors.state(ctx.scope).model
    anew = before not in ("", best.model.name)
    if anew:
        cli.notice(f"the vectors were of {embeddings.label_of(before)}; every text is embedded anew.")
    progress, count, began = Progress(), 0, time.monotonic()
    while batch := embeddings.catch_up(best, ctx.store, ctx.scope, INDEX_TEXTS):
        count += batch
        left = ctx.store.vectors.state(ctx.scope).waiting
        seconds = int(left * (time.monotonic() - began) / count)
        progress.show(f"{count:,} texts embedded, {left:,} left, about {seconds // 60}:{seconds % 60:02} minutes ")
    progress.end()
    left = ctx.store.vectors.state(ctx.scope).waiting
    reply: Json = {"model": best.model.label, "kind": best.model.kind, "embedded": count, "left": left}
    if left:
        cli.notice(f"{left:,} texts are left to another process that embeds them, or were written meanwhile.")
    cli.answer(
        reply, lambda screen: screen.line(f"{count:,} texts embedded with {best.model.label} ({best.model.kind})")
    )


# --- other memory tools -----------------------------------------------------------------------------------------------


def _import_memory(cli: Invocation, tool: str, source: str, *, dry_run: bool) -> None:
    """Take what another memory tool keeps into this project's memory."""
    memory = memory_tools.read(memory_tools.READERS[tool], source)
    progress, masking = Progress(), Masking(cli.keep_secret)
    added = facts.add_facts(
        cli.hold.context(by="import/peer", masking=masking),
        memory.facts,
        dry_run=dry_run,
        progress=lambda count, total: progress.show(f"{count:,} of {total:,} kept"),
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
        **({} if dry_run else masked_json(masking)),
    }
    cli.say_masked(reply)
    cli.answer(reply, lambda screen: _draw_memory(screen, reply))


def _draw_memory(screen: Screen, reply: Json) -> None:
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
