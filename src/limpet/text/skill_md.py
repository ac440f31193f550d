"""SKILL.md: its front matter and body, and the sections of a Markdown text that can become one.

The front matter is YAML, of which `name` and `description` are read, as plain, quoted or multi-line scalars. Other
keys are ignored.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

FENCE = "---"
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")  # of a new skill; it is also the name of its folder
_FIELD = re.compile(r"([A-Za-z_][\w-]*):(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"([>|])[+-]?\d?")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_CODE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Parts(NamedTuple):
    name: str
    description: str
    body: str


class SkillSection(NamedTuple):
    title: str
    text: str  # with its heading, up to the next one of its level or above


class BadSkill(ValueError):
    """A SKILL.md that cannot be used. The message says why."""


def parse(text: str) -> Parts:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise BadSkill(f"it does not begin with a line {FENCE}, then name and description")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise BadSkill(f"its front matter is not closed by a line {FENCE}")
    fields = _fields(lines[1:end])
    for required in ("name", "description"):
        if not fields.get(required):
            raise BadSkill(f"its front matter has no {required}")
    return Parts(fields["name"], fields["description"], "\n".join(lines[end + 1 :]).strip("\r\n"))


def _fields(lines: list[str]) -> dict[str, str]:
    """The texts of the front matter by name, each in one line."""
    texts: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if field := _FIELD.fullmatch(line.rstrip()):
            name = field[1]
            value = field[2] or ""
            texts[name] = [] if _BLOCK.fullmatch(value) else [value]
        elif name and (line[:1] in " \t" or not line):
            texts[name].append(line.strip())
    return {name: " ".join(_scalar(" ".join(parts).strip()).split()) for name, parts in texts.items()}


def _scalar(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return value.partition(" #")[0]  # a comment


def render(name: str, description: str, body: str) -> str:
    """The file. The description is a JSON string, which is also valid YAML."""
    return f"{FENCE}\nname: {name}\ndescription: {json.dumps(description, ensure_ascii=False)}\n{FENCE}\n\n{body}\n"


def sections(text: str) -> list[SkillSection]:
    """The sections of a Markdown text. Headings inside code blocks do not count."""
    lines = text.split("\n")
    heads: list[tuple[int, int, str]] = []  # line, level, title
    fence = ""
    for at, line in enumerate(lines):
        code = _CODE.match(line)
        if code and (not fence or (code[1].startswith(fence) and not line.strip().strip(fence[0]))):
            fence = "" if fence else code[1]
        elif not fence and (head := _HEADING.fullmatch(line.rstrip("\r"))):
            heads.append((at, len(head[1]), head[2]))
    ends = [
        next((at for at, above, _ in heads[number + 1 :] if above <= level), len(lines))
        for number, (_, level, _) in enumerate(heads)
    ]
    return [
        SkillSection(title, "\n".join(lines[at:end]).strip("\n"))
        for (at, _, title), end in zip(heads, ends, strict=True)
    ]
