"""A session: its story on a time line, newest first, and its notepad with every version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Child, Html, el
from limpet.doors.dashboard.pages.history import undo_button, what
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.model import FOLD, NOTE, NOTEPAD, OUTPUT, TASK, Entry, Event, Notepad, Output, as_session
from limpet.record import NamedTuple
from limpet.session.records import SessionRecord, TaskRecord
from limpet.store import EventQuery
from limpet.upkeep import paging
from limpet.window.plan.folding import CLEAR, EDIT, RESTORE, REWIND
from limpet.window.transcript import WARN, FoldRecord

KINDS = (
    ("", "All"),
    (NOTE, "Notes"),
    (NOTEPAD, "Notepad"),
    (TASK, "Tasks"),
    (OUTPUT, "Outputs"),
    (FOLD, "Window"),
    ("memory", "Memory"),
    ("handoff", "Handoffs"),
    ("pin", "Pins"),
    ("session", "Sessions"),
)
MEASURED_MESSAGES = 1_500  # a session with more is measured when asked, so that its story is there at once


class Step(NamedTuple):
    """One thing that happened."""

    at: int
    kind: str
    body: Html


def session(view: View) -> DrawnPage:
    id = view.param("id")
    entry = paging.session(view.context(), id)
    kind, before = view.param("kind"), view.number("before")
    ctx = view.context(id)
    events: tuple[Event, ...] = ()
    following: int | None = None
    if kind != OUTPUT:
        query = EventQuery(kind or None, session=id, before_seq=before, limit=limits.DASHBOARD_PAGE)
        events, following = paging.changes(ctx, query)
    outputs: Sequence[Output] = ()
    if kind in ("", OUTPUT):
        outputs = _within(paging.outputs_of(ctx), events, first=before is None, last=following is None)
    steps = [Step(event.at, event.kind, _event(view, event)) for event in events]
    steps += [Step(output.created_at, OUTPUT, _output(view, output)) for output in outputs]
    newest = view.with_query(before=None) if before else None
    older = view.with_query(before=following) if following else None
    story = html.many(
        parts.choices(view, "kind", KINDS, kind),
        _timeline(sorted(steps, key=lambda step: -step.at)),
        parts.pager(view, newest, older),
    )
    main = html.many(
        _head(view, entry),
        el("div", el("div", story), el("aside", _beside(view, id), class_="side"), class_="with-side"),
    )
    return DrawnPage(f"Session {parts.session_title(ctx, entry)}", main, "/sessions")


def _within(outputs: Sequence[Output], events: Sequence[Event], *, first: bool, last: bool) -> list[Output]:
    """Outputs of the stretch of time that the page's events cover."""
    newest = None if first or not events else events[0].at
    oldest = None if last or not events else events[-1].at
    return [
        output
        for output in outputs
        if (newest is None or output.created_at <= newest) and (oldest is None or output.created_at > oldest)
    ]


def _head(view: View, entry: Entry) -> Html:
    info = as_session(entry)
    record = SessionRecord.from_json(entry.extra)
    if entry.done and not record.outcome:
        change = parts.button(view, "begin_session", "resume_session", "Resume", class_="plain", session=entry.key)
    elif not entry.done:
        change = parts.button(view, "archive_session", "archive_session", "Archive", class_="plain", id=entry.key)
    else:
        change = html.many()
    parent = html.many("part of ", parts.session_link(view, info.parent), " · ") if info.parent else None
    ctx = view.context(entry.key)
    title = parts.session_title(ctx, entry)
    since = html.many(parent, "begun ", parts.when(entry.created_at, view.now), " · ", el("code", info.id))
    count = paging.message_count(ctx)
    read = el(
        "a", f"Read the conversation ({count:,} messages)", href=view.link("/messages", session=entry.key), class_="go"
    )
    return html.many(
        parts.heading(html.many(parts.state(info.state), " ", title), read if count else None, change, sub=since),
        el("p", parts.clip(info.task, 700), class_="lead") if len(info.task) > len(title) else None,
        parts.panel("Result", parts.prose(record.result)) if record.result else None,
    )


def _timeline(steps: Sequence[Step]) -> Html:
    if not steps:
        return parts.nothing("Nothing of this kind happened here.")
    days: dict[str, list[Html]] = {}
    for step in steps:
        item = el("li", parts.clock(step.at), step.body, class_=f"step k-{step.kind}", data_item=True, tabindex=-1)
        days.setdefault(parts.day(step.at), []).append(item)
    return html.many([(el("h2", name, class_="day"), el("ol", items, class_="story")) for name, items in days.items()])


