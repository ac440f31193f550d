"""The person's data folder, and the folder of each project in it.

    projects/<id>/project.json    what the project is: its path, kind and name, or where its memory went (adopt)
    projects/<id>/limpet.db       the store, made by the first write
    trust/                        what the person has trusted
    shown/                        sessions that were shown a handoff and have not worked since
    hooks.log                     what went wrong in hooks

The id of a git repository is random and kept in a file in its common git directory, written with the first write. It
counts if this data folder has a record of it: an id that came with an archive means nothing here. Everything else, and
a repository whose id cannot be written, is known by its real path. A copy of a repository has the id of the original,
which is still at the path in the record, so the copy is known by its path too. Where the original is gone, the
repository was moved, and keeps its memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from limpet import errors
from limpet.home.place import GIT, NAMED, PERSONAL, Place, read_small, worktree
from limpet.light import json
from limpet.model import MAIN_LINE
from limpet.platform import sha256
from limpet.record import NamedTuple

ID_FILE = "limpet-id"
RECORD = "project.json"
STORE = "limpet.db"
OFF = "off"  # a file of this name in a project's folder: hooks do nothing in the project
ID_CHARS = 32
RECORD_BYTES = 64 << 10
NEW = "new"  # in place of the id of a project that has none yet


class Record(NamedTuple):
    """What the data folder knows of a project."""

    id: str
    path: str  # the common git directory, the folder, or the name
    kind: str
    name: str
    see: str = ""  # the id of the project whose memory is used instead


class Home:
    """The data folder of the user who runs this."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def check(self, person_home: str) -> None:
        """Refuse a data folder that belongs to another user, as under sudo with the user's home."""
        if os.name != "posix":
            return
        for path in (self.path, person_home):
            try:
                owner = os.stat(path).st_uid
            except OSError:
                continue
            if owner != os.geteuid() and (path == self.path or os.geteuid() == 0):
                raise errors.foreign_home(path, owner, os.geteuid())
            return

    def make(self, *names: str) -> str:
        """A folder in here with mode 0700 under any umask."""
        path = self.path
        _make_private(path, parents=True)
        for name in names:
            path = os.path.join(path, name)
            _make_private(path)
        return path

    def folder(self, id: str) -> str:
        return os.path.join(self.path, "projects", id)

    def record(self, id: str) -> Record | None:
        text = read_small(os.path.join(self.folder(id), RECORD), RECORD_BYTES)
        try:
            value = json.loads(text or "null")
            return Record(id, *(str(value.get(name, "")) for name in Record._fields[1:])) if value else None
        except (ValueError, AttributeError):
            return None

    def records(self) -> Iterator[Record]:
        with suppress(OSError):
            for id in sorted(os.listdir(os.path.join(self.path, "projects"))):
                if record := self.record(id):
                    yield record

    def write(self, record: Record) -> str:
        folder = self.make("projects", record.id)
        content = {name: value for name, value in record._asdict().items() if value}
        write_private(os.path.join(folder, RECORD), json.dumps(content, indent=1) + "\n")
        return folder


