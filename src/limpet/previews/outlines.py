"""Outputs with an outline: source code, Markdown and HTML.

Of code, what is defined where: Python by its own parser, other languages by their usual words. Of Markdown, the
headings, how each section begins and what its code shows. Of a page, the title, the headings, the text and the links.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from html import unescape

from limpet.previews.core import OutputText, Sheet, clip, plural
from limpet.record import NamedTuple

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


def code_score(text: OutputText) -> float:
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


def render_code(text: OutputText, sheet: Sheet) -> None:
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


def _python(text: OutputText) -> list[tuple[int, int, str]]:
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


def _patterns(text: OutputText) -> list[tuple[int, int, str]]:
    definitions = []
    for at, line in text.numbered():
        match = _DEFINITION.match(line[:400])
        if match:
            definitions.append((at, min(3, len(match.group(1).expandtabs(4)) // 4), line))
        elif line[:1].isalpha() and _SIGNATURE.match(line[:400]):
            definitions.append((at, 0, line))
    return definitions


# --- Markdown ---------------------------------------------------------------------------------------------------------

_HEADING = re.compile(r"^#{1,6} +\S")
_MARK = re.compile(r"^\s{0,3}(?:[-*+] +\S|\d{1,3}[.)] +\S|> |```|~~~|\|.*\|$)|\]\(\S{1,300}\)|\*\*\S|`[^`\n]{1,80}`")


class _Section(NamedTuple):
    heading: tuple[int, str] | None
    prose: list[tuple[int, str]]
    code: list[tuple[int, str]]


def markdown_score(text: OutputText) -> float:
    """Headings outside code, and other marks."""
    sample = text.sample
    if not sample:
        return 0.0
    headings = sum(bool(_HEADING.match(line)) for line in sample)
    fenced = sum(line.lstrip()[:3] in {"```", "~~~"} for line in sample)
    marks = sum(bool(_MARK.search(line)) for line in sample)
    if not headings:
        return 0.55 if fenced >= 2 or marks * 2 > len(sample) else 0.0
    comments = not fenced and headings * 3 > len(sample) and marks * 5 < len(sample)
    return (
        0.3 if comments else min(0.9, 0.5 + headings / len(sample) + marks / len(sample) + (0.2 if fenced >= 2 else 0))
    )


def render_markdown(text: OutputText, sheet: Sheet) -> None:
    """All headings as far as they fit, the first lines of each section, then code, in turns."""
    sections = _sections(text)
    headings = [each.heading for each in sections if each.heading]
    coded = sum(bool(each.code) for each in sections)
    sheet.add(f"{plural(len(headings), 'heading')}, {plural(coded, 'section')} with code{text.part}", at=0)
    deep = sorted(headings, key=lambda each: (len(each[1]) - len(each[1].lstrip("#")), each[0]))
    done = sheet.add_lines(deep, at=1, share=0.45, length=120)
    if done < len(headings):
        sheet.add(f"… {plural(len(headings) - done, 'more heading')}", at=2)
    for depth in range(8):
        for section in sections:
            for lines in (section.code[depth * 2 : depth * 2 + 2], section.prose[depth : depth + 1]):
                for at, line in lines:
                    if sheet.left < 15:
                        return
                    sheet.add_line(at, line, at=1, length=160 if len(sections) < 12 else 110)
    last = text.lines[-3:]
    sheet.add_lines(enumerate(last, len(text.lines) - len(last)), at=1)


def _sections(text: OutputText) -> list[_Section]:
    sections = [_Section(None, [], [])]
    fence = ""
    for at, line in text.numbered():
        bare = line.strip()
        mark = bare[:3]
        if mark in {"```", "~~~"} and (not fence or (mark == fence and len(bare) == 3)):
            fence = "" if fence else mark
        elif fence:
            if len(bare) > 3 and not bare.startswith(("import ", "//", "#", "/*", "*")) and len(sections[-1].code) < 40:
                sections[-1].code.append((at, line))
        elif _HEADING.match(line):
            sections.append(_Section((at, clip(line, 160)), [], []))
        elif bare and not bare.startswith("---") and len(sections[-1].prose) < 40:
            sections[-1].prose.append((at, line))
    return sections


# --- HTML -------------------------------------------------------------------------------------------------------------

_MOST_READ = 600_000  # Characters of a page that are looked at.
_MOST_BIG = 60_000  # The same for one that is longer still.
_TAG = re.compile(r"<(/?[A-Za-z!?][^\s<>/]{0,60})([^<>]{0,3000})>")
_LINK = re.compile(r"\b(?:href|src)\s{0,3}=\s{0,3}[\"']?([^\"'\s>]{1,500})")
_META = re.compile(
    r"(?i)<meta\s[^<>]{0,400}(?:name|property)\s?=\s?[\"'](?:description|og:title|og:description|author)[\"'][^<>]{0,1000}>"
)
_CONTENT = re.compile(r"(?i)\bcontent\s?=\s?\"([^\"]{1,500})\"|\bcontent\s?=\s?'([^']{1,500})'")
_HIDDEN = ("script", "style", "noscript", "svg", "template")
_BREAKS = {
    "p",
    "div",
    "br",
    "li",
    "tr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "article",
    "td",
    "th",
    "table",
    "ul",
    "ol",
    "title",
}


def html_score(text: OutputText) -> float:
    """Whether it begins like a page, or is mostly tags."""
    head = text.content[:3000].lstrip().lower()
    if head.startswith(("<!doctype html", "<html")) or ("<html" in head and head.startswith("<")):
        return 0.98
    if not head.startswith("<"):
        return 0.0
    tags = sum(line.lstrip()[:1] == "<" for line in text.sample)
    return 0.7 if tags * 2 > len(text.sample) else 0.0


def render_html(text: OutputText, sheet: Sheet) -> None:
    """Title, description, headings, links to other places, then the text."""
    page = _visible(text.content[: _MOST_BIG if text.big else _MOST_READ])
    title = re.search(r"(?is)<title[^<>]{0,200}>(.{0,500}?)</title", page)
    if title:
        sheet.add("title: " + clip(_without_tags(title.group(1)), 200), at=0)
    for meta in list(_META.finditer(page))[:2]:
        content = _CONTENT.search(meta.group())
        if content:
            sheet.add("about: " + clip(_without_tags(content.group(1) or content.group(2)), 200), at=0)
    headings = [
        _without_tags(each.group(2)) for each in re.finditer(r"(?is)<h([1-4])\b[^<>]{0,500}>(.{0,600}?)</h\1", page)
    ]
    sheet.add_all((f"# {clip(each, 100)}" for each in dict.fromkeys(headings) if each), at=1, share=0.25)
    links = _links(page)
    if links:
        sheet.add(f"{plural(len(links), 'link')}:", at=3)
        sheet.add_all((clip(f"{label or '-'} → {address}", 130) for address, label in links), at=3, share=0.4)
    lines = [each for each in _visible_text(page) if each not in set(headings)]
    sheet.add_all((clip(each, 300) for each in lines if len(each) > 40), at=2, share=0.7)
    if sheet.left > 25:
        sheet.add_all((clip(each, 200) for each in lines if len(each) <= 40), at=2)


def _visible(page: str) -> str:
    """The page without comments, scripts and styles: plain finds, so that a page of unclosed tags costs no more."""
    page = _without(page, "<!--", "-->")
    for name in _HIDDEN:
        page = _without(page, f"<{name}", f"</{name}>")
    return page


def _without(page: str, start: str, end: str) -> str:
    low = page.lower() if len(page.lower()) == len(page) else page
    out: list[str] = []
    at = 0
    while True:
        opened = low.find(start, at)
        closed = low.find(end, opened) if opened >= 0 else -1
        if opened < 0 or closed < 0:
            return "".join([*out, page[at:]])
        out.append(page[at:opened])
        at = closed + len(end)


def _links(page: str) -> list[tuple[str, str]]:
    """Addresses with what is written on them: other sites first, each once."""
    labels: dict[str, str] = {}
    for tag in _TAG.finditer(page):
        if tag.group(1).lower() != "a":
            continue
        address = _LINK.search(tag.group(2))
        if address and not address.group(1).startswith(("#", "javascript:", "mailto:")):
            close = page.find("</a", tag.end(), tag.end() + 600)
            label = _without_tags(page[tag.end() : close]) if close > 0 else ""
            if not labels.get(address.group(1)):
                labels[address.group(1)] = clip(label, 60)
    return sorted(labels.items(), key=lambda pair: not pair[0].startswith("http"))


def _visible_text(page: str) -> list[str]:
    body = re.search(r"(?i)<body\b", page)
    parts = _TAG.sub(
        lambda tag: "\n" if tag.group(1).strip("/").lower() in _BREAKS else " ", page[body.start() if body else 0 :]
    )
    return [line for raw in parts.split("\n") if (line := " ".join(unescape(raw).split()))]


def _without_tags(markup: str) -> str:
    return " ".join(unescape(_TAG.sub(" ", markup)).split())
