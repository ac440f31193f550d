"""Other memory tools: one reader per tool, and the files they read, opened safely.

In a folder, regular files are opened. Symbolic links are reported and not followed, also if one replaces a folder while
it is being read: every file is opened relative to its folder's descriptor. Opening a pipe or a device does not block.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator

from limpet import errors, limits
from limpet.clients.base import a_text
from limpet.importers.facts import Fact, Json, Reader, SourceFile, Unread, fact, records, texts_of
from limpet.importers.transcripts import time_of
from limpet.record import NamedTuple

SERVER_MEMORY = "server-memory"
ANTHROPIC_MEMORY = "anthropic-memory"
CLAUDE_MEMORY = "claude-memory"
CURSOR_RULES = "cursor-rules"
COPILOT = "copilot-instructions"
MEM0 = "mem0"
BASIC_MEMORY = "basic-memory"
LINK = "it is a symbolic link, and these are not followed"
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ReadFacts(NamedTuple):
    facts: tuple[Fact, ...]
    unread: tuple[Unread, ...]


def read(reader: Reader, path: str) -> ReadFacts:
    """The facts that the tool keeps at a path. Raises BadInput if there are none."""
    if reader.folder:
        if not os.path.isdir(path):
            raise errors.peer_not_readable(reader.tool, path, "it is not a folder")
        source: object = files(path)
    else:
        source = _bytes_of(reader, path)
    facts: dict[str, Fact] = {}
    unread: list[Unread] = []
    for part in reader.read(source):  # type: ignore[arg-type]  # bytes or files, as `reader.folder` says
        if isinstance(part, Unread):
            unread.append(part)
        elif part.key in facts and facts[part.key] != part:
            unread.append(Unread(part.key, "another part has the same name"))
        else:
            facts[part.key] = part
    if not facts and unread:
        raise errors.peer_not_readable(reader.tool, path, f"{unread[0].part}: {unread[0].why}")
    return ReadFacts(tuple(facts.values()), tuple(unread))


def _bytes_of(reader: Reader, path: str) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise errors.peer_not_readable(reader.tool, path, "it is not a file")
            if about.st_size > limits.PEER_FILE_MAX_BYTES:
                raise errors.peer_too_big(reader.tool, path, about.st_size, limits.PEER_FILE_MAX_BYTES)
            return file.read(limits.PEER_FILE_MAX_BYTES)
    except OSError as problem:
        raise errors.peer_not_readable(reader.tool, path, problem.strerror or str(problem)) from None


def files(top: str) -> Iterator[SourceFile]:
    """The files of a folder and those below it, by name. What is not read says why."""
    count = 0
    # The given folder may itself be a link, which is followed: the caller has named it.
    for folder, folders, names, handle in os.fwalk(os.path.realpath(top), follow_symlinks=False):
        inside = os.path.relpath(folder, os.path.realpath(top))
        prefix = "" if inside == "." else f"{inside.replace(os.sep, '/')}/"
        if prefix.count("/") >= limits.PEER_FOLDERS_DEEP:
            yield from (SourceFile(f"{prefix}{name}", "it is too many folders deep") for name in folders)
            folders.clear()
        for name in [name for name in folders if name.startswith(".")]:
            folders.remove(name)  # .git, .obsidian: files of other programs
        folders.sort()
        yield from (SourceFile(f"{prefix}{name}", LINK) for name in folders if _is_link(name, handle))
        for name in sorted(names):
            if name.startswith("."):
                continue
            count += 1
            if count > limits.PEER_FILES_MAX:
                yield SourceFile(f"{prefix}{name}", f"it comes after {limits.PEER_FILES_MAX:,} other files")
                return
            yield _file(f"{prefix}{name}", name, handle)


def _file(path: str, name: str, folder: int) -> SourceFile:
    try:
        handle = os.open(name, _OPEN_FLAGS, dir_fd=folder)
    except OSError as problem:
        return SourceFile(path, LINK if _is_link(name, folder) else f"it cannot be opened ({problem.strerror})")
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            return SourceFile(path, "it is not a file")
        if about.st_size > limits.PEER_NOTE_MAX_BYTES:
            most = f"files are read up to {limits.PEER_NOTE_MAX_BYTES:,}"
            return SourceFile(path, f"it has {about.st_size:,} bytes; {most}")
        return SourceFile(path, file.read(limits.PEER_NOTE_MAX_BYTES), about.st_mtime_ns // 1_000_000)


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


# --- MCP's reference memory server ------------------------------------------------------------------------------------


def _server_memory(body: bytes) -> Iterator[Fact | Unread]:
    """A graph of entities and relations, as its JSON Lines file or as `read_graph` gives it.

    An entity becomes one text: its type, its observations, and the relations that begin at it.
    """
    kinds: dict[str, list[str]] = {}
    lines: dict[str, list[str]] = {}  # per entity, in order
    for part, record in _graph(body):
        if isinstance(record, Unread):
            yield record
            continue
        name = a_text(record.get("name")) or a_text(record.get("from"))
        added = _lines(record)
        if not name or added is None:
            yield Unread(part, "it is neither an entity nor a relation")
            continue
        lines.setdefault(name, []).extend(added)
        if kind := a_text(record.get("entityType")).strip():
            kinds.setdefault(name, []).append(kind)
    for name, texts in lines.items():
        types = kinds.get(name, [])
        head = f"{name} ({', '.join(dict.fromkeys(types))})" if types else name
        yield fact(SERVER_MEMORY, name, "\n".join([head, *dict.fromkeys(texts)]), types)


def _graph(body: bytes) -> Iterator[tuple[str, Json | Unread]]:
    for part, record in records(body):
        if isinstance(record, dict) and ("entities" in record or "relations" in record):
            for field in ("entities", "relations"):
                inner = record.get(field, [])
                yield from _each(f"{field} of {part}", inner if isinstance(inner, list) else [inner])
        else:
            yield from _each(part, [record])


def _each(part: str, values: Iterable[object]) -> Iterator[tuple[str, Json | Unread]]:
    for number, value in enumerate(values, 1):
        where = f"{part}, {number:,}" if " of " in part else part
        if isinstance(value, dict):
            yield where, value
        else:
            yield where, Unread(where, str(value) if isinstance(value, ValueError) else "it is not a JSON object")


def _lines(record: Json) -> list[str] | None:
    """The lines that a record adds to its entity. None if it is not part of a graph."""
    if a_text(record.get("name")) and isinstance(record.get("observations", []), list):
        return [f"- {' '.join(text.split())}" for text in texts_of(record.get("observations", [])) if text.strip()]
    relation, to = a_text(record.get("relationType")), a_text(record.get("to"))
    return [f"- {relation} → {to}"] if relation and to else None


# --- Anthropic's memory tool ------------------------------------------------------------------------------------------


def _anthropic_memory(files: Iterable[SourceFile]) -> Iterator[Fact | Unread]:
    """A folder of text files that a model wrote. Each file is one text, under its path."""
    for file in files:
        text = _decoded(file)
        yield text if isinstance(text, Unread) else fact(ANTHROPIC_MEMORY, file.path, text, at=file.at)


# --- what Markdown files say to coding agents --------------------------------------------------------------------

# The files that count in a folder, by tool. Their texts are taken whole: front matter says when they apply.
RULE_FILES = {
    CLAUDE_MEMORY: (".md",),  # what Claude Code writes down by itself, and CLAUDE.md
    CURSOR_RULES: (".mdc", ".md"),
    COPILOT: ("copilot-instructions.md", ".instructions.md"),
}


def _rules(tool: str) -> Callable[[Iterable[SourceFile]], Iterator[Fact | Unread]]:
    def read_rules(files: Iterable[SourceFile]) -> Iterator[Fact | Unread]:
        for file in files:
            if file.path.lower().endswith(RULE_FILES[tool]):
                text = _decoded(file)
                yield text if isinstance(text, Unread) else fact(tool, file.path, text, at=file.at)
            else:
                yield Unread(file.path, f"only files that end with {' or '.join(RULE_FILES[tool])} are read")

    return read_rules


def _decoded(file: SourceFile) -> str | Unread:
    if isinstance(file.body, str):
        return Unread(file.path, file.body)
    try:
        return file.body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return Unread(file.path, "it is not UTF-8 text")


# --- mem0 -------------------------------------------------------------------------------------------------------------


_LISTS = ("results", "memories", "data", "items")  # the members of a document that hold facts
_TEXTS = ("memory", "content", "data", "text")  # the members that hold a fact's text
_OWNERS = ("user_id", "agent_id", "app_id", "run_id")  # the members that name the owner


def _mem0(body: bytes) -> Iterator[Fact | Unread]:
    """The short facts of `get_all`, of its platform's export and of OpenMemory's backup, each with id and owner."""
    for part, record in _mem0_rows(body, "the file"):
        if not isinstance(record, dict):
            yield Unread(part, str(record) if isinstance(record, ValueError) else "it is not a JSON object")
        elif record.keys() >= {"source", "relationship", "target"}:
            text = " ".join(a_text(record[name]) for name in ("source", "relationship", "target"))
            yield fact(MEM0, f"relation {_short(text)}", text)
        elif not (text := next((value for name in _TEXTS if (value := a_text(record.get(name)).strip())), "")):
            yield Unread(part, "it has no text")
        elif a_text(record.get("state")) == "deleted" or record.get("is_deleted") is True:
            yield Unread(part, "it is deleted there")
        else:
            id = record.get("id")
            name = str(id) if isinstance(id, str | int) and str(id).strip() else _short(text)
            yield fact(MEM0, name, text, _mem0_tags(record), time_of(record))


def _mem0_rows(body: bytes, where: str) -> Iterator[tuple[str, object]]:
    for part, value in records(body):
        if isinstance(value, dict):
            lists = [name for name in (*_LISTS, "relations") if isinstance(value.get(name), list)]
            if not lists:
                yield part, value
            for name in lists:
                yield from ((f"{name}, {number:,}", item) for number, item in enumerate(value[name], 1))
        elif isinstance(value, list):
            yield from ((f"item {number:,}", item) for number, item in enumerate(value, 1))
        else:
            yield part if part != "the file" else where, value


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _mem0_tags(record: Json) -> list[str]:
    metadata = record.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    named = [*texts_of(record.get("categories")), *texts_of(inner.get("categories")), *texts_of(inner.get("category"))]
    owners = [f"{name.removesuffix('_id')}:{value}" for name in _OWNERS if (value := a_text(record.get(name)))]
    return [*owners, *named, *texts_of(inner.get("tags"))]


# --- basic-memory -----------------------------------------------------------------------------------------------------


FENCE = "---"
_FIELD = re.compile(r"(title|permalink|tags):[ \t]*(.*)")
_OBSERVATION = re.compile(r"[ \t]*[-*][ \t]+\[(?![xX ]\])([^\[\]()]{1,100})\][ \t]+(\S.*)")  # no [x] of a task, no link
_TAG = re.compile(r"(?:^|[ \t])#([\w/-]+)")


def _basic_memory(files: Iterable[SourceFile]) -> Iterator[Fact | Unread]:
    """A folder of Markdown notes. Front matter names them, observations carry tags, relations name others.

    The body stays as people wrote it: `- [decision] text #tag (context)` and `- relates_to [[Other note]]` can be read
    as they are, and by recall too. What the front matter says of name and tags becomes the key and the tags.
    """
    for file in files:
        if not file.path.lower().endswith((".md", ".markdown")):
            yield Unread(file.path, "it is not a Markdown note")
            continue
        text = _decoded(file)
        yield text if isinstance(text, Unread) else _note(file, text)


def _note(file: SourceFile, text: str) -> Fact | Unread:
    fields, body = _front_matter(text)
    name = "".join(fields.get("permalink", ())) or re.sub(r"\.(md|markdown)$", "", file.path, flags=re.IGNORECASE)
    title = "".join(fields.get("title", ()))
    if title and not body.lstrip().startswith("# "):
        body = f"# {title}\n\n{body}"
    return fact(BASIC_MEMORY, name, body, [*fields.get("tags", ()), *_observed(body)], file.at)


def _front_matter(text: str) -> tuple[dict[str, list[str]], str]:
    """The fields that are used, and the rest of the text. A text without a closing line has no front matter."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return {}, text
    end = next((index for index, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        return {}, text
    fields: dict[str, list[str]] = {}
    name = ""
    for line in lines[1:end]:
        if field := _FIELD.fullmatch(line.rstrip()):
            name = field[1]
            fields[name] = _values(name, field[2])
        elif name == "tags" and (item := re.fullmatch(r"[ \t]*-[ \t]+(.+?)[ \t]*", line)):
            fields[name].append(_plain(item[1]))
        elif line[:1] not in (" ", "\t", ""):
            name = ""  # another field begins
    return fields, "\n".join(lines[end + 1 :])


def _values(name: str, value: str) -> list[str]:
    if name != "tags":
        return [_plain(value)] if _plain(value) else []
    inner = value.strip().removeprefix("[").removesuffix("]")
    return [plain for item in inner.split(",") if (plain := _plain(item))]


def _plain(value: str) -> str:
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _observed(body: str) -> Iterator[str]:
    """The tags of the observations in a body."""
    for line in body.split("\n"):
        if match := _OBSERVATION.fullmatch(line):
            yield from _TAG.findall(match[2])


READERS: dict[str, Reader] = {
    reader.tool: reader
    for reader in (
        Reader(SERVER_MEMORY, False, _server_memory),
        Reader(ANTHROPIC_MEMORY, True, _anthropic_memory),
        *(Reader(tool, True, _rules(tool)) for tool in RULE_FILES),
        Reader(MEM0, False, _mem0),
        Reader(BASIC_MEMORY, True, _basic_memory),
    )
}