class ProjectFolder:
    """The folder of one project. Looking changes nothing; `make` makes it, and gives a git repository its id."""

    def __init__(self, home: Home, place: Place, id: str | None = None) -> None:
        self.home = home
        self.place = place
        self.moved_from = ""  # the path in the record, where the repository is no longer there
        self.id = id or self._find()

    @property
    def path(self) -> str | None:
        """The folder, or None if nothing was ever written. Another process may have made it since."""
        if self.id is None:
            self.id = self._find()
        return self.home.folder(self.id) if self.id and self.home.record(self.id) else None

    @property
    def store(self) -> str:
        """Where the store is, or will be."""
        return os.path.join(self.home.folder(self.id or NEW), STORE)

    @property
    def label(self) -> str:
        """A name for a store that many projects share: the same for all worktrees, another for every other folder."""
        if self.place.kind == NAMED:
            return self.place.key
        if self.place.kind == PERSONAL:
            return f"{PERSONAL}-{_digest(self.home.path)[:8]}"
        return f"{self.place.name[:40]}-{_digest(self.place.key)[:8]}"

    @property
    def line(self) -> str:
        name = worktree(self.place)
        return f"worktree {name}" if name == MAIN_LINE else name or MAIN_LINE

    def make(self) -> str:
        if self.id is None:
            return self._begin()
        record = self.home.record(self.id)
        if record is None or self.moved_from:
            self.moved_from = ""
            return self.home.write(self._record(self.id))
        return self.home.folder(self.id)

    # --- which one ----------------------------------------------------------------------------------------------------

    def _find(self) -> str | None:
        if self.place.kind == PERSONAL:
            return self._followed(PERSONAL)
        written = _read_id(self.place.key) if self.place.kind == GIT else ""
        by_path = _digest(f"{self.place.kind}\0{self.place.key}\0{written or ''}")
        if self.home.record(by_path) or self.place.kind != GIT:
            return self._followed(by_path)
        if written == "":
            return None if _is_ours(self.place.key) else by_path
        record = self.home.record(written) if written else None
        if record is None:
            return by_path  # an id that this data folder did not give
        if record.path != self.place.key and record.kind == GIT:
            if _read_id(record.path) == written:
                return by_path  # a copy: the original is still there
            self.moved_from = record.path
        return self._followed(record.id)

    def _followed(self, id: str) -> str:
        record = self.home.record(id)
        return record.see if record and record.see else id

    def _record(self, id: str) -> Record:
        return Record(id, self.place.key, self.place.kind, self.place.name)

    def _begin(self) -> str:
        """Choose an id and write it into the repository, unless another process was faster."""
        new = os.urandom(ID_CHARS // 2).hex()
        folder = self.home.write(self._record(new))  # before the id, which does not count without a record
        try:
            _write_id(self.place.key, new)
            self.id = new
            return folder
        except OSError as problem:
            _remove(folder)
            lost_race = isinstance(problem, FileExistsError)
            self.id = (self._find() if lost_race else None) or _digest(f"{GIT}\0{self.place.key}\0")
            return self.make()


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:ID_CHARS]


def _is_ours(path: str) -> bool:
    """Whether the id of a repository can be written. Root could write it in another user's, and does not."""
    try:
        return os.name != "posix" or (os.stat(path).st_uid == os.geteuid() and os.access(path, os.W_OK))
    except OSError:
        return False


def _read_id(common: str) -> str | None:
    """The id in a repository: "" if there is none, None if what is there is no id."""
    path = os.path.join(common, ID_FILE)
    if not os.path.lexists(path):
        return ""
    text = (read_small(path) or "").strip()
    is_id = len(text) == ID_CHARS and not text.strip("0123456789abcdef")
    return text if is_id else None


def _write_id(common: str, id: str) -> None:
    """All of the file or nothing, and not in place of another one."""
    path = os.path.join(common, ID_FILE)
    temporary = f"{path}.{id[:8]}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, f"{id}\n".encode())
        os.fsync(handle)
        os.link(temporary, path)
    finally:
        os.close(handle)
        os.unlink(temporary)
    _sync_folder(common)


# --- private files ----------------------------------------------------------------------------------------------------


def _make_private(path: str, *, parents: bool = False) -> None:
    """Make a folder with mode 0700, or check that the one that is there is no link and belongs to this user."""
    try:
        if parents:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)  # a umask can also take rights from the owner
        _sync_folder(os.path.dirname(path))
        return
    except FileExistsError:
        pass
    except OSError as problem:
        raise errors.home_unusable(path, problem.strerror or str(problem)) from problem
    info = os.lstat(path)
    if not parents and stat.S_ISLNK(info.st_mode):
        raise errors.not_ours(path, "it is a link")
    if not os.path.isdir(path):
        raise errors.not_ours(path, "it is not a folder")
    if os.name == "posix" and os.stat(path).st_uid != os.geteuid():
        raise errors.not_ours(path, "it belongs to another user")


def write_private(path: str, text: str) -> None:
    """Replace a file as a whole, so that a crash leaves the old text or the new one."""
    temporary = f"{path}.{os.urandom(4).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(temporary, flags, 0o600)
        try:
            os.fchmod(handle, 0o600)  # a umask can also take rights from the owner
            content = text.encode("utf-8", "surrogateescape")
            while content:  # a disk that is nearly full takes a part, and the next write is the error
                content = content[os.write(handle, content) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
    except OSError as problem:
        with suppress(OSError):
            os.unlink(temporary)
        raise errors.home_unusable(path, problem.strerror or str(problem)) from problem
    _sync_folder(os.path.dirname(path))


def _sync_folder(path: str) -> None:
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove(folder: str) -> None:
    with suppress(OSError):
        os.unlink(os.path.join(folder, RECORD))
        os.rmdir(folder)
