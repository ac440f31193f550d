"""HTML and other pages of tags: the title, the headings, the text and where the links lead."""

from __future__ import annotations

import re
from html import unescape

from limpet.previews.core import Sheet, Text, clip, plural

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


def score(text: Text) -> float:
    """Whether it begins like a page, or is mostly tags."""
    head = text.content[:3000].lstrip().lower()
    if head.startswith(("<!doctype html", "<html")) or ("<html" in head and head.startswith("<")):
        return 0.98
    if not head.startswith("<"):
        return 0.0
    tags = sum(line.lstrip()[:1] == "<" for line in text.sample)
    return 0.7 if tags * 2 > len(text.sample) else 0.0


def render(text: Text, sheet: Sheet) -> None:
    """Title, description, headings, links to other places, then the text."""
    page = _visible(text.content[: _MOST_BIG if text.big else _MOST_READ])
    title = re.search(r"(?is)<title[^<>]{0,200}>(.{0,500}?)</title", page)
    if title:
        sheet.add("title: " + clip(_plain(title.group(1)), 200), at=0)
    for meta in list(_META.finditer(page))[:2]:
        content = _CONTENT.search(meta.group())
        if content:
            sheet.add("about: " + clip(_plain(content.group(1) or content.group(2)), 200), at=0)
    headings = [_plain(each.group(2)) for each in re.finditer(r"(?is)<h([1-4])\b[^<>]{0,500}>(.{0,600}?)</h\1", page)]
    sheet.add_all((f"# {clip(each, 100)}" for each in dict.fromkeys(headings) if each), at=1, share=0.25)
    links = _links(page)
    if links:
        sheet.add(f"{plural(len(links), 'link')}:", at=3)
        sheet.add_all((clip(f"{label or '-'} → {address}", 130) for address, label in links), at=3, share=0.4)
    lines = [each for each in _text(page) if each not in set(headings)]
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
            label = _plain(page[tag.end() : close]) if close > 0 else ""
            if not labels.get(address.group(1)):
                labels[address.group(1)] = clip(label, 60)
    return sorted(labels.items(), key=lambda pair: not pair[0].startswith("http"))


def _text(page: str) -> list[str]:
    body = re.search(r"(?i)<body\b", page)
    parts = _TAG.sub(
        lambda tag: "\n" if tag.group(1).strip("/").lower() in _BREAKS else " ", page[body.start() if body else 0 :]
    )
    return [line for raw in parts.split("\n") if (line := " ".join(unescape(raw).split()))]


def _plain(markup: str) -> str:
    return " ".join(unescape(_TAG.sub(" ", markup)).split())
