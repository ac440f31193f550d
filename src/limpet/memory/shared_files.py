"""Memory of a team without a server: `.limpet/memory/*.md` in the repository, one file per entry.

The files are that memory, and git merges them. A store beside the project's indexes them, so that lists, searches
and the digest read them as they read everything else; it is made again from the files whenever they change.

    ---
    key: database
    expires: 2027-01-01T00:00:00Z
    replaces: db 3f2a9c01d4e7
    ---
    We use Postgres 16.

A repository is a stranger. A file counts after the person trusted its content (`limpet trust`), or if Limpet wrote it
here; a changed one asks again. Links, other users' files, odd names, huge files and what git could not merge are left
out and named. A correction names the text that it replaces by its hash, so that a text which another person changed
meanwhile is shown again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from limpet import errors, limits, platform
from limpet.catalogue.operation import a_name
from limpet.home.trust import DIRECTORY, FILE, FOLDER
from limpet.light import TYPE_CHECKING, re
from limpet.model import AGENT, MEMORY, Draft, Entry, EntryName, Scope, Stamp, Validity, iso, milliseconds
from limpet.platform import sha256
from limpet.record import NamedTuple
from limpet.redaction import Masking
from limpet.store import DELETE, Decide, Edit, Listing
from limpet.text import safe

if TYPE_CHECKING:
    from limpet.home.folders import Home
    from limpet.store import Store

NAME = "memory"  # the folder in `.limpet`
FILES_MAX = 500
FILE_BYTES = 64 << 10
TRUSTED = "memory"  # the folder in the data folder's `trust`
LOCK_SECONDS = 10.0
BY = f"{AGENT}/files"
_HEAD = re.compile(r"---\n((?:[a-z]+: [^\n]*\n)+)---\n")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,119}\.md")
_CONFLICT = re.compile(r"^(?:<<<<<<< |>>>>>>> )", re.MULTILINE)
_FIELDS = ("key", "expires", "replaces")


class SharedFile(NamedTuple):
    """A file as it is: its entry, or why it is left out."""

    name: str
    key: str
    text: str
    expires_at: int | None
    replaces: tuple[str, str] | None  # key, and the hash of the text that was replaced
    content: bytes
    problem: str = ""

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.content)


class SharedFolder:
    """The shared files of one working tree. `project` is what its worktrees have in common."""

    def __init__(self, root: str, home: Home, project: str) -> None:
        self.root = root
        self._home = home
        self._marks = os.path.join(home.path, "trust", TRUSTED, _mark(project))
        self.scope = Scope("local", f"files-{_mark(os.path.realpath(root))[:16]}")

    @property
    def opted_in(self) -> bool:
        """Whether the person uses shared files in this project: trusted one, or had one written."""
        return os.path.isdir(self._marks)

    def opt_in(self) -> None:
        self._home.make("trust", TRUSTED, os.path.basename(self._marks))

    def trust(self, digest: str) -> None:
        """Remember a content. Each is a file of its own, so that two processes take nothing from each other."""
        self.opt_in()
        with suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(os.path.join(self._marks, digest), flags, 0o600))

    def untrust(self) -> bool:
        with suppress(FileNotFoundError):
            for name in os.listdir(self._marks):
                os.unlink(os.path.join(self._marks, name))
            os.rmdir(self._marks)
            return True
        return False

    def trusts(self, digest: str) -> bool:
        return os.path.lexists(os.path.join(self._marks, digest))

    def read(self) -> list[SharedFile]:
        """Every file, in the order of names. Nothing is followed out of the folder."""
        files: list[SharedFile] = []
        with _opened(self.root) as folder:
            if folder is None:
                return []
            for name in sorted(name for name in os.listdir(folder) if name.endswith(".md")):
                if len(files) == FILES_MAX:
                    files.append(_left_out("…", f"there are more than {FILES_MAX} files"))
                    break
                files.append(_read(folder, name))
        return _without_doubles(files)

    # --- writing ------------------------------------------------------------------------------------------------------

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of these files against other processes of Limpet."""
        path = os.path.join(self._home.make(), "shared-files.lock")
        handle = platform.here.create_file(path, new=False)
        try:
            until = time.monotonic() + LOCK_SECONDS
            while not platform.here.try_lock(handle):
                if time.monotonic() > until:
                    raise errors.home_unusable(path, "another process has held it for too long")
                time.sleep(0.01)
            yield
        finally:
            os.close(handle)

    def save(
        self, key: str, text: str, expires_at: int | None, replaces: tuple[str, str] | None, *, appended: bool = False
    ) -> None:
        """Write the file of a key, over exactly what Limpet read of it. The lock is held."""
        if Masking().text(text) != text:
            raise errors.secret_in_shared_file(key)
        before = self._of(key)
        name = before.name if before is not None else file_name(key)
        if before is not None and (appended or before.text == text):  # what it says of the text stays
            expires_at, replaces = expires_at or before.expires_at, replaces or before.replaces
        content = rendered(key, text, expires_at, replaces)
        if len(content) > FILE_BYTES:
            raise errors.too_long("content", len(content), FILE_BYTES, "Split it over several keys.")
        if why := parsed(name, content).problem:
            raise errors.no_shared_text(key, why, "change the text")
        with _opened(self.root, make=True) as folder:
            if folder is None:
                raise errors.shared_file_unusable(f"{FOLDER}/{NAME}", "it is a link, or not yours")
            temporary = f".{name}.{os.urandom(4).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                handle = os.open(temporary, flags, 0o644, dir_fd=folder)
            except OSError as problem:
                raise errors.store_read_only(f"{FOLDER}/{NAME}", problem.strerror or str(problem)) from problem
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                present = _content(folder, name)
                if present != (None if before is None else before.content):
                    raise errors.shared_file_changed(name)
                self.trust(digest_of(name, content))
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise

    def remove(self, key: str) -> None:
        """Take away the file of a key. The lock is held."""
        before = self._of(key)
        with _opened(self.root) as folder:
            if folder is None or before is None:
                return
            if _content(folder, before.name) != before.content:
                raise errors.shared_file_changed(before.name)
            os.unlink(before.name, dir_fd=folder)
            os.fsync(folder)

    def _of(self, key: str) -> SharedFile | None:
        """The file of a key. One that does not count is nobody's to write over: its text was not read."""
        own = file_name(key)
        files = self.read()
        file = next((file for file in files if file.key == key or (file.problem and file.name == own)), None)
        if file is None and len(files) >= FILES_MAX:
            raise errors.no_shared_text(key, f"there are {FILES_MAX} files already, and no more are read", "delete one")
        if file is not None and (file.problem or not self.trusts(file.digest)):
            raise errors.shared_file_left_out(file.name, file.problem or "it is new, or changed since it was trusted")
        return file


