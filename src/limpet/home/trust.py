"""What a repository says, and how much of it is believed.

`.limpet/config.toml` and the skills in `.limpet/skills` come with a clone. HARMLESS names the keys that count as they
are. Everything else counts after the person has seen and trusted it; the hash of what was seen is remembered, so a
change asks again. In a folder of another user all of it is ignored. Nothing is read through a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from limpet import errors, settings
from limpet.home.folders import STORE, Home, write_private
from limpet.home.place import Place, read_small
from limpet.light import Any, json, re
from limpet.model import EMPTY
from limpet.platform import sha256
from limpet.record import NamedTuple

FOLDER = ".limpet"
CONFIG = "config.toml"
SKILLS = "skills"
STORES = "stores"
OPTION_BYTES = 64 << 10  # of a store or project that a client may name
CONFIG_BYTES = 16 << 10  # of a configuration; a person has to read it before trusting it
MOST_LEVELS = 6  # of tables; the deepest key is outputs.tools."pattern".keep
# Of a repository's skills, which every hook compares with what was trusted:
SKILL_FILES = 500
SKILL_FOLDERS = 500
SKILL_LEVELS = 16
SKILL_BYTES = 1 << 20
SHOWN_CHARS = 4_000  # of each of these files, before a person decides
SHOWN_FILES = 10
SKILLS_BYTES = 8 << 20  # of all together
NAME_CHARS = 60
JOURNAL_CHARS = 200
PREVIEW_TOKENS = range(50, 1_001)
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Config = dict[str, Any]


def _plain_name(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(rf"[\w][\w .,+-]{{0,{NAME_CHARS - 1}}}", value) is not None


def _journal_file(value: object) -> bool:
    """A Markdown file inside the project: neither above it, nor in a folder that tools keep their own things in."""
    if not isinstance(value, str) or not value.endswith(".md") or "\\" in value or ":" in value:
        return False
    if not value.isprintable() or len(value) > JOURNAL_CHARS:  # it is named in messages
        return False
    return not any(part in ("", "..") or part.startswith(".") for part in value.split("/"))


def _preview_tokens(value: object) -> bool:
    return type(value) is int and value in PREVIEW_TOKENS


# Each with its check and why it does no harm with any value that passes.
HARMLESS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "name": (_plain_name, "a short name for people, of plain characters"),
    "journal.file": (_journal_file, "a Markdown file inside the repository, which its author could write anyway"),
    "outputs.preview_length": (_preview_tokens, "between 50 and 1,000 tokens: it costs little and hides nothing"),
}


class SkillFile(NamedTuple):
    """A file of a skill, as a person reads it before trusting it."""

    path: str  # from .limpet/skills
    text: str  # its beginning; empty for all but the first files
    characters: int


class Repository(NamedTuple):
    """What a repository brings."""

    config: Mapping[str, Any] = EMPTY
    digest: str = ""  # of everything below; "" when it brings nothing, or when there is a problem: no trust then
    skills: tuple[str, ...] = ()  # names of the folders in .limpet/skills
    store: bool = False  # there is a store in .limpet; it is not used
    problem: str = ""  # why it, or a part of it, is not read
    files: tuple[SkillFile, ...] = ()  # of the skills


class Belief(NamedTuple):
    """What counts of it."""

    config: Mapping[str, Any] = EMPTY
    skills: bool = False  # whether its skills are used
    ignored: tuple[str, ...] = ()  # keys, and "skills"
    changed: bool = False  # it was trusted, and is not what was trusted any more
    digest: str = ""
    problem: str = ""
    store: bool = False


def believe(home: Home, place: Place) -> Belief:
    """What of the repository's files counts now."""
    brought = read(place.root)
    trusted = trusted_digest(home, place)
    if trusted == brought.digest != "":
        return Belief(brought.config, bool(brought.skills), digest=brought.digest, store=brought.store)
    harmless, ignored = sift(brought.config)
    if brought.skills:
        ignored = (*ignored, SKILLS)
    return Belief(harmless, False, ignored, bool(trusted), brought.digest, brought.problem, brought.store)


