"""Outputs: big results of tools, kept whole: a list, a reader, and what they did not cost the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.model import Output, moment
from limpet.record import NamedTuple
from limpet.store import Savings
from limpet.upkeep import paging

LINES = 200  # of an output on one page
AROUND = 2  # lines around a place that was found
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 1060, 240, 52, 26, 12
DAYS = 60  # drawn at most
DAYS_LEAST = 14  # and at least, so that a first day is seen as one
ROWS = 40  # of a table
NO_OUTPUT = "No output is kept yet. Big results of tools come here instead of into the window."


def outputs(view: View) -> DrawnPage:
    page = view.number("page") or 0
    words, tool, session = view.param("q").casefold(), view.param("tool"), view.param("session")
    filtered = bool(words or tool or session)
    limit = limits.LIST_MAX if filtered else min(limits.LIST_MAX, (page + 1) * limits.DASHBOARD_PAGE)
    reply = view.run("list_outputs", limit=limit)
    matching = [output_ for output_ in reply.outputs if _fits(output_, words, tool, session)]
    visible = matching[page * limits.DASHBOARD_PAGE :][: limits.DASHBOARD_PAGE]
    rows = [_row(view, output_) for output_ in visible]
    body = (
        parts.table(("Output", "Tool", "Size", "Lines", "Session", "Used"), rows, frozenset((2, 3)))
        if rows
        else parts.nothing("No output is like that." if filtered else NO_OUTPUT)
    )
    newest = view.with_query(page=None) if page else None
    more = len(matching) > (page + 1) * limits.DASHBOARD_PAGE or (reply.left_out and limit < limits.LIST_MAX)
    older = view.with_query(page=page + 1) if more else None
    stats = reply.stats
    sub = f"{stats.entries:,} kept, {parts.size(stats.total_bytes)}, {parts.size(stats.stored_bytes)} on disk"
    age = view.hold.bounds.outputs.max_age // 86_400
    stay = f"An output goes {age:,} days after its last use, or when all together are too big. "
    why = el("p", stay, el("a", "How long things stay", href=view.link("/settings")), class_="dim")
    title = parts.heading("Outputs", sub=html.many(sub, why))
    main = html.many(title, _filters(view), el("div", body, class_="log"), parts.pager(view, newest, older))
    return DrawnPage("Outputs", main, "/outputs")


def _fits(output_: Output, words: str, tool: str, session: str) -> bool:
    text = f"{output_.id} {output_.tool} {output_.call} {output_.preview}".casefold()
    return words in text and tool in ("", output_.tool) and session in ("", output_.session)


def _filters(view: View) -> Html:
    def line(name: str, label: str) -> Html:
        field = html.field(
            view.param(name), name=name, id=name, placeholder=label, type="search" if name == "q" else None
        )
        return html.many(el("label", label, class_="unseen", for_=name), field)

    return el(
        "form",
        line("q", "Words of tool, call or preview"),
        line("tool", "Tool, or all"),
        line("session", "Session, or all"),
        el("button", "Show", class_="plain"),
        action=view.link("/outputs"),
        method="get",
        class_="filters",
    )


def _row(view: View, output_: Output) -> list[html.Child]:
    return [
        html.many(
            el(
                "a", output_.id, href=view.link("/output", id=output_.id), class_="mono", data_open=True, data_item=True
            ),
            el("span", parts.line(output_.preview, 90), class_="row-text dim"),
        ),
        html.many(parts.clip(output_.tool, 60), el("span", parts.clip(output_.shape, 30), class_="row-text dim")),
        parts.size(output_.size),
        output_.lines,
        parts.session_link(view, output_.session, 40),
        parts.when(output_.used_at, view.now),
    ]


def output(view: View) -> DrawnPage:
    id, sought = view.param("id"), view.param("find")
    regex = view.param("regex") == "yes"
    first = max(1, view.number("from") or 1)
    part = (
        paging.output_matches(view.context(), id, sought, regex=regex, around=AROUND)
        if sought
        else paging.output_lines(view.context(), id, first, LINES)
    )
    output_ = part.output
    facts = (
        ("Tool", parts.clip(output_.tool, 90)),
        ("Call", parts.line(output_.call, 160) or "not known"),
        ("Size", f"{parts.size(output_.size)}, {output_.lines:,} lines, {output_.shape or 'plain'}"),
        ("Kept", html.many(parts.when(output_.created_at, view.now), f", used {parts.times(output_.uses)}")),
        ("Session", parts.session_link(view, output_.session)),
        ("Secrets masked", output_.redacted),
    )
    body = _matches(part.content, part.note) if sought else _lines(view, part)
    delete = parts.button(
        view, "delete_output", "delete_output", "Delete", id=output_.id, class_="plain danger", back="/outputs"
    )
    main = html.many(
        parts.heading(el("span", output_.id, class_="mono"), delete, sub=el("code", f"hold://{output_.id}")),
        el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in facts], class_="facts"),
        el("details", el("summary", "Preview that the agent saw"), el("pre", output_.preview, class_="text mono")),
        _reader(view, output_.id, first, sought, regex),
        body,
    )
    return DrawnPage(f"Output {output_.id}", main, "/outputs", live=False)


def _reader(view: View, id: str, first: int, sought: str, regex: bool) -> Html:
    check = [
        el("input", type="checkbox", name="regex", value="yes", id="regex", checked=regex),
        el("label", "regular expression", for_="regex"),
    ]
    return el(
        "form",
        html.field(id, type="hidden", name="id"),
        el("label", "From line", for_="from"),
        el("input", type="number", name="from", id="from", min=1, value=first),
        el("label", "Find", for_="find"),
        html.field(sought, type="search", name="find", id="find"),
        el("span", check, class_="check"),
        el("button", "Read", class_="plain"),
        action=view.link("/output"),
        method="get",
        class_="filters",
    )


def _lines(view: View, part: paging.OutputLines) -> Html:
    rows = part.content.split("\n")
    if rows and not rows[-1]:
        rows.pop()
    lines = [el("span", row or " ", data_n=part.first + at) for at, row in enumerate(rows)]
    last = part.first + len(rows) - 1
    links = [
        el("a", "← Earlier", href=view.with_query(**{"from": max(1, part.first - LINES)}), rel="prev")
        if part.first > 1
        else None,
        el("span", f"lines {part.first:,} to {last:,} of {part.output.lines:,}", class_="dim"),
        el("a", "Later →", href=view.with_query(**{"from": last + 1}), rel="next")
        if last < part.output.lines
        else None,
    ]
    pager = el("nav", links, class_="pager", aria_label="Pages of the output")
    return html.many(el("pre", lines, class_="lines", tabindex=0), pager)


def _matches(content: str, note: str) -> Html:
    return html.many(
        el("p", note, class_="dim") if note else None, el("pre", content, class_="lines plain", tabindex=0)
    )


# --- savings ----------------------------------------------------------------------------------------------------------


def _scrolled(plot: Html) -> Html:
    """A plot that may be wider than the screen, and can be moved with the keyboard."""
    return el("div", plot, class_="scroll", tabindex=0, role="group", aria_label="Plot")


class Day(NamedTuple):
    name: str
    saved: int
    total: int  # of this day and all before


def savings(view: View) -> DrawnPage:
    saved = view.run("savings")
    total = saved.total
    sessions, _ = paging.sessions(view.context(), include_archived=True, limit=limits.LIST_MAX)
    began = {session.key: session.created_at for session in sessions}
    days = by_day(saved.rows, began)
    figures = el(
        "dl",
        parts.figure(f"{total.saved:,}", "Tokens saved", counted(total.tokenizer)),
        parts.figure(f"{total.observed:,}", "Would have entered", f"{total.calls:,} big results"),
        parts.figure(f"{total.returned:,}", "Shown instead"),
        parts.figure(f"{total.read_back:,}", "Read back later", f"{total.reads:,} reads"),
        class_="figures",
    )
    plot = chart(days) if days else parts.nothing("Nothing was saved yet: no big result has come by.")
    main = html.many(
        parts.heading(
            "Savings", sub="Observed, less what was shown instead, less what was read back. It may be below zero."
        ),
        figures,
        parts.panel("By the day a session began", plot),
        el(
            "div",
            parts.panel("By tool", _table(view, saved.rows, "tool")),
            parts.panel("By session", _table(view, saved.rows, "session")),
            class_="split even",
        ),
    )
    return DrawnPage("Savings", main, "/savings")


def counted(tokenizer: str) -> str:
    """`estimate(o200k)`, in words."""
    name = tokenizer.removeprefix("estimate(").removesuffix(")")
    return f"counted as {name}" if name == tokenizer else f"an estimate of {name}'s count"


def by_day(rows: Sequence[Savings], began: dict[str, int]) -> list[Day]:
    """One entry per day, also for days without sessions, so that the picture is true to time."""
    sums: dict[str, int] = {}
    for row in rows:
        if row.session in began:
            name = f"{moment(began[row.session]):%Y-%m-%d}"
            sums[name] = sums.get(name, 0) + row.saved
    if not sums:
        return []
    last = max(sums)
    at = datetime.fromisoformat(min(sums)).replace(tzinfo=UTC)
    at = min(at, datetime.fromisoformat(last).replace(tzinfo=UTC) - timedelta(days=DAYS_LEAST - 1))
    days: list[Day] = []
    total = 0
    while True:
        name = f"{at:%Y-%m-%d}"
        total += sums.get(name, 0)
        days.append(Day(name, sums.get(name, 0), total))
        if name >= last:
            return days[-DAYS:]
        at += timedelta(days=1)


def chart(days: Sequence[Day]) -> Html:
    """Bars for each day and a line for the sum, drawn on the server."""
    top = max(1, *(day.total for day in days), *(day.saved for day in days))
    low = min(0, *(day.total for day in days), *(day.saved for day in days))
    high = HEIGHT - BOTTOM - TOP

    def y(value: int) -> float:
        return TOP + high * (top - value) / (top - low)

    step = (WIDTH - LEFT - 8) / len(days)
    bars = [_bar(day, LEFT + at * step, step, y) for at, day in enumerate(days)]
    points = " ".join(f"{LEFT + (at + 0.5) * step:.1f},{y(day.total):.1f}" for at, day in enumerate(days))
    grid = []
    for part in range(5):
        value = low + (top - low) * part // 4
        grid.append(el("line", x1=LEFT, x2=WIDTH - 8, y1=f"{y(value):.1f}", y2=f"{y(value):.1f}", class_="grid"))
        grid.append(el("text", short(value), x=LEFT - 8, y=f"{y(value) + 4:.1f}", text_anchor="end"))
    every = max(1, -(-len(days) // 8))
    names = [
        el("text", day.name[5:], x=f"{LEFT + (at + 0.5) * step:.1f}", y=HEIGHT - 8, text_anchor="middle")
        for at, day in enumerate(days)
        if at % every == 0
    ]
    dots = (
        [
            el("circle", cx=f"{LEFT + (at + 0.5) * step:.1f}", cy=f"{y(day.total):.1f}", r=3, class_="dot")
            for at, day in enumerate(days)
            if day.saved
        ]
        if len(days) <= 31
        else []
    )
    label = f"Tokens saved, {days[0].name} to {days[-1].name}: {days[-1].total:,} in all"
    drawing = el(
        "svg",
        grid,
        bars,
        el("polyline", points=points, class_="sum"),
        dots,
        names,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="plot",
        role="img",
        aria_label=label,
    )
    key = el(
        "p",
        el("span", "", class_="dot c0"),
        " saved in the sessions of that day ",
        el("span", "", class_="dot c1"),
        " in all",
        class_="dim",
    )
    return html.many(_scrolled(drawing), key)


def _bar(day: Day, x: float, step: float, y: Callable[[int], float]) -> Html:
    above, below = y(max(0, day.saved)), y(min(0, day.saved))
    wide = max(1.0, min(28.0, step * 0.7))
    return el(
        "rect",
        el("title", f"{day.name}: {day.saved:,} saved"),
        x=f"{x + (step - wide) / 2:.1f}",
        y=f"{above:.1f}",
        width=f"{wide:.1f}",
        height=f"{max(0.5, below - above):.1f}",
        rx=2,
        class_="bar",
    )


def short(value: int) -> str:
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:.1f}M"
    return f"{value / 1_000:.0f}k" if abs(value) >= 1_000 else str(value)


def _table(view: View, rows: Sequence[Savings], name: str) -> Html:
    sums: dict[str, list[int]] = {}
    for row in rows:
        sums_of_row = sums.setdefault(getattr(row, name), [0, 0, 0])
        for at, value in enumerate((row.calls, row.observed, row.saved)):
            sums_of_row[at] += value
    ordered = sorted(sums.items(), key=lambda item: -item[1][2])[:ROWS]
    if not ordered:
        return parts.nothing("Nothing yet.")

    def cell(value: str) -> html.Child:
        text = parts.clip(value, 44)
        return el("a", text, href=view.link("/session", id=value)) if name == "session" else text

    lines = [[cell(key), *figures] for key, figures in ordered]
    return parts.table((name.capitalize(), "Results", "Observed", "Saved"), lines, frozenset((1, 2, 3)))


PAGES = (
    PageRow("outputs", outputs, menu="Outputs", letter="u", place=50),
    PageRow("output", output),
    PageRow("savings", savings, menu="Savings", letter="s", place=80),
)
