"""The overview of a project: what needs a look, the sessions as a tree, and what was done last."""

from __future__ import annotations

from collections.abc import Sequence

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.markdown import plain
from limpet.doors.dashboard.pages.start import delete_button
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.errors import LimpetError
from limpet.memory import anchors
from limpet.model import FOLD, NOTEPAD, Entry, Event, Validity, as_handoff, as_session
from limpet.record import NamedTuple
from limpet.upkeep import paging

LATEST = 12  # changes shown
ALERTS = 8
DAY_MS = 86_400_000


class Alert(NamedTuple):
    words: str
    href: str
    weight: str = "note"  # or "warn"


def overview(view: View) -> DrawnPage:
    ctx = view.context()
    every = view.param("archived") != "no"
    sessions, left = paging.sessions(ctx, include_archived=every, limit=limits.DASHBOARD_SESSIONS)
    active = paging.session_count(ctx)
    events = paging.last_changes(ctx)
    handoffs = paging.handoffs(ctx)
    saved = view.run("savings")
    tags = view.run("list_tags", "*")
    stats = ctx.store.outputs.stats(ctx.scope)
    figures = el(
        "dl",
        parts.figure(f"{saved.total.saved:,}", "Tokens saved", f"of {saved.total.observed:,} that tools returned"),
        parts.figure(tags.total_notes, "Notes", f"{len(tags.tags):,} tags"),
        parts.figure(stats.entries, "Outputs kept", parts.size(stats.total_bytes)),
        parts.figure(active, "Active sessions", f"of {len(sessions) + left:,}" if every else None),
        class_="figures",
    )
    alerts = _alerts(view, handoffs, events)
    main = html.many(
        _about_sample(view),
        parts.heading("Overview", sub=f"What {view.project_name} remembers"),
        figures,
        _attention(alerts),
        el(
            "div",
            parts.panel("Sessions", _tree(view, sessions, events), _left(view, left), beside=_archived(view, every)),
            parts.panel("Latest changes", _latest(view, events[:LATEST]), beside=_all(view)),
            class_="split",
        ),
    )
    return DrawnPage("Overview", main, "/overview")


def _about_sample(view: View) -> Html:
    if not view.is_sample:
        return html.many()
    words = el("span", "This is the sample project. Nothing in it is yours; it has a folder of its own. ")
    return el("div", words, el("a", "Back to your project", href="/overview"), delete_button(), class_="banner meta")


def _attention(alerts: Sequence[Alert]) -> Html:
    if not alerts:
        return html.many()
    rows = [el("li", el("a", alert.words, href=alert.href), class_=alert.weight) for alert in alerts]
    return el(
        "section", el("h2", "Worth a look", class_="unseen"), el("ul", rows), class_="alerts", aria_label="Alerts"
    )


def _alerts(view: View, handoffs: Sequence[Entry], events: Sequence[Event]) -> list[Alert]:
    alerts = [
        Alert(
            f"A handoff waits on {parts.clip(as_handoff(handoff).line, 40)}: {parts.line(plain(handoff.content), 90)}",
            view.link("/handoff", id=handoff.key),
        )
        for handoff in handoffs
        if not handoff.done
    ]
    waiting = view.run("list_proposals").proposals
    if waiting:
        oldest = parts.ago(waiting[0].at, view.now)
        words = f"Waiting for your review: {len(waiting):,}, the oldest from {oldest}"
        alerts.append(Alert(words, view.link("/review")))
    for server in view.run("list_seals"):
        changed = [pin.tool for pin in server.pins if pin.state != "sealed"]
        if changed:
            words = f"Tools of {server.name} changed since they were first seen: {parts.line(', '.join(changed), 80)}"
            alerts.append(Alert(words, view.link("/history", kind="seals"), "warn"))
    done: set[tuple[str, str]] = set()
    for event in events:
        if event.kind not in (FOLD, NOTEPAD) or event.at < view.now - DAY_MS or (event.session, event.kind) in done:
            continue
        done.add((event.session, event.kind))  # the newest of a kind is current; earlier ones are over
        if words := _trouble(view, event):
            alerts.append(Alert(words, view.link("/session", id=event.session), "warn"))
    return [*alerts, *_drifted(view)][:ALERTS]


