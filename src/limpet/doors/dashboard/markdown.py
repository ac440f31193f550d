"""Stored Markdown, drawn as headings, lists, tables and code.

A maintained parser (markdown-it-py, CommonMark) reads the text; the elements are made here, by `el`, so a text has no
way around the escaping. HTML in a text is shown as the text it is. A link or an image is shown with its address and
is no link: who wants to go there copies it. What the parser would take out of sight (definitions of links, entities)
stays in sight, because people must see what a model reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from limpet.doors.dashboard import html
from limpet.doors.dashboard.html import Child, Html, el

MOST_CHARS = 20_000  # of a text that is parsed: some 30 ms; a longer one is shown as it is
DEEPEST_HEADING, BELOW = 6, 2  # a page has headings of its own above those of a text
# Without one of these a text is the same with and without Markdown.
SIGNS = re.compile(r"[*_`\[|~#]|^[ \t]*(?:[-+>]|\d+[.)])[ \t]|^[ \t]*[-=]{2,}[ \t]*$|\\$|^ {4}", re.MULTILINE)
BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
PLAIN: Mapping[str, str] = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "blockquote": "blockquote",
    "strong": "strong",
    "em": "em",
    "s": "s",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
}


def markdown(text: str) -> Html:
    """The text as people read it."""
    if len(text) > MOST_CHARS or not SIGNS.search(text):
        return el("pre", text, class_="text")
    return el("div", _inside(SyntaxTreeNode(_parser().parse(text))), class_="md")


def plain(text: str) -> str:
    """The text without the signs of Markdown, for one line in a list."""
    return re.sub(
        r"^[ \t]*(?:[#>]+|[-*+](?= )|\d+[.)](?= ))[ \t]*(?:\[[ xX]\] )?|[*`]{1,3}", "", text, flags=re.MULTILINE
    )


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    return parser.enable(["table", "strikethrough"]).disable(["reference", "entity", "html_block", "html_inline"])


def _inside(node: SyntaxTreeNode) -> list[Child]:
    return [_drawn(child) for child in node.children]


def _drawn(node: SyntaxTreeNode) -> Child:
    if (name := PLAIN.get(node.type)) is not None:
        return el("p", _inside(node)) if node.type == "paragraph" and not node.hidden else _element(name, node)
    return OTHERS.get(node.type, _as_it_is)(node)


def _element(name: str, node: SyntaxTreeNode) -> Child:
    if node.type == "paragraph":
        return _inside(node)  # of a tight list
    if name == "table":
        return el("div", el("table", _inside(node)), class_="scroll", tabindex=0, role="group", aria_label="Table")
    start = node.attrs.get("start")
    return el(name, _inside(node), start=int(start) if name == "ol" and start is not None else None)


def _as_it_is(node: SyntaxTreeNode) -> Child:
    return _inside(node) if node.children else node.content


def _heading(node: SyntaxTreeNode) -> Child:
    return el(f"h{min(DEEPEST_HEADING, int(node.tag[1:]) + BELOW)}", _inside(node))


def _item(node: SyntaxTreeNode) -> Child:
    inside = _inside(node)
    first = node.children[0] if node.children else None
    inline = first.children[0] if first is not None and first.type == "paragraph" and first.children else None
    box = BOXES.get(inline.content[:4]) if inline is not None else None
    return el("li", inside, class_="task" if box else None)


def _text(node: SyntaxTreeNode) -> Child:
    """A text; the box of a task at the beginning of an item is drawn as a box."""
    box = BOXES.get(node.content[:4])
    return box + node.content[4:] if box and _opens_item(node) else node.content


def _opens_item(node: SyntaxTreeNode) -> bool:
    inline = node.parent
    paragraph = inline.parent if inline is not None else None
    item = paragraph.parent if paragraph is not None else None
    is_first = inline is not None and item is not None and inline.children[0] is node
    return is_first and item is not None and item.type == "list_item" and item.children[0] is paragraph


def _code(node: SyntaxTreeNode) -> Child:
    return el("pre", el("code", node.content.removesuffix("\n")), tabindex=0)


def _link(node: SyntaxTreeNode) -> Child:
    words = _inside(node)
    place = _place(node, "href")
    same = len(node.children) == 1 and node.children[0].content == place
    return html.many(None if same else [el("span", words, class_="link"), " "], el("code", place))


def _image(node: SyntaxTreeNode) -> Child:
    return html.many(el("span", f"[image] {node.content} ", class_="dim"), el("code", _place(node, "src")))


def _place(node: SyntaxTreeNode, name: str) -> str:
    title = node.attrs.get("title")
    return f"{node.attrs.get(name, '')}{f' {title}' if title else ''}"


OTHERS: Mapping[str, Callable[[SyntaxTreeNode], Child]] = {
    "heading": _heading,
    "list_item": _item,
    "text": _text,
    "fence": _code,
    "code_block": _code,
    "code_inline": lambda node: el("code", node.content),
    "link": _link,
    "image": _image,
    "softbreak": lambda node: el("br"),
    "hardbreak": lambda node: el("br"),
    "hr": lambda node: el("hr"),
}
