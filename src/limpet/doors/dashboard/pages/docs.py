"""The documentation of this version, to read where one works."""

from __future__ import annotations

from itertools import groupby

from limpet.doors.dashboard import documentation, html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.view import DrawnPage, PageRow, View


def docs(view: View) -> DrawnPage:
    pages = documentation.manuals()
    name = view.param("page")
    chosen = pages.get(name)
    if chosen is None:
        return DrawnPage("Documentation", _contents(view, missing=name), "/docs", live=False)
    text = el("div", documentation.drawn(chosen.name, view.base), class_="card manual")
    back = el("a", "All pages", href=view.link("/docs"))
    order = list(pages.values())
    after = order[order.index(chosen) + 1 :][:1]
    onward = [el("p", "Next: ", el("a", page.title, href=view.link("/docs", page=page.name))) for page in after]
    main = html.many(parts.heading(documentation.heading(chosen.name), back, sub=chosen.group), text, onward)
    return DrawnPage(chosen.title, main, "/docs", live=False)


def _contents(view: View, missing: str) -> Html:
    pages = documentation.manuals()
    if not pages:
        words = "The documentation is not part of this installation."
        return html.many(parts.heading("Documentation"), parts.nothing(words))
    groups = [
        parts.panel(group, el("ul", [el("li", el("a", p.title, href=view.link("/docs", page=p.name))) for p in listed]))
        for group, listed in groupby(pages.values(), key=lambda page: page.group)
    ]
    unknown = parts.nothing(f"There is no page {missing}. These are there:") if missing else None
    sub = "Of this version, and on this machine: nothing is fetched."
    return html.many(parts.heading("Documentation", sub=sub), unknown, el("div", groups, class_="split even"))


PAGES = (PageRow("docs", docs, menu="Docs", letter="d", place=99),)