# --- one step ---------------------------------------------------------------------------------------------------------


def _event(view: View, event: Event) -> Html:
    tell = TELLING.get(event.kind, _plain)
    href = parts.leads(view, event.kind, event.key) if event.kind != "session" else None
    name = el("a", event.kind.replace("_", " "), href=href) if href else event.kind.replace("_", " ")
    head = el(
        "div",
        el("strong", parts.verb(event)),
        el("span", name, class_=f"badge k-{event.kind}"),
        el("span", event.by, class_="dim"),
        el("a", f"#{event.seq}", href=view.link("/change", seq=event.seq), class_="dim", data_open=True),
        undo_button(view, event),
        class_="meta",
    )
    return el("div", head, tell(view, event), class_="body")


def _plain(view: View, event: Event) -> Html:
    return what(event)


def _note(view: View, event: Event) -> Html:
    entry = event.after or event.before
    tags = parts.tags(view, entry.tags) if entry and event.before is None else None
    return html.many(what(event), tags)


def _task(view: View, event: Event) -> Html:
    entry = event.after or event.before
    if entry is None:
        return html.many()
    task = TaskRecord.from_json(entry.extra)
    outcome = parts.prose(task.outcome) if task.outcome else None
    ledger = parts.prose(task.ledger, name="What was done in it") if task.ledger else None
    return html.many(el("p", parts.clip(entry.content)), outcome, ledger)


def _fold(view: View, event: Event) -> Html:
    entry = event.after or event.before
    if entry is None:
        return html.many()
    fold = FoldRecord.from_json(entry.extra)
    if fold.how == WARN:
        return el("p", f"At message {fold.first + 1:,}, with {fold.limit or 0:,} tokens to fill.")
    first, last = fold.first + 1, fold.last + 1
    messages = el(
        "a",
        f"messages {first:,} to {last:,}",
        href=view.link("/messages", session=entry.session, first=first, last=last),
    )
    if fold.how == CLEAR:
        lines = fold.lines or {}
        facts = el("ul", [el("li", parts.line(str(fact))) for fact in list(lines.values())[:20]])
        return html.many(el("p", f"{len(lines):,} results became one line each, among ", messages, "."), facts)
    if fold.how == EDIT:
        where = html.many("in place of ", messages) if last >= first else f"after message {last:,}"
        return el("p", f"The caller has {len(fold.messages or ()):,} messages of its own ", where, ".")
    if fold.how in (REWIND, RESTORE):
        return el("p", messages, " were left." if fold.how == REWIND else " are shown again.")
    return _compaction(view, entry, event, messages, (first, last))


def _probed(score: float | None) -> str:
    return "no facts were recognised" if score is None else f"{score:.0%} of the facts probed are there"


def _compaction(view: View, entry: Entry, event: Event, messages: Html, span: tuple[int, int]) -> Html:
    fold = FoldRecord.from_json(entry.extra)
    sizes = None
    if fold.before and fold.after:
        rows = (("kept", fold.after),)
        sizes = html.many(
            parts.stack(rows, fold.before, "What was kept of the window"),
            el(
                "p",
                f"{fold.before:,} → {fold.after:,} tokens, {_probed(fold.score)}",
            ),
        )
    missing = fold.missing or ()
    dropped = (
        el(
            "details",
            el("summary", f"{len(missing):,} facts left out (recall still finds them)"),
            el("ul", [el("li", parts.clip(fact, 200)) for fact in missing]),
        )
        if missing
        else el("p", "Nothing that was probed is missing.", class_="dim")
    )
    back = html.many()
    if event.after is not None and not event.after.done and event.operation == "compact":
        back = parts.button(
            view,
            "uncompact",
            "uncompact",
            "Bring back",
            class_="plain",
            session=entry.session,
            first=span[0],
            last=span[1],
        )
    summary = html.many(el("h3", "Kept"), parts.text(entry.content, name="The whole summary"))
    return html.many(
        sizes, el("div", el("span", "Folded: ", messages), back, class_="meta"), summary, el("h3", "Dropped"), dropped
    )


TELLING: Mapping[str, Callable[[View, Event], Html]] = {NOTE: _note, TASK: _task, FOLD: _fold}


