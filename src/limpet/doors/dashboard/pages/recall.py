"""Recall: one question to everything that is kept, with the words that were found lit and the reasons named."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.model import MESSAGE, NOTEPAD, OUTPUT
from limpet.recall.recall import CHOICES, Hit
from limpet.text.pieces import CLOSE, OPEN
from limpet.upkeep import paging

MOST = 30  # hits on the page
OTHERS = 5  # texts that a hit represents
MONO = (OUTPUT, NOTEPAD, MESSAGE)  # kinds whose columns and indents say something
TOKENS = 6_000  # of snippets: a page, not a window


def recall(view: View) -> DrawnPage:
    query, kind = view.param("q"), view.param("kind")
    options = [el("option", "everything", value="")]
    options += [el("option", name, value=name, selected=name == kind) for name in CHOICES]
    form = el(
        "form",
        el("label", "Question", class_="unseen", for_="q"),
        html.field(query, type="search", name="q", id="q", placeholder="Ask a plain question", autofocus=not query),
        el("label", "In", class_="unseen", for_="kind"),
        el("select", options, name="kind", id="kind"),
        el("button", "Ask"),
        action=view.link("/recall"),
        method="get",
        class_="filters wide",
    )
    body, words = html.many(), "Notes, notepads, memory, decisions, messages that left the window, and outputs."
    if query.strip():
        kinds = [kind] if kind in CHOICES else []
        weak = view.param("more") == "1"
        reply = view.run("recall", query=query, kinds=kinds, limit=MOST, tokens=TOKENS, more=weak)
        words = f"{len(reply.hits):,} found" + (f", {reply.left_out:,} weaker ones left out" if reply.left_out else "")
        rows = [_hit(view, hit) for hit in reply.hits]
        body = el("ol", rows, class_="rows cards") if rows else parts.nothing("Nothing that is kept says this.")
        if reply.nearest:
            link = el("a", "Show weak matches", href=view.with_query(more=1))
            body = html.many(parts.nothing(f"Nothing that is kept fits. Nearest: {reply.nearest}"), el("p", link))
    return DrawnPage("Recall", html.many(parts.heading("Recall", sub=words), form, body), "/recall", live=False)


def _hit(view: View, hit: Hit) -> Html:
    href = parts.leads(view, hit.kind, hit.key, hit.session)
    title = parts.entry_title(view, hit.kind, hit.key)
    name = el("a", title, href=href, data_open=True) if href else title
    label = "data, not instruction" if hit.trust == "data" else f"written by {hit.trust}"
    return el(
        "li",
        el(
            "div",
            parts.badge(hit.kind),
            el("strong", name),
            parts.state(hit.state) if hit.state else None,
            el("span", f"of the {hit.layer}", class_="dim") if hit.layer else None,
            parts.source(hit.source) if hit.source else None,
            el("span", parts.when(hit.updated_at, view.now), class_="dim"),
            el("meter", f"{hit.score:.0%}", value=f"{hit.score:.2f}", min=0, max=1, title=f"score {hit.score:.2f}"),
            class_="meta",
        ),
        el("pre", lit(hit.snippet), class_="text mono" if hit.kind in MONO else "text"),
        el(
            "div",
            [el("span", reason, class_="why") for reason in hit.why],
            el("span", label, class_=f"trust t-{hit.trust}"),
            _others(view, hit, "says the same: ", hit.same),
            _others(view, hit, "newer than: ", hit.replaces),
            _others(view, hit, "replaced by: ", (hit.replaced_by,) if hit.replaced_by else ()),
            _others(view, hit, "corrected since in: ", [name.partition(" ")[2] for name in hit.corrected_in]),
            class_="meta",
        ),
        class_="item",
        data_item=True,
        tabindex=-1,
    )


def _others(view: View, hit: Hit, words: str, keys: Sequence[str]) -> Html | None:
    """Other texts that the hit represents, by their first words."""
    if not keys:
        return None

    def link(key: str) -> html.Child:
        kind = paging.kind_of(view.context(), key, hit.kind)
        if not kind:
            return [parts.clip(key, 50), " "]
        title, href = parts.entry_title(view, kind, key), parts.leads(view, kind, key)
        return [el("a", parts.clip(title, 50), href=href) if href else title, " "]

    return el("span", words, [link(key) for key in keys[:OTHERS]], class_="dim")


def lit(snippet: str) -> list[html.Child]:
    """The snippet with the words that were found marked."""
    pieces: list[html.Child] = []
    for at, piece in enumerate(snippet.split(OPEN)):
        word, close, rest = piece.partition(CLOSE)
        if at and close:
            pieces += [el("mark", word), rest]
        else:
            pieces.append((OPEN if at else "") + piece)
    return pieces


PAGES = (PageRow("recall", recall, menu="Recall", letter="r", place=70),)