def sift(config: Mapping[str, Any]) -> tuple[Config, tuple[str, ...]]:
    """The harmless part of a configuration, and the names of the other keys."""
    harmless: Config = {}
    ignored: list[str] = []
    for key, value in settings.flat(config):
        rule = HARMLESS.get(key)
        if rule is None or not rule[0](value):
            ignored.append(key)
            continue
        table = harmless
        *tables, last = key.split(".")
        for name in tables:
            table = table.setdefault(name, {})
        table[last] = value
    return harmless, tuple(ignored)


# --- what the person has trusted --------------------------------------------------------------------------------------


def trusted_digest(home: Home, place: Place) -> str:
    try:
        value = json.loads(read_small(_record(home, place)) or "{}")
        return str(value.get("digest", "")) if value.get("key") == place.key else ""
    except (ValueError, AttributeError):
        return ""


def trust(home: Home, place: Place, digest: str) -> None:
    home.make("trust")
    write_private(_record(home, place), json.dumps({"key": place.key, "digest": digest}, indent=1) + "\n")


def untrust(home: Home, place: Place) -> bool:
    try:
        os.unlink(_record(home, place))
        return True
    except FileNotFoundError:
        return False


def trusted_stores(home: Home) -> list[str]:
    """The stores and projects that configurations of clients may name."""
    folder = os.path.join(home.path, "trust", STORES)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    texts = (read_small(os.path.join(folder, name), OPTION_BYTES) for name in names if "." not in name)
    return sorted(text for text in texts if text)


def trust_store(home: Home, named: str, *, trusted: bool) -> None:
    """Remember that clients may be configured with this store or project, or forget it.

    Each is a file of its own, so that two processes at once take nothing from each other.
    """
    folder = home.make("trust", STORES)
    path = os.path.join(folder, _mark(named))
    if trusted:
        write_private(path, named)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)


