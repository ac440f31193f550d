"""The history: who changed what and when, what it was before, and undoing it."""

from __future__ import annotations

from collections.abc import Iterable

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.markdown import plain
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.model import KINDS, Event, moment
from limpet.store import EventQuery
from limpet.upkeep import paging
from limpet.upkeep.history import can_undo


def history(view: View) -> DrawnPage:
    filters = {name: view.param(name) or None for name in ("kind", "key", "session", "operation")}
    kind = filters["kind"] if filters["kind"] in KINDS else None
    query = EventQuery(
        kind,
        filters["key"],
        filters["session"],
        filters["operation"],
        before_seq=view.number("before"),
        limit=limits.DASHBOARD_PAGE,
    )
    events, following = paging.changes(view.context(), query)
    rows = [_row(view, event) for event in events]
    body = parts.table(("#", "When", "Who", "What", "Of", "Undo"), rows) if rows else parts.nothing("No changes here.")
    newest = view.with_query(before=None) if view.param("before") else None
    older = view.with_query(before=following) if following else None
    main = html.many(
        parts.heading("History", sub="Who did what. What can be taken back now has a button."),
        _filters(view, kind or ""),
        el("div", body, class_="log"),
        parts.pager(view, newest, older),
    )
    return DrawnPage("History", main, "/history")


def _filters(view: View, kind: str) -> Html:
    options = [el("option", "every kind", value="", selected=not kind)]
    options += [el("option", option.replace("_", " "), value=option, selected=option == kind) for option in KINDS]
    return el(
        "form",
        el("label", "Kind", class_="unseen", for_="kind"),
        el("select", options, name="kind", id="kind"),
        el("label", "Session", class_="unseen", for_="session"),
        html.field(view.param("session"), name="session", id="session", placeholder="Session, or all"),
        el("label", "Key", class_="unseen", for_="key"),
        html.field(view.param("key"), name="key", id="key", placeholder="Key, or all"),
        el("button", "Show", class_="plain"),
        action=view.link("/history"),
        method="get",
        class_="filters",
    )


def _row(view: View, event: Event) -> list[html.Child]:
    href = parts.leads(view, event.kind, event.key, event.session)
    of = _name(event)
    return [
        el(
            "a",
            f"{event.seq}",
            href=view.link("/change", seq=event.seq),
            class_="number",
            data_open=True,
            data_item=True,
        ),
        parts.when(event.at, view.now),
        parts.clip(event.by, 40),
        html.many(parts.badge(event.kind), " ", parts.verb(event)),
        html.many(
            el("a", of, href=href) if href else of,
            el("span", parts.clip(event.key, 48), class_="row-text dim") if of != event.key else None,
        ),
        undo_button(view, event),
    ]


def _name(event: Event) -> str:
    """What was changed, by its first words; a key that people chose is said as it is."""
    entry = event.after or event.before
    words = parts.line(plain(entry.content), 70) if entry is not None else ""
    return words or parts.clip(event.key, 48)


def undo_button(view: View, event: Event, class_: str = "quiet") -> Html:
    """For changes that can be taken back now. What was changed again since waits for the later change."""
    if not view.may("undo") or not can_undo(view.context(), event):
        return html.many()
    return parts.button(view, "undo", "undo", "Undo", seq=event.seq, class_=class_)


def change(view: View) -> DrawnPage:
    event = paging.change(view.context(), view.number("seq") or 0)
    href = parts.leads(view, event.kind, event.key, event.session)
    facts = (
        ("When", html.many(parts.when(event.at, view.now), f", {moment(event.at):%Y-%m-%d %H:%M:%S} UTC")),
        ("Who", event.by),
        ("Operation", el("code", event.operation)),
        ("Session", parts.session_link(view, event.session)),
        ("Of", html.many(parts.badge(event.kind), " ", el("a", event.key, href=href) if href else event.key)),
        ("Version", event.version),
    )
    main = html.many(
        parts.heading(f"Change {event.seq:,}", undo_button(view, event, "plain"), sub=parts.verb(event)),
        el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in facts], class_="facts"),
        parts.panel("What changed", what(event)),
    )
    return DrawnPage(f"Change {event.seq}", main, "/history", live=False)


def what(event: Event) -> Html:
    """Before and after, as a difference where both are there."""
    before, after = event.before, event.after
    if event.detail.get("erased"):
        return parts.nothing("What it was before was erased for good.")
    if before is None or after is None:
        gone = el("p", "deleted", class_="dim") if after is None else None
        entry = after or before
        return html.many(gone, parts.prose(entry.content) if entry else None)
    marks = [
        f"{name} {getattr(before, name)} → {getattr(after, name)}".lower()
        for name in ("done", "pinned")
        if getattr(before, name) != getattr(after, name)
    ]
    if before.tags != after.tags:
        marks.append(f"tags {', '.join(before.tags) or 'none'} → {', '.join(after.tags) or 'none'}")
    notes = [el("p", mark, class_="dim") for mark in marks]
    same = before.content == after.content
    changes = None if same and marks else parts.difference(before.content, after.content)
    return html.many(notes, changes)


def steps(view: View, events: Iterable[Event]) -> Html:
    """The versions of one thing, newest first, each with what changed."""

    def row(event: Event) -> Html:
        head = el(
            "div",
            el("strong", f"version {event.version:,}"),
            el("span", f"{parts.verb(event)} · {event.by} · ", parts.when(event.at, view.now), class_="dim"),
            undo_button(view, event),
            class_="meta",
        )
        return el("li", head, what(event), class_="item", data_item=True, tabindex=-1)

    rows = [row(event) for event in events]
    return el("ol", rows, class_="rows cards") if rows else parts.nothing("No history.")


PAGES = (
    PageRow("history", history, menu="History", letter="a", place=90),
    PageRow("change", change),
)
