"""What several pages show: times, tags, texts, differences, bars, forms and the way through a long list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from limpet.doors.dashboard import html
from limpet.doors.dashboard.html import Child, Html, Value, el
from limpet.doors.dashboard.markdown import markdown, plain
from limpet.doors.dashboard.view import View
from limpet.memory import anchors
from limpet.model import FOLD, MEMORY, MESSAGE, NOTEPAD, OUTPUT, SESSION, Entry, Event, Validity, iso, moment
from limpet.session.sessions import by_program
from limpet.text import diff
from limpet.upkeep import paging
from limpet.window import transcript

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context

TITLE_CHARS = 90
EXCERPT_CHARS = 600  # of a text in a list; the rest is one step away
OPEN_LINES = 14  # a longer text is closed at first
DIFF_LINES = 400  # of a difference that is shown; longer ones are cut, and say so
COLOURS = 9  # in the style sheet, c0 and following

VERBS = {  # what an operation did, in the words of a story
    "add_note": "noted",
    "scratch_note": "jotted down",
    "update_note": "changed a note",
    "delete_note": "deleted a note",
    "write_notepad": "wrote the notepad",
    "update_notepad": "edited the notepad",
    "restore_notepad": "restored a notepad version",
    "write_memory": "remembered",
    "delete_memory": "forgot",
    "write_session_handoff": "left a handoff",
    "use_handoff": "took up the handoff",
    "show_handoff": "was shown the handoff",
    "begin_task": "began a task",
    "end_task": "ended a task",
    "cancel_task": "cancelled a task",
    "compact": "compacted the window",
    "warn": "was warned: the window fills up",
    "void_warning": "made room; the warning was void",
    "clear_results": "cleared old results",
    "uncompact": "brought messages back",
    "pin_text": "pinned a text",
    "unpin_text": "unpinned a text",
    "begin_session": "began",
    "archive_session": "archived the session",
    "spawn_session": "gave work to a sub-session",
    "fork_session": "forked a sub-session",
    "report_result": "reported its result",
    "end_session": "ended a sub-session",
    "undo": "undid a change",
    "purge": "purged",
    "log_decision": "logged a decision",
    "checkpoint_session": "made a checkpoint",
    "append_messages": "spoke",
    "see_tools": "saw the tools of a server",
    "approve_seals": "approved tools",
    "agent_state": "set state",
}


def verb(event: Event) -> str:
    if event.operation == "pin_memory":
        return "pinned memory" if event.detail.get("pinned") else "unpinned memory"
    if event.operation == "begin_session" and event.before is not None:
        return "went on"
    return VERBS.get(event.operation, event.operation.replace("_", " "))


def when(at: int, now: int) -> Html:
    """How long ago, with the exact time behind it."""
    return el("time", ago(at, now), datetime=iso(at), title=iso(at))


def clock(at: int) -> Html:
    return el("time", f"{moment(at):%H:%M:%S}", datetime=iso(at), title=iso(at))


def ago(at: int, now: int) -> str:
    seconds = (now - at) // 1000
    if seconds < 0:
        return f"{moment(at):%Y-%m-%d %H:%M}"
    if seconds < 60:
        return "just now" if seconds < 10 else f"{seconds} s ago"
    if seconds < 3_600:
        return f"{seconds // 60} min ago"
    if seconds < 86_400:
        return f"{seconds // 3_600} h ago"
    return f"{seconds // 86_400} d ago" if seconds < 14 * 86_400 else f"{moment(at):%Y-%m-%d}"


def day(at: int) -> str:
    return f"{moment(at):%A, %-d %B %Y}"


def clip(text: str, most: int = EXCERPT_CHARS) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def line(text: str, most: int = 140) -> str:
    """The beginning of a text, as one line."""
    return clip(" ".join(text[: 4 * most].split()), most)


def badge(kind: str, words: str = "") -> Html:
    return el("span", words or kind.replace("_", " "), class_=f"badge k-{kind}")


def state(name: str) -> Html:
    return el("span", name.replace("_", " "), class_=f"state s-{name}")


def tags(view: View, names: Iterable[str]) -> Html:
    return html.many([el("a", f"#{name}", class_="tag", href=view.link("/notes", tag=name)) for name in names])


def text(content: str, *, name: str = "Show all", mono: bool = False) -> Html:
    """A stored text as it is. A long one is closed at first. `mono` is for what was not written for people."""
    kind = "text mono" if mono else "text"
    lines = content.count("\n") + 1
    if lines <= OPEN_LINES and len(content) <= 4 * EXCERPT_CHARS:
        return el("pre", content, class_=kind)
    first = "\n".join(content.split("\n", 6)[:6])
    rest = el("details", el("summary", f"{name} ({lines:,} lines)"), el("pre", content, class_=kind))
    return el("div", el("pre", clip(first), class_=f"{kind} faded"), rest, class_="long")


def prose(content: str, *, name: str = "Show all") -> Html:
    """A text that people or agents wrote, as Markdown. A long one is closed at first."""
    lines = content.count("\n") + 1
    if lines <= OPEN_LINES and len(content) <= 4 * EXCERPT_CHARS:
        return markdown(content)
    first = "\n".join(content.split("\n", 6)[:6])
    rest = el("details", el("summary", f"{name} ({lines:,} lines)"), markdown(content))
    return el("div", el("div", markdown(clip(first)), class_="faded"), rest, class_="long")


def text_card(content: str) -> Html:
    """A text by itself on its page."""
    return el("div", markdown(content), class_="text-card")


def session_title(ctx: Context, entry: Entry) -> str:
    """What a session was about: its task, else the first thing that was said in it, else its id if that is a word."""
    if words := line(plain(entry.content), TITLE_CHARS):
        return words
    if words := paging.first_words(ctx, entry.key):
        return line(plain(words), TITLE_CHARS)
    return f"Untitled, begun {moment(entry.created_at):%Y-%m-%d %H:%M}" if by_program(entry.key) else entry.key


def session_name(view: View, id: str) -> str:
    ctx = view.context(id)
    entry = ctx.store.entries.read(ctx.scope, SESSION, id)
    return clip(id, 60) if entry is None else session_title(ctx, entry)


def session_link(view: View, id: str, most: int = 60) -> Html:
    """A session by its title, with its id behind it."""
    if not id:
        return el("span", "no session", class_="dim")
    return el("a", clip(session_name(view, id), most), href=view.link("/session", id=id), title=id)


def entry_title(view: View, kind: str, key: str) -> str:
    """The first words of a text, by which people know it again; its id where it has no words."""
    ctx = view.context()
    if kind in (MEMORY, SESSION):
        return clip(key if kind == MEMORY else session_name(view, key), TITLE_CHARS)
    if kind == MESSAGE:
        session = key.rpartition("#")[0]
        return f"message {transcript.position_of(key) + 1:,} of {clip(session_name(view, session), 60)}"
    if kind == OUTPUT:
        output = ctx.store.outputs.find(ctx.scope, key)
        return key if output is None else line(f"{output.tool} {output.call}", TITLE_CHARS)
    entry = ctx.store.entries.read(ctx.scope, kind, key)
    if kind == NOTEPAD:
        return f"notepad of {clip(session_name(view, key), 60)}"
    rows = plain(entry.content[: 8 * TITLE_CHARS]).split("\n") if entry else []
    return line(next((row for row in rows if row.strip()), ""), TITLE_CHARS) or key


def difference(before: str, after: str) -> Html:
    """What changed between two texts, line by line."""
    if not (before.endswith("\n") or after.endswith("\n")):
        before, after = f"{before}\n", f"{after}\n"  # that neither ends its last line is no difference
    lines = diff.unified(before, after, before_name="", after_name="", context=2).split("\n")[2:-1]
    if not lines:
        return el("p", "The text stayed the same.", class_="dim")
    signs = {"+": "add", "-": "del", "@": "hunk"}
    rows = [el("span", row or " ", class_=signs.get(row[:1], "same")) for row in lines[:DIFF_LINES]]
    if len(lines) > DIFF_LINES:
        rows.append(el("span", f"… {len(lines) - DIFF_LINES:,} more lines", class_="hunk"))
    block = el("pre", rows, class_="diff")
    added = sum(row.startswith("+") for row in lines)
    removed = sum(row.startswith("-") for row in lines)
    if len(lines) <= OPEN_LINES:
        return block
    return el("details", el("summary", f"+{added:,} -{removed:,} lines"), block)


def form(view: View, action: str, /, *content: Child, back: str = "", class_: str = "", **hidden: Value) -> Html:
    """A form for an action. `back` is the page it returns to, by default the current one."""
    current = html.address(view.path, **view.query)
    values = {"back": back or current, **hidden}
    fields = [html.field(str(value), type="hidden", name=name) for name, value in values.items() if value is not None]
    return el("form", fields, content, action=view.link(f"/do/{action}"), method="post", class_=class_ or None)


def button(
    view: View, operation: str, action: str, label: str, /, *, class_: str = "quiet", back: str = "", **hidden: Value
) -> Html:
    """A form of one button; nothing for those who may not."""
    if not view.may(operation):
        return html.many()
    return form(view, action, el("button", label, class_=class_), class_="inline", back=back, **hidden)


def edit(view: View, operation: str, action: str, /, *fields: Child, words: str = "Edit", **hidden: Value) -> Html:
    """A form that is closed at first; nothing for those who may not."""
    if not view.may(operation):
        return html.many()
    save = form(view, action, *fields, el("button", "Save"), back="", class_="stack", **hidden)
    return el("details", el("summary", words), save, class_="edit")


def pager(view: View, newest: str | None, older: str | None, words: str = "") -> Html:
    links = [
        el("a", "← Newest", href=newest, rel="first") if newest else None,
        el("span", words, class_="dim") if words else None,
        el("a", "Older →", href=older, rel="next", data_older=True) if older else None,
    ]
    return el("nav", links, class_="pager", aria_label="Pages of the list") if any(links) else html.many()


def choices(view: View, name: str, options: Sequence[tuple[str, str]], chosen: str) -> Html:
    """A row of links, one of which is lit."""

    def option(value: str, label: str) -> Html:
        href = view.with_query(**{name: value or None, "before": None, "page": None})
        return el("a", label, href=href, class_="chip", aria_current="true" if value == chosen else None)

    return el("div", [option(*pair) for pair in options], class_="chips", role="group", aria_label="Filter")


def stack(rows: Sequence[tuple[str, int]], limit: int, label: str) -> Html:
    """A bar that shows how several amounts fill a whole."""
    total = max(limit, sum(amount for _, amount in rows), 1)
    drawn, at = [], 0.0
    for number, (name, amount) in enumerate(rows):
        width = 100 * amount / total
        title = el("title", f"{name}: {amount:,}")
        drawn.append(
            el("rect", title, x=f"{at:.3f}", y=0, width=f"{width:.3f}", height=10, class_=f"c{number % COLOURS}")
        )
        at += width
    return el(
        "svg", drawn, viewBox="0 0 100 10", preserveAspectRatio="none", class_="stack-bar", role="img", aria_label=label
    )


def figure(value: Child, label: str, hint: Child = None) -> Html:
    return el(
        "div",
        el("dt", label),
        el("dd", el("strong", value), el("span", hint, class_="dim") if hint is not None else None),
        class_="figure",
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[Child]], numbers: frozenset[int] = frozenset()) -> Html:
    def cell(at: int, value: Child) -> Html:
        return el("td", value, class_="number" if at in numbers else None)

    head = el(
        "tr", [el("th", name, scope="col", class_="number" if at in numbers else None) for at, name in enumerate(heads)]
    )
    body = [el("tr", [cell(at, value) for at, value in enumerate(row)]) for row in rows]
    return el("div", el("table", el("thead", head), el("tbody", body)), class_="scroll")


def nothing(words: str, more: Child = None) -> Html:
    return el("p", with_code(words), more, class_="nothing")


def with_code(words: str) -> list[Child]:
    """Our own words, with commands in backticks drawn as code."""
    return [el("code", piece) if at % 2 else piece for at, piece in enumerate(words.split("`"))]


def heading(title: Child, *beside: Child, sub: Child = None) -> Html:
    under = el("p", sub, class_="sub") if sub is not None else None
    return el("div", el("div", el("h1", title), under), el("div", beside, class_="beside"), class_="heading")


def validity(view: View, holds: Validity) -> Html:
    """Whether a note or memory still holds: what replaced it, when it expires, and its source as it is now."""
    looks = anchors.looks(view.context(), holds.anchors) if holds.anchors else ()
    by = holds.replaced_by
    expiry = None
    if holds.expires_at is not None:
        expired = holds.expired(view.now)
        day = iso(holds.expires_at)[:10]
        expiry = state("expired") if expired else el("span", f"until {day}", class_="dim")
    return html.many(
        state("replaced") if by else None,
        el("a", f"by {clip(entry_title(view, *by), 50)}", href=leads(view, *by)) if by else None,
        el(
            "a",
            f"replaces {clip(entry_title(view, *holds.replaces), 50)}",
            href=leads(view, *holds.replaces),
            class_="dim",
        )
        if holds.replaces
        else None,
        expiry,
        list(map(source, looks)),
    )


def source(look: anchors.Look) -> Html:
    """What a text cites, as it is now."""
    return el("span", state(look.state), " ", el("code", look.place), " ", anchors.label(look))


def life(view: View, entry: Entry, events: Sequence[Event]) -> Html:
    """What became of a text, the first version on top: who wrote and corrected it, and whether it still holds."""
    holds = Validity.of(entry.extra)
    items = []
    for event in reversed(events):
        is_now = event.after is not None and event.after.version == entry.version
        words = line(plain(event.after.content), 110) if event.after is not None else ""
        changed = event.before is None or event.after is None or event.before.content != event.after.content
        by = el("span", event.by, " · ", when(event.at, view.now), class_="dim")
        head = el("div", el("strong", verb(event)), by, class_="meta")
        items.append(
            el("li", head, el("div", words) if changed and words else None, class_="now" if is_now else "past")
        )
    for look in anchors.looks(view.context(), holds.anchors):
        good = look.state in ("fresh", "moved", "not checked")
        head = el("div", state(look.state), " ", el("code", look.place))
        items.append(
            el("li", head, el("div", anchors.label(look), class_="dim"), class_="now" if good else "wrong-now")
        )
    if holds.expires_at is not None:
        words = "expired" if holds.expired(view.now) else "holds until"
        items.append(el("li", f"{words} {iso(holds.expires_at)[:10]}", class_="past"))
    if holds.replaced_by is not None:
        title = entry_title(view, *holds.replaced_by)
        link = el("a", title, href=leads(view, *holds.replaced_by))
        items.append(el("li", "replaced by ", link, class_="wrong-now"))
    return panel("Its life", el("ol", items, class_="life"))


def uses(view: View, kind: str, key: str) -> Html:
    """How often people and agents opened it, and called it useful."""
    ctx = view.context()
    counted = ctx.store.calls.uses(ctx.scope, kind, key)
    return (
        el("span", ", ".join(f"{use.what} {times(use.times)}" for use in counted), class_="dim")
        if counted
        else html.many()
    )


def times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def life_fields(prefix: str) -> Html:
    """What a new text replaces, and when it expires."""
    return html.many(
        el("label", "Replaces (id or key)", for_=f"{prefix}-replaces"),
        html.field("", id=f"{prefix}-replaces", name="replaces"),
        el("label", "Expires (30d, or a day)", for_=f"{prefix}-expires"),
        html.field("", id=f"{prefix}-expires", name="expires"),
    )


def panel(title: str, *content: Child, beside: Child = None, class_: str = "") -> Html:
    head = el("div", el("h2", title), beside, class_="panel-head")
    return el("section", head, content, class_=f"panel {class_}".strip(), aria_label=title)


def leads(view: View, kind: str, key: str, session: str = "") -> str | None:
    """The page of an entry, where it has one."""
    pages: dict[str, Callable[[], str]] = {
        "note": lambda: view.link("/note", id=key),
        "memory": lambda: view.link("/remembered", key=key),
        "handoff": lambda: view.link("/handoff", id=key),
        "notepad": lambda: view.link("/notepad", session=key),
        "session": lambda: view.link("/session", id=key),
        "output": lambda: view.link("/output", id=key),
        "journal": lambda: view.link("/journal"),
        "message": lambda: _conversation(view, key),
        "fold": lambda: _folded(view, key, session),
    }
    if kind in pages:
        return pages[kind]()
    return view.link("/session", id=session) if session else None


def _conversation(view: View, key: str) -> str:
    """The conversation at a message, with a little before it."""
    at = transcript.position_of(key) + 1
    return view.link("/messages", session=key.rpartition("#")[0], first=max(1, at - 3)) + f"#m{at}"


def _folded(view: View, key: str, session: str) -> str:
    """The messages that a fold replaces."""
    ctx = view.context()
    entry = ctx.store.entries.read(ctx.scope, FOLD, key)
    if entry is None:
        return view.link("/session", id=session)
    fold = transcript.FoldRecord.from_json(entry.extra)
    return view.link("/messages", session=entry.session, first=fold.first + 1, last=fold.last + 1)


def size(count: int) -> str:
    if count < 1 << 10:
        return f"{count} B"
    number, unit = (f"{count / (1 << 10):.1f}", "kB") if count < 1 << 20 else (f"{count / (1 << 20):.2f}", "MB")
    return f"{number.rstrip('0').rstrip('.')} {unit}"
