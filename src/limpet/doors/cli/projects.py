"""`limpet project …`, `trust` and `untrust`: which memory a folder has, and what of a repository counts."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from limpet import errors, platform, settings
from limpet.doors.cli.render import Screen, shown_place
from limpet.doors.cli.run import Invocation
from limpet.home import trust as trusting
from limpet.home.folders import ID_FILE, STORE, Home, ProjectFolder, Record, write_private
from limpet.home.load import OWN, current_place, named_project, nearest, option_text, project_names, read_person
from limpet.home.place import FOLDER, GIT, locate, read_small
from limpet.memory.shared_files import NAME as MEMORY_FILES
from limpet.memory.shared_files import SharedFile, SharedFolder

Json = dict[str, Any]
SHORT = 8  # characters of an id that people see
LOCK_SECONDS = 10.0  # another command holds the lock for milliseconds
CONFIG_BYTES = 1 << 20


def _home() -> Home:
    return Home(settings.data_folder())


def _current(cli: Invocation) -> ProjectFolder:
    data = cli.settings.data
    if not isinstance(data, ProjectFolder):
        raise errors.bad_name("project", cli.settings.project, "it has no folder here")
    return data


def _row(home: Home, record: Record) -> Json:
    store = os.path.join(home.folder(record.id), STORE)
    size = os.path.getsize(store) if os.path.exists(store) else 0
    is_gone = record.kind in (GIT, FOLDER) and not os.path.exists(record.path)
    return {
        "id": record.id,
        "name": record.name,
        "kind": record.kind,
        "path": record.path,
        "gone": is_gone,
        "bytes": size,
        "folder": home.folder(record.id),
    }


# --- projects ---------------------------------------------------------------------------------------------------------


def list_projects(cli: Invocation) -> None:
    home = _home()
    rows = [_row(home, record) for record in home.records() if not record.see]

    def draw(screen: Screen) -> None:
        if not rows:
            screen.line("No project has a memory yet. The first note, or anything else that is kept, makes one.")
            return
        cells = [(row["id"][:SHORT], row["name"], f"{row['bytes']:,}", _place_of(row)) for row in rows]
        screen.table(("id", "name", "bytes", "folder"), cells)

    cli.answer({"projects": rows}, draw)


def _place_of(row: Json) -> str:
    path = str(row["path"]).removesuffix(f"{os.sep}.git")
    return f"{path} (gone: `limpet project adopt` takes its memory over)" if row["gone"] else path


def show(cli: Invocation, id: str | None) -> None:
    home = _home()
    own = _current(cli) if id is None else _named(cli, id)
    record = home.record(own.id) if own.id else None
    reply: Json = _row(home, record) if record else {"id": None, "name": own.place.name, "path": own.place.key}
    reply["root"] = own.place.root
    reply["store"] = shown_place(cli.settings.store) if id is None and not cli.settings.own_store else own.store
    reply["remarks"] = list(cli.settings.remarks) if id is None else []

    def draw(screen: Screen) -> None:
        screen.table(("", ""), [(name, str(value)) for name, value in reply.items() if name != "remarks"])
        for remark in reply["remarks"]:
            screen.line(remark)
        if record is None:
            screen.line("Nothing was kept here yet.")

    cli.answer(reply, draw)


def where(cli: Invocation) -> int:
    path = _current(cli).path
    cli.answer({"folder": path}, lambda screen: screen.line(path or "Nothing was kept here yet."))
    return 0 if path else errors.NotFound.exit_code


def adopt(cli: Invocation, id: str) -> None:
    current, other = _current(cli), _named(cli, id)
    if current.id == other.id:
        raise errors.bad_name("project", id, "it is the one you are in")
    if os.path.exists(current.store):
        raise errors.memory_in_the_way(current.place.root, (current.id or "")[:SHORT])
    current.make()
    home = _home()
    home.write(Record(str(current.id), current.place.key, current.place.kind, current.place.name, str(other.id)))
    reply = {"adopted": other.id, "folder": current.place.root}
    cli.answer(reply, lambda screen: screen.line(f"{current.place.root} has the memory of {other.place.key} now."))


def split(cli: Invocation, folder: str | None) -> None:
    paths = settings.paths(settings.process_environment())
    path = os.path.realpath(folder or locate(os.getcwd(), paths.shared).root)
    with alone(_home()):
        person = read_person(paths.config)
        if person.projects.get(path, {}).get(OWN):
            raise errors.bad_name("folder", path, "it is a project of its own already")
        if path in person.projects:
            raise errors.bad_config_file(person.path, f"it has a table for {path}; add `own = true` to it")
        _add_table(person.path, f"[projects.{json.dumps(path, ensure_ascii=False)}]\nown = true\n")
    reply = {"folder": path, "settings": person.path}
    cli.answer(reply, lambda screen: screen.line(f"{path} is a project of its own from now on ({person.path})."))


def _add_table(config: str, table: str) -> None:
    """Add a table to the person's config file, which may be a link to another file."""
    target = os.path.realpath(config)
    text = read_small(target, CONFIG_BYTES)
    if text is None and os.path.lexists(target):
        raise errors.bad_config_file(config, f"it is no plain file of at most {CONFIG_BYTES} bytes")
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    write_private(target, f"{text.rstrip()}\n\n{table}" if text and text.strip() else table)


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """Hold the lock of the data folder, for a file that is read, changed and written again."""
    path = os.path.join(home.make(), "lock")
    file = platform.here.create_file(path, new=False)
    try:
        until = time.monotonic() + LOCK_SECONDS
        while not _locked(file):
            if time.monotonic() > until:
                raise errors.home_unusable(path, "another process has held it for too long")
            time.sleep(0.01)
        yield
    finally:
        os.close(file)


