"""Notes: leafing through all of them, filtering by tag and session, searching, and one note with its history."""

from __future__ import annotations

from collections.abc import Sequence

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.markdown import markdown
from limpet.doors.dashboard.pages.history import steps
from limpet.doors.dashboard.view import SESSION, DrawnPage, PageRow, View
from limpet.model import NOTE, Entry, Note, TagCount, as_note, milliseconds
from limpet.store import EventQuery
from limpet.upkeep import paging

TAGS_SHOWN = 40

NO_NOTES = "No notes yet. Agents write them with `add_note`, and you with the form beside this, or `limpet note add`."


def notes(view: View) -> DrawnPage:
    tag, query, session = view.param("tag"), view.param("q"), view.param("session")
    done = view.param("done") == "yes"
    counted = view.run("list_tags", session or "*", this_session=bool(session))
    if tag or query or session:
        matches, related, older, words = _search(view, tag, query, session, done)
    else:
        leaf = paging.notes(
            view.context(), view.param("before") or None, include_done=done, limit=limits.DASHBOARD_PAGE
        )
        matches, related = [as_note(entry) for entry in leaf.notes], []
        older = view.with_query(before=leaf.following) if leaf.following else None
        words = f"{leaf.total:,} in all"
    newest = view.with_query(before=None, page=None) if view.param("before") or view.param("page") else None
    rows = [_row(view, note_) for note_ in matches]
    body = (
        el("ul", rows, class_="rows cards")
        if rows
        else parts.nothing("No note is like that." if tag or query or session else NO_NOTES)
    )
    more = (
        parts.panel("Related", el("ul", [_row(view, note_) for note_ in related], class_="rows cards"))
        if related
        else None
    )
    aside = el("aside", _tag_list(view, counted.tags, tag), _add(view, session), class_="side")
    main = html.many(
        parts.heading("Notes", sub=words),
        _filters(view, query, session, tag, done),
        el("div", el("div", body, parts.pager(view, newest, older), more), aside, class_="with-side"),
    )
    return DrawnPage("Notes", main, "/notes")


def _search(
    view: View, tag: str, query: str, session: str, done: bool
) -> tuple[list[Note], list[Note], str | None, str]:
    """What a search finds, a page of it."""
    page = view.number("page") or 0
    limit = min(limits.LIST_MAX, (page + 1) * limits.DASHBOARD_PAGE)
    arguments = {"query": query, "tags": [tag] if tag else [], "include_done": done, "limit": limit}
    reply = view.run("search_notes", session or "*", this_session=bool(session), **arguments)
    page_notes = list(reply.notes[page * limits.DASHBOARD_PAGE :])
    following = reply.left_out and limit < limits.LIST_MAX
    words = f"{len(reply.notes) + reply.left_out:,} found"
    return page_notes, list(reply.related), view.with_query(page=page + 1) if following else None, words


def _filters(view: View, query: str, session: str, tag: str, done: bool) -> Html:
    hidden = [html.field(tag, type="hidden", name="tag")] if tag else []
    box = [
        el("input", type="checkbox", name="done", value="yes", id="done", checked=done),
        el("label", "done too", for_="done"),
    ]
    form = el(
        "form",
        hidden,
        el("label", "Text", class_="unseen", for_="q"),
        html.field(query, type="search", name="q", id="q", placeholder="Text in notes"),
        el("label", "Session", class_="unseen", for_="session"),
        html.field(session, name="session", id="session", placeholder="Session, or all"),
        el("span", box, class_="check"),
        el("button", "Show", class_="plain"),
        action=view.link("/notes"),
        method="get",
        class_="filters",
    )
    lit = (
        el("a", f"#{tag}  ✕", href=view.with_query(tag=None, page=None), class_="chip", aria_label=f"Without {tag}")
        if tag
        else None
    )
    return html.many(form, lit)


def _row(view: View, note: Note) -> Html:
    head = [_state(view, note), parts.tags(view, note.tags)]
    meta = [
        el("a", parts.when(milliseconds_of(note), view.now), href=view.link("/note", id=note.id), data_open=True),
        " · ",
        parts.session_link(view, note.session, 50),
    ]
    done = ("reopen_note", "Reopen") if note.done else ("finish_note", "Done")
    return el(
        "li",
        markdown(parts.clip(note.content)),
        el(
            "div",
            el("span", head),
            el("span", meta, class_="dim"),
            parts.button(view, "update_note", *done, id=note.id),
            class_="meta",
        ),
        class_="item",
        data_item=True,
        tabindex=-1,
    )


def _state(view: View, note: Note) -> Html:
    done = note.done and note.validity.replaced_by is None
    return html.many(parts.state("done") if done else None, parts.validity(view, note.validity))


def milliseconds_of(note: Note) -> int:
    return milliseconds(note.updated_at.isoformat())


def _tag_list(view: View, tags: Sequence[TagCount], lit: str) -> Html:
    ordered = sorted(tags, key=lambda count: (-count.notes, count.tag))[:TAGS_SHOWN]
    if not ordered:
        return html.many()

    def item(tag_count: TagCount) -> Html:
        name, count = tag_count
        current = "true" if name == lit else None
        return el(
            "li", el("a", f"#{name}", href=view.link("/notes", tag=name), class_="tag", aria_current=current), count
        )

    return parts.panel("Tags", el("ul", map(item, ordered), class_="tag-list"))


def _add(view: View, session: str) -> Html:
    if not view.may("add_note"):
        return html.many()
    form = parts.form(
        view,
        "add_note",
        el("label", "Text", for_="new"),
        html.area("", id="new", name="content", rows=4, required=True, maxlength=view.hold.bounds.note_max_chars),
        el("label", "Tags, with commas", for_="new-tags"),
        html.field("", id="new-tags", name="tags"),
        parts.life_fields("new"),
        el("button", "Keep"),
        class_="stack",
        session=session or SESSION,
    )
    return parts.panel("New note", form)


def note(view: View) -> DrawnPage:
    id = view.param("id")
    entry = paging.note(view.context(), id)
    events, _ = paging.changes(view.context(), EventQuery(NOTE, id, limit=limits.DASHBOARD_PAGE))
    main = html.many(
        parts.heading(
            "Note",
            _buttons(view, entry),
            sub=html.many(el("code", entry.key), " · ", parts.session_link(view, entry.session)),
        ),
        el(
            "div",
            _state(view, as_note(entry)),
            parts.tags(view, entry.tags),
            parts.uses(view, NOTE, entry.key),
            class_="meta",
        ),
        parts.text_card(entry.content),
        parts.life(view, entry, events),
        _edit(view, entry),
        parts.panel("History", steps(view, events)),
    )
    return DrawnPage("Note", main, "/notes")


def _buttons(view: View, entry: Entry) -> Html:
    done = ("reopen_note", "Reopen") if entry.done else ("finish_note", "Mark done")
    return html.many(
        parts.button(view, "update_note", *done, id=entry.key, class_="plain"),
        parts.button(view, "delete_note", "delete_note", "Delete", id=entry.key, class_="plain danger", back="/notes"),
    )


def _edit(view: View, entry: Entry) -> Html:
    return parts.edit(
        view,
        "update_note",
        "edit_note",
        el("label", "Text", for_="content"),
        html.area(entry.content, id="content", name="content", rows=8, required=True),
        el("label", "Tags, with commas", for_="tags"),
        html.field(", ".join(entry.tags), id="tags", name="tags"),
        id=entry.key,
    )


PAGES = (
    PageRow("notes", notes, menu="Notes", letter="n", place=20),
    PageRow("note", note),
)
