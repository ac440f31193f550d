"""A conversation to read: what was said, with tool calls folded around their results, and links to kept outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Child, Html, el
from limpet.doors.dashboard.markdown import markdown
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.model import Entry
from limpet.record import NamedTuple
from limpet.upkeep import paging
from limpet.window.messages import ASSISTANT, SYSTEM, TOOL, USER, Call, Media, Message, Result, Text, Thinking
from limpet.window.transcript import PURGED, FoldRecord

PAGE_SIZE = 40  # messages on one page
RESULTS = 20  # messages after a page that are looked through for the results of its calls
ARGUMENTS = 110  # characters of a call's arguments on its line
SHOWN = 50_000  # characters of one text; a page of many long ones would be too much for a browser
OUTPUT = re.compile(r"hold://([0-9a-f]{8,64})")
WHO: Mapping[str, str] = {USER: "Person", ASSISTANT: "Agent", TOOL: "Tool", SYSTEM: "System"}


class SpokenTurn(NamedTuple):
    """One message and its position; positions are counted from 1."""

    at: int
    entry: Entry
    message: Message


def messages(view: View) -> DrawnPage:
    id = view.param("session")
    ctx = view.context(id)
    total = paging.message_count(ctx)
    first = max(1, view.number("first") or 1)
    last = view.number("last") or total
    until = min(last, first + PAGE_SIZE - 1)
    turns = [SpokenTurn(at, entry, paging.message(entry)) for at, entry in paging.messages(ctx, first, until + RESULTS)]
    results = {result.call_id: result for turn in turns for result in turn.message.results()}
    called = {call.id for turn in turns if turn.at <= until for call in turn.message.calls()}
    folds = _folds(view, id)
    rows = [
        item
        for turn in turns
        if turn.at <= until
        for item in (folds.get(turn.at), _message(view, turn, results, called))
        if item is not None
    ]
    title = parts.session_name(view, id)
    sub = html.many(
        el("a", "its story", href=view.link("/session", id=id)),
        f" · {total:,} messages",
        f" · shown are those from {first:,} to {min(last, total):,}" if view.number("last") else "",
    )
    body = el("ol", rows, class_="talk") if rows else parts.nothing("There are no such messages.")
    pager = _pager(view, first, until, min(last, total))
    main = html.many(parts.heading(title, sub=sub), _jump(view, id, total), body, pager)
    return DrawnPage(f"Conversation {parts.clip(title, 50)}", main, "/sessions", live=False)


def _pager(view: View, first: int, until: int, last: int) -> Html:
    earlier = max(1, first - PAGE_SIZE)
    links = [
        el("a", "← Earlier", href=view.with_query(first=earlier, last=None), rel="prev") if first > 1 else None,
        el("a", "Later →", href=view.with_query(first=until + 1), rel="next") if until < last else None,
    ]
    return el("nav", links, class_="pager", aria_label="Pages of the conversation") if any(links) else html.many()


def _jump(view: View, id: str, total: int) -> Html:
    if total <= PAGE_SIZE:
        return html.many()
    return el(
        "form",
        html.field(id, type="hidden", name="session"),
        el("label", "From message", for_="first"),
        el("input", type="number", name="first", id="first", min=1, max=total, value=view.number("first") or 1),
        el("button", "Read", class_="plain"),
        el("a", "the last ones", href=view.link("/messages", session=id, first=max(1, total - PAGE_SIZE + 1))),
        action=view.link("/messages"),
        method="get",
        class_="filters",
    )


def _folds(view: View, id: str) -> dict[int, Html]:
    """Where the window was compacted: a line before the first message that is folded."""
    lines: dict[int, Html] = {}
    for entry in paging.folds(view.context(id)):
        fold = FoldRecord.from_json(entry.extra)
        words = f"Messages {fold.first + 1:,} to {fold.last + 1:,} were folded into a summary "
        link = el("a", "look at it", href=view.link("/session", id=id, kind="fold"))
        lines[fold.first + 1] = el("li", words, parts.when(entry.created_at, view.now), " · ", link, class_="fold-line")
    return lines


def _message(
    view: View, turn: SpokenTurn, results: Mapping[str, Result], called: frozenset[str] | set[str]
) -> Html | None:
    pieces: list[Child] = []
    for part in turn.message.parts:
        if isinstance(part, Text):
            pieces.append(_text(view, part.text, turn.message.role))
        elif isinstance(part, Thinking):
            pieces.append(el("details", el("summary", "What it thought"), markdown(_cut(part.text))))
        elif isinstance(part, Call):
            pieces.append(_call(view, part, results.get(part.id)))
        elif isinstance(part, Result):
            pieces.append(None if part.call_id in called else _result(view, part))
        elif isinstance(part, Media):
            pieces.append(el("p", f"[{part.kind}]", class_="dim"))
        else:
            pieces.append(el("p", "[of a kind that is passed on as it is]", class_="dim"))
    pieces = [piece for piece in pieces if piece is not None]
    if not pieces:
        return None  # results, shown with their calls
    role = turn.message.role
    head = el(
        "div",
        el("strong", WHO.get(role, role)),
        el("a", f"message {turn.at:,}", href=f"#m{turn.at}", class_="dim"),
        el("span", parts.when(turn.entry.created_at, view.now), class_="dim"),
        el("span", f"{int(turn.entry.extra.get('tokens', 0)):,} tokens", class_="dim"),
        class_="meta",
    )
    return el("li", head, pieces, class_=f"said r-{role}", id=f"m{turn.at}", data_item=True, tabindex=-1)


def _text(view: View, text: str, role: str) -> Html:
    if text == PURGED:
        return el("p", "This was taken out for good.", class_="dim")
    if role in (USER, ASSISTANT):
        return parts.prose(_cut(text))
    return parts.text(_cut(text), mono=True)


def _cut(text: str) -> str:
    left = len(text) - SHOWN
    return text if left <= 0 else f"{text[:SHOWN]}\n… {left:,} more characters: `limpet messages --json` prints them"


def _call(view: View, call: Call, result: Result | None) -> Html:
    """A tool call: its line says what was called; inside are the arguments and the result."""
    failed = result is not None and result.error
    size = "no result here" if result is None else "failed" if failed else parts.size(_size(result))
    summary = el(
        "summary",
        el("code", parts.clip(call.name, 60), class_="tool"),
        " ",
        el("span", parts.line(_spare(call.arguments), ARGUMENTS), class_="mono dim"),
        " ",
        el("span", size, class_="state s-error" if failed else "dim"),
    )
    arguments = el("pre", _cut(_laid_out(call.arguments)), class_="text mono", tabindex=0)
    inside = (
        html.many(el("h3", "Arguments"), arguments, el("h3", "Result"), _inside(view, result)) if result else arguments
    )
    return el("details", summary, inside, class_="call")


def _result(view: View, result: Result) -> Html:
    """A result whose call is on another page."""
    return el(
        "details",
        el("summary", f"Result of a call before this page, {parts.size(_size(result))}"),
        _inside(view, result),
    )


def _inside(view: View, result: Result) -> Html:
    text = _texts(result)
    ids = list(dict.fromkeys(OUTPUT.findall(text)))
    links = [el("a", f"output {id}", href=view.link("/output", id=id)) for id in ids[:6]]
    media = [el("p", f"[{part.kind}]", class_="dim") for part in result.parts if isinstance(part, Media)]
    references = el("p", "Kept whole: ", [[link, " "] for link in links]) if links else None
    return html.many(references, parts.text(_cut(text), mono=True), media)


def _texts(result: Result) -> str:
    return "\n".join(part.text for part in result.parts if isinstance(part, Text))


def _size(result: Result) -> int:
    return len(_texts(result).encode("utf-8", "replace"))


def _spare(arguments: str) -> str:
    """The arguments of a call in few words: of an object with one text, that text."""
    values = _object(arguments)
    texts: Sequence[str] = [value for value in values.values() if isinstance(value, str)]
    return texts[0] if len(values) == 1 and texts else arguments


def _laid_out(arguments: str) -> str:
    values = _object(arguments)
    if not values:
        return arguments
    return "\n".join(f"{name}: {_value(value)}" for name, value in values.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _object(arguments: str) -> Mapping[str, object]:
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


PAGES = (PageRow("messages", messages),)