def _locked(file: int) -> bool:
    try:
        return platform.here.try_lock(file)
    except OSError as problem:
        if problem.errno in platform.NO_LOCKS:
            return True  # this file system has none
        raise


def forget(cli: Invocation, id: str) -> None:
    home, own = _home(), _named(cli, id)
    record = home.record(str(own.id))
    shutil.rmtree(home.folder(str(own.id)))
    for other in list(home.records()):
        if other.see == own.id:
            shutil.rmtree(home.folder(other.id))
    if record and record.kind == GIT:
        path = os.path.join(record.path, ID_FILE)
        if (read_small(path) or "").strip() == record.id:
            os.unlink(path)
    cli.answer({"forgot": own.id}, lambda screen: screen.line(f"Everything kept of {own.place.name} was deleted."))


def _named(cli: Invocation, name: str) -> ProjectFolder:
    home, current = _home(), _current(cli)
    own = named_project(home, current, os.path.realpath(name) if os.path.isdir(name) else name)
    if own.id is None or home.record(own.id) is None:
        raise errors.unknown_project(name, nearest(name, project_names()))
    return own


# --- trust ------------------------------------------------------------------------------------------------------------


def trust(cli: Invocation, show: bool, yes: bool) -> None:
    home = _home()
    if options := _options(cli):
        for option in options if not show else ():
            trusting.trust_store(home, option, trusted=True)
        reply = {"trusted": trusting.trusted_stores(home)}
        cli.answer(reply, lambda screen: screen.block("\n".join(reply["trusted"])))
        return
    place = current_place()
    brought = trusting.read(place.root)
    shared = SharedFolder(place.root, home, place.key)
    files = [file for file in shared.read() if not file.problem]
    unseen = [file for file in files if not shared.trusts(file.digest)]
    settled = trusting.trusted_digest(home, place) == brought.digest or not brought.digest
    trusted = settled and not unseen and bool(brought.digest or files)
    rows = [*_rows(brought), *(("memory", file.name, "after trust") for file in files)]
    if brought.problem and not show:
        raise errors.not_trustable(os.path.join(place.root, trusting.FOLDER), brought.problem)
    if rows and not show and not trusted:
        _ask(cli, yes, place.root, rows, brought, unseen)
        if brought.digest:
            trusting.trust(home, place, brought.digest)
        for file in unseen:
            shared.trust(file.digest)  # exactly what was shown
        trusted = True
    reply_rows = [dict(zip(("key", "value", "counts"), row, strict=True)) for row in rows]
    answer = {"root": place.root, "trusted": trusted, "problem": brought.problem, "settings": reply_rows}
    answer["files"] = [file._asdict() for file in brought.files]
    answer["memory"] = [_memory_row(shared, file) for file in shared.read()]

    def draw(screen: Screen) -> None:
        if brought.problem:
            screen.line(f"Not read: {brought.problem}.")
        if not rows:
            screen.line(f"{place.root} brings no settings, no skills and no memory.")
            return
        screen.table(("key", "value", "counts"), rows)
        for heading, text in (*_texts(brought), *_memory_texts(files)) if show else ():
            screen.line(heading, "bold")
            screen.block(text)
        if not brought.problem:
            screen.line("All of it counts." if trusted else "`limpet trust` lets all of it count.")

    cli.answer(answer, draw)


