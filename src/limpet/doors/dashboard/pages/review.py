"""What waits for the person who looks: proposals of agents for the person's memory."""

from __future__ import annotations

from limpet.doors.dashboard import parts
from limpet.doors.dashboard.html import Html, el, many
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.memory.review import Proposal


def review(view: View) -> DrawnPage:
    waiting = view.run("list_proposals").proposals
    rows = [_row(view, proposal) for proposal in waiting]
    body = el("ul", rows, class_="rows cards") if rows else parts.nothing("Nothing waits for you.")
    sub = "Texts that count once you accept them: what agents propose for your own memory."
    return DrawnPage("Review", many(parts.heading("Review", sub=sub), body), "/review")


def _row(view: View, proposal: Proposal) -> Html:
    before = parts.difference(proposal.before, proposal.content) if proposal.before is not None else None
    return el(
        "li",
        el(
            "div",
            parts.badge(proposal.kind),
            el("strong", parts.clip(proposal.key or proposal.id, 90)),
            el("span", f"for {proposal.layer}, by {parts.clip(proposal.by, 60)}", class_="dim"),
            el("span", parts.when(proposal.at, view.now), class_="dim"),
            parts.button(view, "accept_proposal", "accept_proposal", "Accept", id=proposal.id),
            parts.button(view, "reject_proposal", "reject_proposal", "Reject", id=proposal.id),
            class_="meta",
        ),
        parts.text(proposal.content),
        before,
        class_="item",
        data_item=True,
        tabindex=-1,
    )


PAGES = (PageRow("review", review, menu="Review", letter="v", place=35),)
