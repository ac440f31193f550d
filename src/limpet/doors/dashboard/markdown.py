"""Stored Markdown, drawn as headings, lists, tables and code.

A maintained parser (markdown-it-py, CommonMark) reads the text; the elements are made here, by `el`, so a text has no
way around the escaping. HTML in a text is shown as the text it is. A link or an image is shown with its address and
leads to no place: who wants to go there copies it. Links of the documentation, which sets PLACE, lead on. What
the parser would take out of sight (definitions of links, entities, words behind a fence) stays in sight, because people
must see what a model reads; for the same reason a text with a table that would lose cells is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from limpet.doors.dashboard import html
from limpet.doors.dashboard.html import Child, Html, el

# Of a text that is parsed, usually some 30 ms; one with more is shown as it is. Many signs take the parser long.
MOST_CHARS, MOST_SIGNS = 20_000, 2_000
COSTLY_SIGNS = "*_~[!<"
DEEPEST = 40  # elements in each other, which are drawn by functions that call themselves
LAYOUT = re.compile(r"[\s|\\:>*+-]+")  # of a table's lines: what is not in its cells, or looks like that
DEEPEST_HEADING, BELOW = 6, 2  # a page has headings of its own above those of a text
# Without one of these a text is the same with and without Markdown.
SIGNS = re.compile(r"[*_`\[|~#]|^[ \t]*(?:[-+>]|\d+[.)])[ \t]|^[ \t]*[-=]{2,}[ \t]*$|\\$|^ {4}", re.MULTILINE)
PLACE = "limpet-place"  # where a link or image of our own pages leads, or the name of a heading: no text can set it
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
    is_costly = len(text) > MOST_CHARS or sum(map(text.count, COSTLY_SIGNS)) > MOST_SIGNS
    if is_costly or not SIGNS.search(text):
        return el("pre", text, class_="text")
    tokens = parsed(text)
    if _depth(tokens) > DEEPEST or _loses_cells(text, tokens):
        return el("pre", text, class_="text")
    return drawn(tokens)


def parsed(text: str) -> list[Token]:
    return _parser().parse(text)


def drawn(tokens: Sequence[Token]) -> Html:
    return el("div", _inside(SyntaxTreeNode(tokens)), class_="md")


def _depth(tokens: Iterable[Token]) -> int:
    return max((token.level + _depth(token.children or ()) for token in tokens), default=0)


def _loses_cells(text: str, tokens: Sequence[Token]) -> bool:
    """Whether a row of a table has more cells than its head. The parser takes those out."""
    lines = re.sub(r"\r\n?", "\n", text).replace("\0", "\ufffd").split("\n")
    cells: list[str] = []
    source = ""
    for token in tokens:
        if token.type == "table_open" and token.map:
            source, cells = "".join(lines[slice(*token.map)]), []
        elif token.type == "inline":
            cells.append(token.content)
        elif token.type == "table_close" and LAYOUT.sub("", source) != LAYOUT.sub("", "".join(cells)):
            return True
    return False


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
    level = min(DEEPEST_HEADING, int(node.tag[1:]) + BELOW)
    return el(f"h{level}", _inside(node), id=node.attrs.get(PLACE))


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
    words = node.info.strip() if node.type == "fence" else ""
    code = el("pre", el("code", node.content.removesuffix("\n")), tabindex=0)
    return html.many(el("div", words, class_="dim"), code) if words else code


def _link(node: SyntaxTreeNode) -> Child:
    words = _inside(node)
    if (own := node.attrs.get(PLACE)) is not None:
        return el("a", words, href=own)
    place = _place(node, "href")
    same = len(node.children) == 1 and node.children[0].content == place
    return html.many(None if same else [el("span", words, class_="link"), " "], el("code", place))


def _image(node: SyntaxTreeNode) -> Child:
    if (own := node.attrs.get(PLACE)) is not None:
        return el("img", src=own, alt=node.content)
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
