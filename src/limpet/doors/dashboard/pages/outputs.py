"""Outputs: big results of tools, kept whole. A list, and a reader for lines and for places where a text stands."""

from __future__ import annotations

from limpet import limits
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.view import Listed, Page, View
from limpet.model import Output
from limpet.upkeep import paging

LINES = 200  # of an output on one page
AROUND = 2  # lines around a place that was found


def outputs(view: View) -> Page:
    page = view.number("page") or 0
    limit = min(limits.LIST_MAX, (page + 1) * limits.DASHBOARD_PAGE)
    reply = view.run("scratchpad_list", limit=limit)
    visible = reply.outputs[page * limits.DASHBOARD_PAGE :]
    rows = [_row(view, output_) for output_ in visible]
    body = (
        parts.table(("Output", "Tool", "Size", "Lines", "Session", "Used"), rows, frozenset((2, 3)))
        if rows
        else parts.nothing("No output is kept yet. Big results of tools come here instead of into the window.")
    )
    newest = view.with_query(page=None) if page else None
    older = view.with_query(page=page + 1) if reply.left_out and limit < limits.LIST_MAX else None
    stats = reply.stats
    sub = f"{stats.entries:,} kept, {parts.size(stats.total_bytes)}, {parts.size(stats.stored_bytes)} on disk"
    main = html.many(parts.heading("Outputs", sub=sub), el("div", body, class_="log"), parts.pager(view, newest, older))
    return Page("Outputs", main, "/outputs")


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
        el("a", parts.clip(output_.session, 30), href=view.link("/session", id=output_.session)),
        parts.when(output_.used_at, view.now),
    ]


def output(view: View) -> Page:
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
        ("Kept", html.many(parts.when(output_.created_at, view.now), f", used {output_.uses:,} times")),
        ("Session", el("a", output_.session, href=view.link("/session", id=output_.session))),
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
    return Page(f"Output {output_.id}", main, "/outputs", live=False)


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


PAGES = (
    Listed("outputs", outputs, menu="Outputs", letter="u", place=50),
    Listed("output", output),
)
