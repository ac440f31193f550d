"""A project as a folder of Markdown that people read and git diffs: a file per entry, conversation and output.

It is a copy to look at, without history; `export` as JSON Lines is what `import` brings back. The folder is written
again in place: a file of an earlier export whose entry is gone is deleted, and nothing else in the folder is touched.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any

from limpet import errors
from limpet.catalogue.operation import Context
from limpet.model import MESSAGE, SEALS, Entry, Output, Tombstone, iso
from limpet.outputs.read import full_text
from limpet.record import NamedTuple
from limpet.store import entry_from
from limpet.text.safe import visible
from limpet.window.messages import Message, Text
from limpet.window.transcript import message_of, position_of

MARKER = ".limpet-export"  # lists the files of an export, one a line
NAME_CHARS = 80
FOLDERS = {"memory": "memory", "state": "state", "journal": "journal"}  # of a kind; otherwise its name with an s
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_OURS = re.compile(r"[a-z_]+/[A-Za-z0-9_-][A-Za-z0-9._~-]*\.(?:md|txt)")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)


class MarkdownExport(NamedTuple):
    folder: str
    files: int
    deleted: int


def export_markdown(ctx: Context, folder: str, *, outputs: bool = True) -> MarkdownExport:
    """Write the project into an empty folder, or over an earlier export of this kind."""
    before = _claimed(folder)
    written: set[str] = set()
    for path, text in _files(ctx, outputs=outputs):
        if path not in before:
            _claim(folder, path)
        _write(folder, path, text)
        written.add(path)
    gone = [path for path in sorted(before) if path not in written and _OURS.fullmatch(path)]
    for path in gone:
        _real_folder(folder, os.path.dirname(path))
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, path))
    _write(folder, MARKER, "".join(f"{path}\n" for path in sorted(written)))
    return MarkdownExport(folder, len(written), len(gone))


# --- what is written --------------------------------------------------------------------------------------------------


def _files(ctx: Context, *, outputs: bool) -> Iterator[tuple[str, str]]:
    names: dict[str, str] = {}
    conversations: dict[str, list[Entry]] = {}
    for what, record in ctx.store.entries.dump(ctx.scope):
        if what != "entry":
            break
        entry = entry_from(record)
        if entry.kind == MESSAGE:
            conversations.setdefault(entry.session, []).append(entry)
        elif entry.kind != SEALS:
            yield _path(names, FOLDERS.get(entry.kind, f"{entry.kind}s"), entry.key), _page(entry)
    for session, entries in conversations.items():
        yield _path(names, "conversations", session), _conversation(session, entries)
    for item in ctx.store.outputs.dump(ctx.scope) if outputs else ():
        if not isinstance(item, Tombstone):
            output = item[0]
            head = _head(_about_output(output))
            yield _path(names, "outputs", output.id, "txt"), head + full_text(ctx, output.id)


def _about_output(output: Output) -> dict[str, Any]:
    about = {"id": output.id, "tool": output.tool, "call": output.call, "session": output.session}
    return {**about, "created": iso(output.created_at)}


def _page(entry: Entry) -> str:
    about: dict[str, Any] = {"key": entry.key, "session": entry.session, "tags": list(entry.tags)}
    about |= {"done": entry.done, "pinned": entry.pinned, "origin": entry.origin, "version": entry.version}
    about |= {"created": iso(entry.created_at), "updated": iso(entry.updated_at)}
    more = {name: entry.extra[name] for name in ("line", "used_by", "task") if entry.extra.get(name)}
    return _head({**about, **more}) + _ended(entry.content)


def _conversation(session: str, entries: list[Entry]) -> str:
    parts = [_head({"session": session, "messages": len(entries)})]
    for entry in sorted(entries, key=lambda entry: position_of(entry.key)):
        message = message_of(entry)
        parts.append(
            f"## {position_of(entry.key) + 1} · {message.role} · {iso(entry.created_at)}\n\n{_body(message)}\n"
        )
    return "\n".join(parts)


def _body(message: Message) -> str:
    texts = [message.text()] if message.text() else []
    texts += [f"Calls `{call.name}`:\n{_fenced(call.arguments)}" for call in message.calls()]
    for result in message.results():
        texts.append(_fenced("\n".join(part.text for part in result.parts if isinstance(part, Text))))
    return _ended("\n\n".join(texts))


def _fenced(text: str) -> str:
    """A text that is no Markdown, in a fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{_ended(text)}{fence}"


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def _head(about: dict[str, Any]) -> str:
    """What is known beside the text, as front matter: one line each, written as JSON, which is YAML too."""
    values = {name: value for name, value in about.items() if value not in ("", None, [], False)}
    return "".join(["---\n", *(f"{name}: {json.dumps(value)}\n" for name, value in values.items()), "---\n\n"])


# --- where it is written ----------------------------------------------------------------------------------------------


def _path(names: dict[str, str], folder: str, key: str, ending: str = "md") -> str:
    """A path that every file system takes and that no other key has; the key itself is in the file."""
    name = _UNSAFE.sub("-", key).strip(".-")[:NAME_CHARS]
    path = f"{folder}/{name}.{ending}"
    if name != key or _RESERVED.match(name) or names.setdefault(path.lower(), key) != key:
        path = f"{folder}/{name or '_'}~{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.{ending}"
        path = path if _OURS.fullmatch(path) and not _RESERVED.match(name) else path.replace("/", "/_", 1)
    return path


def _claimed(folder: str) -> frozenset[str]:
    """The files of an earlier export in the folder. A folder with anything else in it is refused."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    marker = os.path.join(folder, MARKER)
    if os.path.isfile(marker) and not os.path.islink(marker):
        with open(marker, encoding="utf-8", errors="replace") as file:
            return frozenset(file.read().splitlines())
    if os.listdir(folder):
        raise errors.folder_in_use(folder)
    return frozenset()


def _claim(folder: str, path: str) -> None:
    """List a new file as the export's before it is written. One that is there already is somebody else's."""
    if os.path.lexists(os.path.join(folder, path)):
        raise errors.target_in_export(os.path.join(folder, path))
    with open(os.path.join(folder, MARKER), "a", encoding="utf-8", newline="\n") as file:
        file.write(f"{path}\n")


def _real_folder(folder: str, name: str) -> str:
    """A folder in the export, which is no link that leads out of it."""
    path = os.path.join(folder, name)
    if os.path.islink(path):
        raise errors.folder_in_use(path)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def _write(folder: str, path: str, text: str) -> None:
    target = os.path.join(_real_folder(folder, os.path.dirname(path)), os.path.basename(path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
            file.write(visible(text).encode("utf-8", "surrogatepass"))
    except OSError as problem:
        raise errors.store_read_only(target, problem.strerror or str(problem)) from problem
