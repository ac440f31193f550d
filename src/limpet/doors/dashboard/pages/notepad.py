"""A session's notepad: what it says now, its versions with differences, editing and restoring."""

from __future__ import annotations

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.pages.history import what
from limpet.doors.dashboard.view import Listed, Page, View
from limpet.model import NOTEPAD, Event, Notepad
from limpet.store import EventQuery
from limpet.upkeep import paging


def notepad(view: View) -> Page:
    id = view.param("session")
    pad = view.run("read_notepad", id)
    query = EventQuery(NOTEPAD, id, before_seq=view.number("before"), limit=limits.DASHBOARD_PAGE)
    events, following = paging.changes(view.context(id), query)
    rows = [_version(view, id, event, pad.version) for event in events]
    newest = view.with_query(before=None) if view.param("before") else None
    older = view.with_query(before=following) if following else None
    main = html.many(
        parts.heading(
            "Notepad",
            sub=html.many(
                el("a", id, href=view.link("/session", id=id)), f" · version {pad.version:,} · {pad.tokens:,} tokens"
            ),
        ),
        el("pre", pad.content, class_="text big mono") if pad.content else parts.nothing("It is empty."),
        _edit(view, id, pad),
        parts.panel("Versions", el("ol", rows, class_="rows cards") if rows else parts.nothing("None yet.")),
        parts.pager(view, newest, older),
    )
    return Page("Notepad", main, "/overview")


def _version(view: View, id: str, event: Event, now: int) -> Html:
    restore = html.many()
    if event.version != now and event.after is not None:
        restore = parts.button(
            view, "restore_notepad", "restore_notepad", "Restore", class_="plain", session=id, version=event.version
        )
    head = el(
        "div",
        el("strong", f"version {event.version:,}"),
        el("span", f"{parts.verb(event)} · {event.by} · ", parts.when(event.at, view.now), class_="dim"),
        restore,
        class_="meta",
    )
    return el("li", head, what(event), class_="item", data_item=True, tabindex=-1)


def _edit(view: View, id: str, pad: Notepad) -> Html:
    if not view.may("write_notepad"):
        return html.many()
    form = parts.form(
        view,
        "write_notepad",
        el("label", "The whole notepad", for_="content"),
        html.area(pad.content, id="content", name="content", rows=14),
        el("p", "If an agent changes it in the meantime, nothing is overwritten: you are told.", class_="dim"),
        el("button", "Save"),
        class_="stack",
        session=id,
        expected_version=pad.version,
    )
    return el("details", el("summary", "Edit"), form, class_="edit")


PAGES = (Listed("notepad", notepad),)
