"""What outlives a session: memory under keys, and handoffs, each with its history."""

from __future__ import annotations

from collections.abc import Sequence

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.markdown import markdown
from limpet.doors.dashboard.pages.history import steps
from limpet.doors.dashboard.view import SESSION, DrawnPage, PageRow, View
from limpet.memory import layers
from limpet.memory.handoff import changes_since
from limpet.model import HANDOFF, MEMORY, PERSON, Entry, Memory, as_handoff, as_memory, milliseconds
from limpet.store import EventQuery
from limpet.upkeep import paging

NO_SUCH_KEY = "Nothing that is remembered says this."
NO_MEMORY = (
    "Nothing is remembered yet. Agents keep lasting knowledge of the project here with `write_memory`, and you with "
    "the form beside this, or `limpet memory write`."
)


def memory(view: View) -> DrawnPage:
    query, replaced = view.param("q"), view.param("replaced") == "yes"
    left = 0
    entries: list[Memory] = []
    if query.strip():
        limit = limits.MEMORY_LIMIT_MAX
        matches = view.run("search_memory", query=query, limit=limit, include_replaced=replaced).matches
        rows = [_row(view, match) for match in matches]
    else:
        own, left = paging.memory(view.context(), limits.LIST_MAX, include_replaced=replaced)
        entries = [as_memory(entry) for entry in own]
        for layer, below, _ in layers.entries_below(view.context(), limits.LIST_MAX, include_replaced=replaced):
            entries += [as_memory(entry)._replace(layer=layer.name) for entry in below]
        page = view.number("page") or 0
        visible = entries[page * limits.DASHBOARD_PAGE :][: limits.DASHBOARD_PAGE]
        rows = [_row(view, entry) for entry in visible]
        left += max(0, len(entries) - (page + 1) * limits.DASHBOARD_PAGE)
    page = view.number("page") or 0
    older = view.with_query(page=page + 1) if left and rows and not query else None
    form = el(
        "form",
        el("label", "Text", class_="unseen", for_="q"),
        html.field(query, type="search", name="q", id="q", placeholder="Text or key"),
        el(
            "span",
            el("input", type="checkbox", name="replaced", value="yes", id="replaced", checked=replaced),
            el("label", "replaced and expired too", for_="replaced"),
            class_="check",
        ),
        el("button", "Show", class_="plain"),
        action=view.link("/memory"),
        method="get",
        class_="filters",
    )
    body = el("ul", rows, class_="rows cards") if rows else parts.nothing(NO_SUCH_KEY if query.strip() else NO_MEMORY)
    main = html.many(
        parts.heading("Memory", sub="What every session of the project knows. Pinned comes first."),
        form,
        el(
            "div",
            el("div", body, parts.pager(view, view.with_query(page=None) if page else None, older)),
            el("aside", _new(view), class_="side"),
            class_="with-side",
        ),
    )
    return DrawnPage("Memory", main, "/memory")


def _at(memory_: Memory) -> int:
    return milliseconds(memory_.updated_at.isoformat())


def _row(view: View, entry: Memory) -> Html:
    key = entry.key
    layer = {"layer": entry.layer} if entry.layer else {}
    pin = ("unpin_memory", "Unpin") if entry.pinned else ("pin_memory", "Pin")
    return el(
        "li",
        el(
            "div",
            el("a", el("strong", parts.clip(key, 90)), href=view.link("/remembered", key=key, **layer), data_open=True),
            parts.state("pinned") if entry.pinned else None,
            parts.badge(entry.layer) if entry.layer else None,
            parts.validity(view, entry.validity),
            el("span", parts.when(_at(entry), view.now), class_="dim"),
            parts.button(view, "pin_memory", *pin, key=key, **layer),
            parts.button(view, "delete_memory", "delete_memory", "Delete", key=key, **layer),
            class_="meta",
        ),
        markdown(parts.clip(entry.content)),
        class_="item",
        data_item=True,
        tabindex=-1,
    )


def _new(view: View) -> Html:
    if not view.may("write_memory"):
        return html.many()
    form = parts.form(
        view,
        "write_memory",
        el("label", "Key", for_="new-key"),
        html.field("", id="new-key", name="key", required=True),
        el("label", "Text", for_="new"),
        html.area("", id="new", name="content", rows=5, required=True),
        parts.life_fields("new"),
        _layer_field(view),
        el("button", "Remember"),
        class_="stack",
    )
    return parts.panel("New entry", form)


def _layer_field(view: View) -> Html:
    """Where it counts: here, or everywhere for the person who looks."""
    if layers.person(view.context(), even_new=True) is None:
        return html.many()
    options = (("", "this project"), (PERSON, "every project of mine"))
    choices = el("select", [el("option", words, value=name) for name, words in options], name="layer", id="new-layer")
    return html.many(el("label", "Counts in", for_="new-layer"), choices)