def untrust(cli: Invocation) -> None:
    home = _home()
    if options := _options(cli):
        for option in options:
            trusting.trust_store(home, option, trusted=False)
        cli.answer({"untrusted": options}, lambda screen: screen.line("Clients may not name it any more."))
        return
    place = current_place()
    was = trusting.untrust(home, place) | SharedFolder(place.root, home, place.key).untrust()
    word = "is not trusted any more" if was else "was not trusted"
    cli.answer({"root": place.root, "untrusted": was}, lambda screen: screen.line(f"{place.root} {word}."))


def _options(cli: Invocation) -> list[str]:
    named = (("store", cli.store), ("project", cli.project))
    return [option_text(option, value) for option, value in named if value]


def _rows(brought: trusting.Repository) -> Iterator[tuple[str, str, str]]:
    _, ignored = trusting.sift(brought.config)
    for key, value in settings.flat(brought.config):
        yield key, json.dumps(value, ensure_ascii=False), "after trust" if key in ignored else "always"
    for name in brought.skills:
        yield "skill", name, "after trust"


def _texts(brought: trusting.Repository) -> Iterator[tuple[str, str]]:
    """The text of skills, each with a heading, and what is not shown of it."""
    folder = f"{trusting.FOLDER}/{trusting.SKILLS}"
    for file in brought.files[: trusting.SHOWN_FILES]:
        yield f"--- {folder}/{file.path}", file.text
        if file.characters > len(file.text):
            yield f"… {file.characters - len(file.text):,} more characters in {folder}/{file.path}", ""
    if rest := brought.files[trusting.SHOWN_FILES :]:
        yield f"… {len(rest)} more files in {folder}, {sum(file.characters for file in rest):,} characters", ""


def _memory_row(shared: SharedFolder, file: SharedFile) -> Json:
    return {"file": file.name, "key": file.key, "trusted": shared.trusts(file.digest), "problem": file.problem}


def _memory_texts(files: list[SharedFile]) -> Iterator[tuple[str, str]]:
    for file in files:
        yield f"--- {trusting.FOLDER}/{MEMORY_FILES}/{file.name}", file.content.decode("utf-8", "replace")


def _ask(
    cli: Invocation,
    yes: bool,
    root: str,
    rows: list[tuple[str, str, str]],
    brought: trusting.Repository,
    unseen: list[SharedFile],
) -> None:
    """A person decides this: an agent that runs commands must not be talked into it by the repository."""
    if yes:
        return
    if cli.json or not sys.stdin.isatty():
        raise errors.needs_a_person(f"trust in {root}", "limpet trust --show")
    for key, value, counts in rows:
        cli.notice(f"{key} = {value} ({counts})")
    for heading, text in (*_texts(brought), *_memory_texts(unseen)):
        for line in (heading, *text.splitlines()):
            cli.notice(line)
    cli.notice(f"Let all of this count in {root}? Type yes:")
    if sys.stdin.readline().strip().lower() not in ("yes", "y"):
        raise errors.needs_a_person(f"trust in {root}", "limpet trust --show")
