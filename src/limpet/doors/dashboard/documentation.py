"""The documentation that comes with the package: which pages there are, and each of them drawn for the dashboard.

In a wheel the pages are below the package, in a checkout they are in `docs/`. `pages.toml` names them in the order in
which they are read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from posixpath import dirname, join, normpath
from urllib.parse import quote

from markdown_it.token import Token

from limpet.doors.dashboard import html, markdown
from limpet.doors.dashboard.html import Html
from limpet.record import NamedTuple

LIST = "pages.toml"
PICTURE = re.compile(r"plots/([\w-]+\.svg)")
NAMED_ROW = re.compile(r'<a id="[\w-]+"></a>')


def heading(name: str) -> str:
    """What a page of `manuals` calls itself."""
    return source(name).partition("\n")[0].removeprefix("# ")


class Manual(NamedTuple):
    """A page of the documentation."""

    name: str  # its file, without .md
    title: str
    group: str


@cache
def folder() -> Traversable | None:
    package = files("limpet")
    places = [package.joinpath("docs"), package.joinpath("..", "..", "docs")]
    return next((place for place in places if place.joinpath(LIST).is_file()), None)


@cache
def manuals() -> Mapping[str, Manual]:
    """Every page by its name, in the order in which they are read."""
    place = folder()
    listed = tomllib.loads(place.joinpath(LIST).read_text(encoding="utf-8")) if place is not None else {}
    return {name: Manual(name, title, group) for group, names in listed.items() for name, title in names.items()}


def source(name: str) -> str:
    """The Markdown of a page of `manuals`, without the names that it gives to rows of tables."""
    place = folder()
    text = place.joinpath(*f"{name}.md".split("/")).read_text(encoding="utf-8") if place is not None else ""
    return NAMED_ROW.sub("", text)


def picture(name: str) -> bytes | None:
    """A picture that pages show."""
    place = folder()
    if place is None or not PICTURE.fullmatch(f"plots/{name}"):
        return None
    file = place.joinpath("plots", name)
    return file.read_bytes() if file.is_file() else None


@cache
def drawn(name: str, base: str) -> Html:
    """A page of `manuals` below its first heading, its links leading to pages below `base`, and its pictures to this
    server."""
    tokens = markdown.parsed(source(name).partition("\n")[2])
    for token in _below(tokens):
        if token.type == "softbreak":  # our pages are wrapped for editors
            token.type, token.content = "text", " "
        for key in ("href", "src"):
            if (own := _address(name, str(token.attrs.get(key, "")), base)) is not None:
                token.attrs[markdown.PLACE] = own
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrs[markdown.PLACE] = anchor(inline.content)
    return markdown.drawn(tokens)


def anchor(heading: str) -> str:
    """The name of a heading in addresses, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _below(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _below(token.children or [])


def _address(page: str, link: str, base: str) -> str | None:
    """Where a link of a page leads on this server; None where it leads elsewhere."""
    path, mark, heading = link.partition("#")
    if not link or "://" in link:
        return None
    target = normpath(join(dirname(page), path)) if path else f"{page}.md"
    if match := PICTURE.fullmatch(target):
        return f"/static/{match[1]}"
    name = target.removesuffix(".md")
    if target == name or name not in manuals():
        return None
    return html.address(f"{base}/docs", page=name) + mark + quote(heading)