def remembered(view: View) -> DrawnPage:
    key = view.param("key")
    named = view.param("layer") if view.param("layer") in layers.LAYERS else None
    entry = view.run("read_memory", key=key, layer=named)
    layer = {"layer": entry.layer} if entry.layer else {}
    ctx = layers.named(view.context(), entry.layer or None)
    events, _ = paging.changes(ctx, EventQuery(MEMORY, entry.key, limit=limits.DASHBOARD_PAGE))
    pin = ("unpin_memory", "Unpin") if entry.pinned else ("pin_memory", "Pin")
    main = html.many(
        parts.heading(
            parts.clip(entry.key, 120),
            parts.button(view, "pin_memory", *pin, key=entry.key, class_="plain", **layer),
            parts.button(
                view,
                "delete_memory",
                "delete_memory",
                "Delete",
                key=entry.key,
                class_="plain danger",
                back="/memory",
                **layer,
            ),
            sub=html.many(parts.state("pinned") if entry.pinned else None, " ", parts.when(_at(entry), view.now)),
        ),
        el("div", parts.validity(view, entry.validity), parts.uses(view, MEMORY, entry.key), class_="meta"),
        parts.text_card(entry.content),
        parts.life(view, paging.entry(ctx, MEMORY, entry.key), events),
        _edit(
            view,
            "write_memory",
            "write_memory",
            entry.content,
            key=entry.key,
            expected_version=str(entry.version),
            **layer,
        ),
        parts.panel("History", steps(view, events)) if not layer else None,
    )
    return DrawnPage(parts.clip(entry.key, 60), main, "/memory")


def handoffs(view: View) -> DrawnPage:
    waiting = paging.handoffs(view.context())
    rows = [_handoff(view, entry) for entry in waiting]
    body = el("ul", rows, class_="rows cards") if rows else parts.nothing("No session has left a handoff yet.")
    main = html.many(
        parts.heading("Handoffs", sub="What one session leaves for the next, by line of work."),
        body,
        _edit(
            view,
            "write_session_handoff",
            "write_handoff",
            "",
            words="Leave a handoff",
            line="main",
            session=SESSION,
        ),
    )
    return DrawnPage("Handoffs", main, "/handoffs")


def _handoff(view: View, entry: Entry) -> Html:
    return el(
        "li",
        el(
            "div",
            parts.state("used" if entry.done else "waiting"),
            el(
                "a",
                el("strong", parts.clip(as_handoff(entry).line, 90)),
                href=view.link("/handoff", id=entry.key),
                data_open=True,
            ),
            el("span", "from ", parts.session_link(view, entry.session), class_="dim"),
            el("span", parts.when(entry.updated_at, view.now), class_="dim"),
            class_="meta",
        ),
        markdown(parts.clip(entry.content)),
        None if entry.done else _since(changes_since(view.context(), as_handoff(entry))),
        class_="item",
        data_item=True,
        tabindex=-1,
    )


def _since(changes: Sequence[str]) -> Html | None:
    """What has changed since a handoff was written, below it."""
    return el("ul", (el("li", change) for change in changes), class_="dim") if changes else None


def handoff(view: View) -> DrawnPage:
    """One handoff, by its id, or the newest of a line of work."""
    answer = view.run("read_handoff", id=view.param("id") or None, line=view.param("line") or None)
    reply = answer.handoff
    events, _ = paging.changes(view.context(), EventQuery(HANDOFF, reply.id, limit=limits.DASHBOARD_PAGE))
    by = parts.session_link(view, reply.written_by)
    used = html.many(" · used by ", parts.session_link(view, reply.used_by)) if reply.used_by else " · waiting"
    fields = {"line": reply.line, "session": reply.written_by}  # what a person edits here is replaced
    main = html.many(
        parts.heading(parts.clip(reply.line, 120), sub=html.many("left by ", by, used)),
        parts.text_card(reply.content),
        _since(answer.since),
        _edit(view, "write_session_handoff", "write_handoff", reply.content, **fields),
        parts.panel("History", steps(view, events)),
    )
    return DrawnPage(f"Handoff {parts.clip(reply.line, 40)}", main, "/handoffs")


def _edit(view: View, operation: str, action: str, content: str, *, words: str = "Edit", **hidden: str) -> Html:
    area = html.area(content, id="content", name="content", rows=10, required=True)
    label = el("label", "Text", for_="content")
    return parts.edit(view, operation, action, label, area, words=words, **hidden)


PAGES = (
    PageRow("memory", memory, menu="Memory", letter="m", place=30),
    PageRow("remembered", remembered),
    PageRow("handoffs", handoffs, menu="Handoffs", letter="h", place=40),
    PageRow("handoff", handoff),
)
