"""All sessions, with what each was about: found by words, leafed through, and led from to what was said in them."""

from __future__ import annotations

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.model import MESSAGE, NOTE, Entry, as_session
from limpet.store import Page
from limpet.upkeep import paging

STATES = (("", "All"), ("active", "Active"))


def sessions(view: View) -> DrawnPage:
    query, state = view.param("q").strip(), view.param("state")
    page = view.number("page") or 0
    listed = paging.session_page(
        view.context(), page, limits.DASHBOARD_PAGE, words=query, include_archived=state != "active"
    )
    rows = [_row(view, entry) for entry in listed.entries]
    end = (page + 1) * limits.DASHBOARD_PAGE
    newest = view.with_query(page=None) if page else None
    older = view.with_query(page=page + 1) if listed.total > end else None
    body = el("ul", rows, class_="rows cards") if rows else _none(view, query)
    main = html.many(
        parts.heading("Sessions", sub=f"{counted(listed, query, state)}, the latest first"),
        _filters(view, query, state),
        parts.choices(view, "state", STATES, state),
        body,
        parts.pager(view, newest, older),
    )
    return DrawnPage("Sessions", main, "/sessions")


def counted(listed: Page, query: str, state: str) -> str:
    return f"{listed.total:,} {'or more ' if listed.more else ''}{'found' if query or state else 'in all'}"


def _none(view: View, query: str) -> Html:
    if not query:
        return parts.nothing("No session yet. ", el("a", "What to do first", href=view.link("/start")))
    ask = el("a", "Ask everything that is kept", href=view.link("/recall", q=query))
    return parts.nothing("No session is called so. ", ask)


def _filters(view: View, query: str, state: str) -> Html:
    return el(
        "form",
        html.field(state, type="hidden", name="state") if state else None,
        el("label", "Words or id", class_="unseen", for_="q"),
        html.field(query, type="search", name="q", id="q", placeholder="Words of its title, or an id"),
        el("button", "Show", class_="plain"),
        action=view.link("/sessions"),
        method="get",
        class_="filters",
    )


def _row(view: View, entry: Entry) -> Html:
    info, ctx = as_session(entry), view.context(entry.key)
    messages = paging.message_count(ctx)
    notes_count = ctx.store.entries.tally(ctx.scope, NOTE, entry.key).total
    read = el("a", _count(messages, MESSAGE), href=view.link("/messages", session=entry.key)) if messages else None
    notes = el("a", _count(notes_count, NOTE), href=view.link("/notes", session=entry.key)) if notes_count else None
    return el(
        "li",
        el(
            "div",
            el(
                "a",
                el("strong", parts.session_title(ctx, entry)),
                href=view.link("/session", id=info.id),
                data_open=True,
            ),
            parts.state(info.state) if info.state != "active" else None,
            class_="meta",
        ),
        el(
            "div",
            el("span", parts.when(entry.updated_at, view.now), class_="dim"),
            read,
            notes,
            el("code", parts.clip(info.id, 60), class_="dim"),
            class_="meta",
        ),
        class_="item",
        data_item=True,
        tabindex=-1,
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


PAGES = (PageRow("sessions", sessions, menu="Sessions", letter="e", place=15),)