def _output(view: View, output: Output) -> Html:
    head = el(
        "div",
        el("strong", "kept an output"),
        el("span", "output", class_="badge k-output"),
        el("a", output.id, href=view.link("/output", id=output.id), data_open=True),
        el("span", f"{parts.clip(output.tool, 60)} · {parts.size(output.size)} · {output.lines:,} lines", class_="dim"),
        class_="meta",
    )
    return el("div", head, parts.text(output.preview, name="The whole preview"), class_="body")


# --- beside it --------------------------------------------------------------------------------------------------------


def _beside(view: View, id: str) -> Html:
    saved = view.run("savings", session=id).total
    pad = view.run("read_notepad", id)
    figures = el(
        "dl", parts.figure(f"{saved.saved:,}", "Tokens saved", f"{saved.calls:,} big results"), class_="figures one"
    )
    return html.many(_gauge(view, id), figures, _pad(view, id, pad.content, pad.tokens), _pins(view, id))


def _gauge(view: View, id: str) -> Html:
    count = paging.message_count(view.context(id))
    if count > MEASURED_MESSAGES and view.param("gauge") != "yes":
        show = el("a", "Show what fills it", href=view.with_query(gauge="yes"))
        return parts.panel("Window", el("p", f"{count:,} messages, which take a moment to measure. ", show))
    gauge = view.run("show_window", id)
    rows = [(name, tokens) for name, tokens in gauge.sections.items() if tokens]
    share = gauge.used / gauge.limit if gauge.limit else 0
    legend = [
        el(
            "li",
            el("span", "", class_=f"dot c{at % parts.COLOURS}"),
            el("span", name),
            el("span", tokens, class_="number"),
        )
        for at, (name, tokens) in enumerate(rows)
    ]
    return parts.panel(
        "Window",
        el("p", el("strong", f"{share:.0%}"), f" of {gauge.limit:,} tokens: {gauge.used:,}", class_="gauge-sum"),
        parts.stack(rows, gauge.limit, f"The window is {share:.0%} full"),
        el("ul", legend, class_="legend"),
        el("p", f"Left out: {', '.join(gauge.left_out)}", class_="dim") if gauge.left_out else None,
    )


def _pad(view: View, id: str, content: str, tokens: int) -> Html:
    beside = el("a", f"{tokens:,} tokens · versions", href=view.link("/notepad", session=id), class_="dim")
    body = parts.prose(content) if content else parts.nothing("Empty.")
    return parts.panel("Notepad", body, beside=beside, class_="notepad")


def _pins(view: View, id: str) -> Html:
    pins = view.run("list_pins", id).pins
    rows = [
        el(
            "li",
            parts.prose(pin.content),
            parts.button(view, "unpin_text", "unpin_text", "Unpin", session=id, id=pin.key),
        )
        for pin in pins
    ]
    add: Child = None
    if view.may("pin_text"):
        add = el(
            "details",
            el("summary", "Pin a text"),
            parts.form(
                view,
                "pin_text",
                el("label", "Every window of this session will hold it", for_="pin"),
                html.area("", id="pin", name="content", rows=3, required=True),
                el("button", "Pin"),
                class_="stack",
                session=id,
            ),
        )
    return parts.panel("Pinned", el("ul", rows, class_="rows") if rows else None, add)


# --- the notepad ------------------------------------------------------------------------------------------------------


def notepad(view: View) -> DrawnPage:
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
            sub=html.many(parts.session_link(view, id), f" · version {pad.version:,} · {pad.tokens:,} tokens"),
        ),
        parts.text_card(pad.content) if pad.content else parts.nothing("It is empty."),
        _edit_notepad(view, id, pad),
        parts.panel("Versions", el("ol", rows, class_="rows cards") if rows else parts.nothing("None yet.")),
        parts.pager(view, newest, older),
    )
    return DrawnPage("Notepad", main, "/sessions")


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


def _edit_notepad(view: View, id: str, pad: Notepad) -> Html:
    return parts.edit(
        view,
        "write_notepad",
        "write_notepad",
        el("label", "The whole notepad", for_="content"),
        html.area(pad.content, id="content", name="content", rows=14),
        el("p", "If an agent changes it in the meantime, nothing is overwritten: you are told.", class_="dim"),
        session=id,
        expected_version=pad.version,
    )


PAGES = (
    PageRow("session", session),
    PageRow("notepad", notepad),
)
