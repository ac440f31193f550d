"""basic-memory: a folder of Markdown notes. Front matter names them, observations carry tags, relations name others.

The body stays as people wrote it: `- [decision] text #tag (context)` and `- relates_to [[Other note]]` can be read as
they are, and by recall too. What the front matter says of name and tags becomes the key and the tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from limpet.importers.anthropic_memory import decoded
from limpet.importers.facts import Fact, File, Reader, Unread, fact

TOOL = "basic-memory"
FENCE = "---"
_FIELD = re.compile(r"(title|permalink|tags):[ \t]*(.*)")
_OBSERVATION = re.compile(r"[ \t]*[-*][ \t]+\[(?![xX ]\])([^\[\]()]{1,100})\][ \t]+(\S.*)")  # no [x] of a task, no link
_TAG = re.compile(r"(?:^|[ \t])#([\w/-]+)")


def read(files: Iterable[File]) -> Iterator[Fact | Unread]:
    for file in files:
        if not file.path.lower().endswith((".md", ".markdown")):
            yield Unread(file.path, "it is not a Markdown note")
            continue
        text = decoded(file)
        yield text if isinstance(text, Unread) else _note(file.path, text)


def _note(path: str, text: str) -> Fact | Unread:
    fields, body = front_matter(text)
    name = "".join(fields.get("permalink", ())) or re.sub(r"\.(md|markdown)$", "", path, flags=re.IGNORECASE)
    title = "".join(fields.get("title", ()))
    if title and not body.lstrip().startswith("# "):
        body = f"# {title}\n\n{body}"
    return fact(TOOL, name, body, [*fields.get("tags", ()), *_observed(body)])


def front_matter(text: str) -> tuple[dict[str, list[str]], str]:
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


READER = Reader(TOOL, True, read)