def _drifted(view: View) -> list[Alert]:
    """Memory and decisions whose source is not any more as it was cited."""
    if view.visit.project is None or not view.visit.project.has_folder:
        return []
    alerts = []
    for entry in paging.memory(view.context(), limits.LIST_MAX)[0]:
        cited = Validity.of(entry.extra).anchors
        look = anchors.worst(anchors.looks(view.context(), cited)) if cited else None
        if look is not None and look.state in ("drifted", "gone"):
            words = f"Memory {parts.clip(entry.key, 40)} cites {parts.clip(look.place, 60)}, which is {look.state}"
            alerts.append(Alert(words, view.link("/remembered", key=entry.key), "warn"))
    return alerts + _decisions(view)


def _decisions(view: View) -> list[Alert]:
    try:
        checked = view.run("verify_journal", check=True).checked if view.may("verify_journal") else ()
    except LimpetError:
        return []  # there is no journal
    bad = [quote for quote in checked if quote.verdict.state in ("drifted", "gone")]
    words = [f"The journal's {parts.line(quote.what, 50)} cites a place that is {quote.verdict.state}" for quote in bad]
    return [
        Alert(word, view.link("/journal", **{"as": "source"}) + f"#L{quote.line}", "warn")
        for word, quote in zip(words, bad, strict=True)
    ]


def _trouble(view: View, event: Event) -> str:
    """What is wrong after a change, as far as the change itself tells."""
    entry = event.after
    if entry is None:
        return ""
    name = parts.clip(parts.session_name(view, event.session), 60)
    if event.kind == FOLD and entry.extra.get("missing"):
        return f"A compaction of {name} left {len(entry.extra['missing'])} facts out; recall still finds them"
    if event.kind == FOLD and event.operation == "warn" and not entry.done:
        return f"The window of {name} is filling up"
    budget = view.hold.bounds.notepad_budget_tokens
    if event.kind == NOTEPAD and entry.extra.get("tokens", 0) > budget:
        return f"The notepad of {name} has {entry.extra['tokens']:,} tokens; its budget is {budget:,}"
    return ""


def _tree(view: View, sessions: Sequence[Entry], events: Sequence[Event]) -> Html:
    if not sessions:
        return parts.nothing("No session yet. ", el("a", "What to do first", href=view.link("/start")))
    newest: dict[str, Event] = {}
    for event in events:
        newest.setdefault(event.session, event)
    keys = {session.key for session in sessions}
    children: dict[str, list[Entry]] = {}
    for session in sessions:
        children.setdefault(session.session if session.session in keys else "", []).append(session)

    def at(session: Entry) -> int:
        return newest[session.key].at if session.key in newest else session.updated_at

    def branch(parent: str) -> Html:
        ordered = sorted(children.get(parent, ()), key=at, reverse=True)
        items = [
            el("li", _session(view, session, newest.get(session.key), at(session)), branch(session.key))
            for session in ordered
        ]
        return el("ul", items, class_="tree" if not parent else None) if items else html.many()

    return branch("")


def _session(view: View, entry: Entry, last: Event | None, at: int) -> Html:
    info = as_session(entry)
    state = parts.state(info.state) if info.state != "active" else None
    did = f"{parts.verb(last)}, " if last is not None else ""
    return el(
        "a",
        el("span", el("strong", parts.session_title(view.context(), entry)), state, class_="row-head"),
        el("span", did, parts.when(at, view.now), " · ", parts.clip(info.id, 40), class_="dim"),
        href=view.link("/session", id=entry.key),
        class_="row",
        data_item=True,
    )


def _latest(view: View, events: Sequence[Event]) -> Html:
    if not events:
        return parts.nothing("Nothing has happened yet.")

    def row(event: Event) -> Html:
        entry = event.after or event.before
        excerpt = parts.line(plain(entry.content), 90) if entry else ""
        return el(
            "li",
            el(
                "a",
                el("span", parts.badge(event.kind), el("span", parts.verb(event)), class_="row-head"),
                el("span", excerpt, class_="row-text") if excerpt else None,
                el("span", f"{event.by}, ", parts.when(event.at, view.now), class_="dim"),
                href=view.link("/change", seq=event.seq),
                class_="row",
                data_item=True,
            ),
        )

    return el("ul", map(row, events), class_="rows")


def _archived(view: View, every: bool) -> Html:
    label = "Only active" if every else "All of them"
    return el("a", label, href=view.with_query(archived="no" if every else None), class_="dim")


def _all(view: View) -> Html:
    return el("a", "All", href=view.link("/history"), class_="dim")


def _left(view: View, left: int) -> Html:
    words = f"All sessions, also {left:,} older ones" if left else "All sessions"
    return el("p", el("a", words, href=view.link("/sessions")))


PAGES = (PageRow("overview", overview, menu="Overview", letter="o", place=10),)