# --- the index --------------------------------------------------------------------------------------------------------


def index(store: Store, folder: SharedFolder, now: int) -> tuple[str, ...]:
    """Bring the index to what the files say. Returns what is left out, with the reason."""
    files = folder.read()
    remarks = [f"{FOLDER}/{NAME}/{file.name}: {file.problem}" for file in files if file.problem]
    readable = [file for file in files if not file.problem]
    trusted = [file for file in readable if folder.trusts(file.digest)]
    if strangers := len(readable) - len(trusted):
        verb = "is" if strangers == 1 else "are"
        remarks.append(f"{strangers} of {FOLDER}/{NAME} {verb} new or changed; `limpet trust` shows and trusts them")
    hidden = _replaced(trusted)
    listing = Listing((MEMORY,), include_done=True, include_replaced=True, limit=limits.LIST_MAX)
    present = {entry.key: entry for entry in store.entries.list(folder.scope, listing).entries}
    edits: list[Edit] = []
    for file in trusted:
        draft = _draft(file, hidden.get(file.key), present.get(file.key))
        if draft is not None:
            edits.append((MEMORY, file.key, _always(draft)))
    edits += [
        (MEMORY, key, lambda before: None if before is None else DELETE) for key in present.keys() - _keys(trusted)
    ]
    if edits:
        store.entries.edit_all(folder.scope, edits, Stamp(BY, "index_files", "", now))
    return tuple(remarks)


def _keys(files: list[SharedFile]) -> set[str]:
    return {file.key for file in files}


def _always(draft: Draft) -> Decide:
    return lambda _before: draft


def _replaced(files: list[SharedFile]) -> Mapping[str, str]:
    """The keys that a correction hides, each with its successor, if they still say what was corrected."""
    texts = {file.key: text_hash(file.text) for file in files}
    named = {
        file.replaces[0]: file.key
        for file in files
        if file.replaces and texts.get(file.replaces[0]) == file.replaces[1]
    }
    return {key: by for key, by in named.items() if key != by and named.get(by) != key}  # two that name each other hold


def _draft(file: SharedFile, by: str | None, present: Entry | None) -> Draft | None:
    """The entry of a file; None if the index has it already."""
    replaces = EntryName(MEMORY, file.replaces[0]) if file.replaces else None
    holds = Validity(replaces, EntryName(MEMORY, by) if by else None, file.expires_at)
    extra = {**holds.into({}), "file": file.name}
    if present is not None and (present.content, dict(present.extra), present.done) == (file.text, extra, bool(by)):
        return None
    return Draft(file.text, done=bool(by), extra=extra, anew=True)


