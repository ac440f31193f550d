"""Source code: an outline of what is defined where. Python by its own parser, other languages by their usual words."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter

from limpet.previews.core import Sheet, Text, clip, plural

_MOST_PARSED = 400_000  # Characters of Python that are parsed; of longer files the patterns below tell enough.
_DEFINITION = re.compile(
    r"^(\s{0,16})(?:export |default |public |private |protected |internal |static |abstract |final |async "
    r"|pub(?:\([a-z]{1,9}\))? |unsafe "
    r"|inline |virtual |override |sealed |partial |declare |extern |const(?=expr)){0,5}"
    r"(?:(?:def|class|function\*?|func|fn|struct|enum|interface|trait|impl|mod|module|namespace|type|record"
    r"|object|protocol|extension|macro_rules!)"
    r"\s+[\w$<(*&'\[].{0,200}|(?:CREATE|ALTER|DROP|INSERT INTO|create|insert into)\s.{1,160}|#define \w.{0,120}"
    r"|(?:const|let|var)\s+[\w$]{1,80}\s*=\s*(?:async\s*)?(?:\(|function|\w{1,40}\s*=>).{0,120})"
)
_SIGNATURE = re.compile(
    r"^[A-Za-z_][\w:<>*&,\s]{0,120}\s[*&]{0,2}[\w:~]{1,80}\([^;]{0,200}\)\s{0,3}(?:const\s{0,3})?\{?$"
)
_IMPORT = re.compile(
    r"^\s{0,8}(?:import\s|from\s+\S{1,200}\s+import\b|#include\b|use\s+[\w:]{1,200}|using\s+\w|require\b|package\s+\w)"
)
_SIGN = re.compile(
    r"[;{}]\s*$|^\s*(?:return\b|if\b.{0,200}[:{]$|else\b|for\b.{0,200}[:{]$|while\b|//|/\*|\*/|#\s|--\s|\"\"\"|@\w)|\)\s*:$|=>|:=|\s=\s"
)


def score(text: Text) -> float:
    """How many lines define, import or end like code."""
    sample = text.sample
    if len(sample) < 5:
        return 0.0
    definitions = sum(bool(_DEFINITION.match(line)) for line in sample)
    imports = sum(bool(_IMPORT.match(line)) for line in sample[:60])
    signs = sum(bool(_SIGN.search(line[:300])) for line in sample) / len(sample)
    if definitions + imports < 2 or definitions * 60 + imports * 20 < len(sample):
        return 0.0
    return min(0.88, 0.3 + 0.7 * signs + 2 * definitions / len(sample))


def render(text: Text, sheet: Sheet) -> None:
    """The outline with line numbers, then the beginning of the file."""
    definitions = _python(text) or _patterns(text)
    sheet.add(plural(len(definitions), "definition") + text.part, at=0)
    lines = text.lines
    first = [at for at, line in enumerate(lines[:60]) if line.strip()]
    sheet.add_lines(((at, lines[at]) for at in first[:4]), at=1, share=0.2, length=140)
    # A kind that repeats (rows that are inserted) is shown once, with its count.
    heads = Counter(_head(line) for _, _, line in definitions)
    outline: list[tuple[int, str]] = []
    heads_shown: set[str] = set()
    for at, depth, line in sorted(definitions, key=lambda each: (each[1] > 0, each[0])):
        head = _head(line)
        if head in heads_shown and heads[head] > 20:
            continue
        heads_shown.add(head)
        times = f" (×{heads[head]})" if heads[head] > 20 else ""  # noqa: RUF001
        outline.append((at, f"{at + 1}: {'  ' * depth}{clip(line.strip(), 110)}{times}"))
    chosen = []
    floor = 30
    for at, entry in outline:
        if sheet.left < floor:
            break
        chosen.append((at, entry))
        sheet.left -= len(entry) // 3 + 2
    sheet.left += sum(len(entry) // 3 + 2 for _, entry in chosen)
    sheet.add_all((entry for _, entry in sorted(chosen)), at=2)
    if len(chosen) < len(outline):
        sheet.add(f"… {plural(len(outline) - len(chosen), 'more definition')}", at=3)
    sheet.add_lines(((at, lines[at]) for at in range(len(lines) - 1, max(0, len(lines) - 4), -1)), at=4, length=140)


def _head(line: str) -> str:
    return " ".join(line.replace("(", " ").split()[:3])


def _python(text: Text) -> list[tuple[int, int, str]]:
    """(line, depth, text) of every class and function, when the text is Python."""
    if len(text.content) > _MOST_PARSED or not re.search(r"(?m)^(?:async def|def|class|import|from) ", text.content):
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The parser warns about invalid escapes in the text.
            tree = ast.parse(text.content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    definitions: list[tuple[int, int, str]] = []
    queue: list[tuple[ast.stmt, int]] = [(node, 0) for node in tree.body]
    lines = text.content.split("\n")
    while queue:
        node, depth = queue.pop(0)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            definitions.append((node.lineno - 1, depth, lines[node.lineno - 1]))
            if isinstance(node, ast.ClassDef):
                queue.extend((each, depth + 1) for each in node.body)
    return definitions


def _patterns(text: Text) -> list[tuple[int, int, str]]:
    definitions = []
    for at, line in text.numbered():
        match = _DEFINITION.match(line[:400])
        if match:
            definitions.append((at, min(3, len(match.group(1).expandtabs(4)) // 4), line))
        elif line[:1].isalpha() and _SIGNATURE.match(line[:400]):
            definitions.append((at, 0, line))
    return definitions