def tell_once(home: Home, what: str) -> bool | None:
    """Whether this is said for the first time; None if that cannot be remembered. It counts as said from now on."""
    try:
        folder = home.make("told")
        os.close(os.open(os.path.join(folder, _mark(what)), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return True
    except FileExistsError:
        return False
    except (OSError, errors.LimpetError):
        return None


def _record(home: Home, place: Place) -> str:
    return os.path.join(home.path, "trust", f"{_mark(place.key)}.json")


def _mark(text: str) -> str:
    """A file name made from a text."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


# --- reading what is there --------------------------------------------------------------------------------------------


def read(root: str) -> Repository:
    """What is in `.limpet` of a folder, read relative to open directories and through no link."""
    if not os.path.lexists(os.path.join(root, FOLDER)):
        return Repository()
    handles: list[int] = []
    try:
        handles.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        handles.append(os.open(FOLDER, DIRECTORY, dir_fd=handles[0]))
        for handle in handles:
            if os.fstat(handle).st_uid != os.geteuid():
                return Repository(problem="it belongs to another user")
        return _read_folder(handles[-1])
    except OSError:
        return Repository(problem=f"{FOLDER} is a link, or cannot be read")
    finally:
        for handle in handles:
            os.close(handle)


class ContentHash:
    """Of what a repository brings. Every part follows its length, so that no content can pass for other parts."""

    def __init__(self) -> None:
        self._hash = sha256()

    def add(self, *parts: bytes) -> None:
        for part in parts:
            self._hash.update(b"%d:" % len(part) + part)

    def value(self) -> str:
        return self._hash.hexdigest()


def _read_folder(folder: int) -> Repository:
    digest = ContentHash()
    content = _content(folder, CONFIG, CONFIG_BYTES)
    config: Mapping[str, Any] = EMPTY
    problem = ""
    if content is not None:
        digest.add(b"config", content)
        try:
            config = parse(content)
        except ValueError as why:  # a mistake in a clone must not keep people from working in it
            # The place alone: the sentence may quote what the author of the file wrote.
            where = re.search(r"at line \d+, column \d+|at end of document|nested too deeply", str(why))
            problem = f"{CONFIG} is not TOML{f' ({where[0]})' if where else ''}"
    elif _is_there(folder, CONFIG):
        problem = f"{CONFIG} is a link, belongs to another user, or is larger than {CONFIG_BYTES} bytes"
    try:
        files = _skills(folder, digest)
    except ValueError as why:
        files, problem = (), problem or str(why)
    skills = tuple(sorted({file.path.partition(os.sep)[0] for file in files}))
    can_be_trusted = bool(config or skills) and not problem
    value = digest.value() if can_be_trusted else ""
    return Repository(config, value, skills, _is_there(folder, STORE), problem, files)


def parse(content: bytes) -> Config:
    import tomllib  # late: most projects have no configuration

    try:
        config = tomllib.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level: list[Any] = [config]
    for _ in range(MOST_LEVELS):
        level = [value for table in level for value in table.values() if isinstance(value, dict)]
    if level:
        raise ValueError("it is nested too deeply")
    return config


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        return True
    except OSError:
        return False


def _content(folder: int, name: str, most: int) -> bytes | None:
    """A regular file of this user; None for anything else."""
    try:
        handle = os.open(name, FILE, dir_fd=folder)
    except OSError:
        return None
    try:
        info = os.fstat(handle)
        is_plain = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and info.st_size <= most
        return os.read(handle, most + 1) if is_plain else None
    except OSError:
        return None
    finally:
        os.close(handle)


def _skills(folder: int, digest: ContentHash) -> tuple[SkillFile, ...]:
    """The files in `.limpet/skills`. Every one goes into the digest as a whole; ValueError if one cannot."""
    if not _is_there(folder, SKILLS):
        return ()
    if not stat.S_ISDIR(os.stat(SKILLS, dir_fd=folder, follow_symlinks=False).st_mode):
        raise ValueError("its skills are not a folder")  # opening a pipe would wait for a writer
    skills: list[SkillFile] = []
    try:
        for relative, content in _skill_files(folder):
            digest.add(b"skill", os.fsencode(relative), content)
            text = content.decode("utf-8", "replace")
            skills.append(SkillFile(relative, text[:SHOWN_CHARS] if len(skills) < SHOWN_FILES else "", len(text)))
    except OSError as problem:
        raise ValueError(f"its skills cannot be read ({problem.strerror})") from None
    return tuple(skills)


def _skill_files(folder: int) -> Iterator[tuple[str, bytes]]:
    """Every file with its path below the skills. ValueError for a link, or for more than people would read."""
    files = size = 0
    walk = os.fwalk(SKILLS, onerror=_raise, dir_fd=folder, follow_symlinks=False)
    for folders, (path, below, inside_files, inside) in enumerate(walk, 1):
        below.sort()
        if folders > SKILL_FOLDERS or path.count(os.sep) > SKILL_LEVELS:
            raise ValueError(f"its skills have over {SKILL_FOLDERS} folders, or over {SKILL_LEVELS} in one another")
        if any(stat.S_ISLNK(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode) for name in below):
            raise ValueError("its skills have a link")
        for name in sorted(inside_files):
            content = _content(inside, name, SKILL_BYTES)
            files += 1
            size += len(content or b"")
            if content is None or files > SKILL_FILES or size > SKILLS_BYTES:
                raise ValueError(f"its skills have a link, over {SKILL_FILES} files or over {SKILLS_BYTES} bytes")
            yield os.path.join(path, name)[len(SKILLS) + 1 :], content


def _raise(problem: OSError) -> None:
    """A folder that cannot be listed is a problem: it may be readable after a person has trusted the rest."""
    raise problem
