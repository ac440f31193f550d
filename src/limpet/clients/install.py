"""Putting Limpet into a client's configuration and taking it out again.

Before a file is changed for the first time, its bytes are kept in a record in the user's data folder. Taking out gives
these bytes back when nobody has changed the file since; otherwise only what is ours is removed from what stands there.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from typing import Any, NamedTuple

from limpet import errors
from limpet.clients import extras
from limpet.clients.edits import Edit, Unreadable, Whole, is_ours, with_edits, without_edits
from limpet.clients.registry import Client, Where
from limpet.text.diff import unified

RECORD = "installs.json"


class Change(NamedTuple):
    """One file, as it is and as it is to be; None where there is no file."""

    path: str
    before: bytes | None
    after: bytes | None
    edits: tuple[Edit, ...]

    @property
    def needed(self) -> bool:
        return self.before != self.after


def plan_install(client: Client, where: Where, wanted: Iterable[str] = ()) -> tuple[Change, ...]:
    """What installing would do, with those extras. Raises BadInput when a file is not what its client could read."""
    found = []
    files = client.files(where)
    if wanted:
        known = extras.extras(client.name, where)
        for name in wanted:
            if name not in known:
                raise errors.no_such_extra(client.title, name, where.scope)
            files = {**files, **known[name]}
    for path, edits in files.items():
        before = _read(path)
        found.append(Change(path, before, _edited(path, before, edits), edits))
    return tuple(found)


def plan_uninstall(client: Client, where: Where, data: str) -> tuple[Change, ...]:
    """What taking out would do: the recorded bytes where the file is as we left it, else the file without our part."""
    record = _record(data)
    found = []
    files = client.files(where)
    for more in extras.present(client.name, where).values():
        files = {**files, **more}
    for path, edits in files.items():
        now = _read(path)
        kept = record.get(path)
        if now is None:
            after = None
        elif kept and hashlib.sha256(now).hexdigest() == kept["after"]:
            after = None if kept["before"] is None else base64.b64decode(kept["before"])
        else:
            after = _taken_out(path, now, edits)
        found.append(Change(path, now, after, edits))
    return tuple(found)


def apply_install(changes: Iterable[Change], data: str) -> None:
    record = _record(data)
    for change in changes:
        if change.needed and change.after is not None:
            record[change.path] = {
                "before": _way_back(change, record.get(change.path)),
                "after": hashlib.sha256(change.after).hexdigest(),
            }
            _write_record(data, record)  # before the file: a crash between the two leaves a way back, never none
            _write(change.path, change.after)


def apply_uninstall(changes: Iterable[Change], data: str) -> None:
    record = _record(data)
    for change in changes:
        if change.needed:
            _remove(change.path) if change.after is None else _write(change.path, change.after)
        if record.pop(change.path, None) is not None:
            _write_record(data, record)


def installed(client: Client, where: Where) -> bool:
    """Whether every file of the client has what we put there."""
    return all(not change.needed for change in plan_install(client, where))


# --- how --------------------------------------------------------------------------------------------------------------


def _edited(path: str, before: bytes | None, edits: tuple[Edit, ...]) -> bytes:
    try:
        return with_edits((before or b"").decode("utf-8"), edits).encode("utf-8")
    except UnicodeDecodeError as problem:
        raise errors.bad_config_file(path, f"it is not UTF-8 ({problem.reason})") from None
    except Unreadable as problem:
        raise errors.bad_config_file(path, str(problem)) from None


def _taken_out(path: str, now: bytes, edits: tuple[Edit, ...]) -> bytes | None:
    try:
        text = without_edits(now.decode("utf-8"), edits)
    except UnicodeDecodeError as problem:
        raise errors.bad_config_file(path, f"it is not UTF-8 ({problem.reason})") from None
    except Unreadable as problem:
        raise errors.bad_config_file(path, str(problem)) from None
    return text.encode("utf-8") if text.strip() else None


def _way_back(change: Change, kept: dict[str, Any] | None) -> str | None:
    """The bytes to give back one day. An older installation of ours is never among them."""
    if change.before is None:
        return None
    if kept and hashlib.sha256(change.before).hexdigest() == kept["after"]:
        first: str | None = kept["before"]
        return first
    text = change.before.decode("utf-8", "replace")
    if any(isinstance(edit, Whole) and not is_ours(text, edit) for edit in change.edits):
        return base64.b64encode(change.before).decode("ascii")
    clean = _taken_out(change.path, change.before, change.edits)
    return None if clean is None and change.before.strip() else base64.b64encode(clean or change.before).decode("ascii")


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise errors.bad_config_file(path, problem.strerror or str(problem)) from None


def _write(path: str, content: bytes) -> None:
    """Replace a file in one step, with the rights it had. A link keeps pointing to the file that is replaced."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=folder, prefix=".limpet-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(beside, os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o600)
            os.replace(beside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as problem:
        raise errors.bad_config_file(path, problem.strerror or str(problem)) from None


def _remove(path: str) -> None:
    """Remove a file of ours, and the folders that held nothing else."""
    os.unlink(path)
    folder = os.path.dirname(path)
    with contextlib.suppress(OSError):
        while True:
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def _record(data: str) -> dict[str, Any]:
    content = _read(os.path.join(data, RECORD))
    try:
        found = json.loads(content) if content else {}
    except ValueError:
        return {}  # without a record, what is ours is still found by its name
    return found if isinstance(found, dict) else {}


def _write_record(data: str, record: dict[str, Any]) -> None:
    _write(os.path.join(data, RECORD), json.dumps(record, indent=1).encode())


def shown(change: Change) -> str:
    """A change as people read changes: empty when there is none."""
    old, new = ((side or b"").decode("utf-8", "replace") for side in (change.before, change.after))
    was, is_ = (os.devnull if side is None else change.path for side in (change.before, change.after))
    return unified(old, new, before_name=was, after_name=is_)