# --- one file ---------------------------------------------------------------------------------------------------------


def rendered(key: str, text: str, expires_at: int | None, replaces: tuple[str, str] | None) -> bytes:
    head = [f"key: {key}"]
    head += [f"expires: {iso(expires_at)}"] if expires_at is not None else []
    head += [f"replaces: {' '.join(replaces)}"] if replaces else []
    return "\n".join(["---", *head, "---", text.rstrip("\n"), ""]).encode()


def file_name(key: str) -> str:
    """A plain name, the same on every file system, and another one for every key."""
    plain = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")[:60]
    if plain == key and plain not in ("con", "prn", "aux", "nul"):
        return f"{plain}.md"
    return f"{plain or 'entry'}-{sha256(key.encode()).hexdigest()[:8]}.md"


def text_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def digest_of(name: str, content: bytes) -> str:
    return sha256(b"%d:%s" % (len(os.fsencode(name)), os.fsencode(name)) + content).hexdigest()


def parsed(name: str, content: bytes) -> SharedFile:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return _left_out(name, "it is not UTF-8")
    if why := safe.problem(text):
        return _left_out(name, f"it has {why}")
    if _CONFLICT.search(text):
        return _left_out(name, "git could not merge it; keep what is true and take its marks out")
    head = _HEAD.match(text)
    fields = dict(line.split(": ", 1) for line in head[1].splitlines()) if head else {}
    body = (text[head.end() :] if head else text).strip("\n")
    try:
        if unknown := fields.keys() - set(_FIELDS):
            raise ValueError(f"its head names {min(unknown)!r}")
        key = a_name("key", fields.get("key", name.removesuffix(".md")), limits.KEY_MAX_CHARS)
        expires_at = milliseconds(fields["expires"]) if "expires" in fields else None
        replaces = fields["replaces"].rsplit(" ", 1) if "replaces" in fields else []
        if not body.strip() or len(body) > limits.MEMORY_MAX_CHARS or len(replaces) == 1:
            raise ValueError("it is empty, too long, or names no hash after what it replaces")
    except (ValueError, OverflowError, errors.LimpetError) as problem:
        return _left_out(name, f"it cannot be read ({problem})")
    pair = (replaces[0], replaces[1]) if replaces else None
    return SharedFile(name, key, Masking().text(body), expires_at, pair, content)


def _left_out(name: str, problem: str) -> SharedFile:
    visible = "".join(char if char.isprintable() and char not in "`<>[]#|\\\"'" else "?" for char in name)
    return SharedFile(visible[:124], "", "", None, None, b"", problem)


def _without_doubles(files: list[SharedFile]) -> list[SharedFile]:
    """Of two files that say the same key, neither counts: which one is meant is not known."""
    counts: dict[str, int] = {}
    for file in files:
        counts[file.key] = counts.get(file.key, 0) + (not file.problem)
    return [
        file._replace(problem="another file has the same key") if counts[file.key] > 1 and not file.problem else file
        for file in files
    ]


def _read(folder: int, name: str) -> SharedFile:
    if _FILE_NAME.fullmatch(name) is None:
        return _left_out(name, "its name has other characters than letters, digits, dots, blanks and dashes")
    content = _content(folder, name)
    if content is None:
        return _left_out(name, f"it is a link, belongs to another user, changes, or has over {FILE_BYTES} bytes")
    return parsed(name, content)


def _content(folder: int, name: str) -> bytes | None:
    """The bytes of a regular file of this user that did not change while it was read; None for anything else."""
    try:
        handle = os.open(name, FILE, dir_fd=folder)
    except OSError:
        return None
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode) or before.st_uid != os.geteuid() or before.st_size > FILE_BYTES:
            return None
        content = os.read(handle, FILE_BYTES + 1)
        after = os.fstat(handle)
        same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        return content if same and len(content) == after.st_size else None
    except OSError:
        return None
    finally:
        os.close(handle)


@contextmanager
def _opened(root: str, *, make: bool = False) -> Iterator[int | None]:
    """The folder of the files, opened through no link and owned by this user; None where there is none."""
    handles: list[int] = []
    try:
        try:
            handles.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            for name in (FOLDER, NAME):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o755, dir_fd=handles[-1])
                handles.append(os.open(name, DIRECTORY, dir_fd=handles[-1]))
            ours = all(os.fstat(handle).st_uid == os.geteuid() for handle in handles)
        except OSError:
            ours = False
        yield handles[-1] if ours else None
    finally:
        for handle in handles:
            os.close(handle)


def _mark(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
