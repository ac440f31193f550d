"""HTML built from values: the one escaping path of the dashboard.

`el` makes an element. Every text that goes in is escaped, in elements and in attributes alike, and there is no way to
mark a text as already safe: markup is what `el` and its few siblings return. Control and formatting characters (escape
codes, text direction, zero width) are spelled out, so that a reader sees what is there. Addresses lead to this server,
even when a stored text says otherwise.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Union
from urllib.parse import quote, urlencode

from limpet.record import NamedTuple
from limpet.text import safe

VOID = frozenset(("br", "hr", "img", "input", "link", "meta"))
ADDRESSES = frozenset(("href", "src", "action", "formaction"))


class Html(NamedTuple):
    """Markup that was made here."""

    markup: str


Child = Union[Html, str, int, None, Iterable["Child"]]  # noqa: UP007 - it names itself
Value = str | int | float | bool | None


def el(name: str, /, *children: Child, **attributes: Value) -> Html:
    """An element. `class_` and `for_` are attributes that Python has other plans for; `data_x` is written data-x."""
    head = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{head}>")
    return Html(f"<{head}>{_joined(children)}</{name}>")


def many(*children: Child) -> Html:
    """Several things without an element around them."""
    return Html(_joined(children))


def area(text: str, **attributes: Value) -> Html:
    """A text to edit: exactly as it is stored, with nothing written out. A first line end is not part of the text."""
    head = "textarea" + "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{head}>\n{html.escape(text)}</textarea>")


def field(value: str, **attributes: Value) -> Html:
    """A line to edit, exactly as it is stored."""
    head = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f'<input{head} value="{html.escape(value)}">')


def address(path: str, **parts: Value) -> str:
    """A path of this server with its query; what is None or empty is left out."""
    query = {name: str(value) for name, value in parts.items() if value not in (None, "", False)}
    return path + (f"?{urlencode(query, quote_via=quote)}" if query else "")


def page(title: str, head: Child, body: Html, **attributes: Value) -> str:
    """A whole document."""
    meta = (el("meta", charset="utf-8"), el("meta", name="viewport", content="width=device-width, initial-scale=1"))
    document = el("html", el("head", meta, el("title", title), head), body, lang="en", **attributes)
    return f"<!doctype html>\n{document.markup}\n"


def _joined(children: Iterable[Child]) -> str:
    return "".join(map(_child, children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child.markup
    if isinstance(child, str):
        return html.escape(safe.visible(child))
    if isinstance(child, int):
        return f"{child:,}"
    return _joined(child)


def _attribute(key: str, value: Value) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = str(value)
    if name in ADDRESSES and (text[:1] not in ("/", "?", "#") or text[:2] in ("//", "/\\")):
        raise ValueError(f"an address must stay on this server: {name}")
    return f' {name}="{html.escape(safe.visible(text, keep_newlines=False))}"'
