"""What to do first: connect an agent, import what there is, or look at a sample project."""

from __future__ import annotations

import os

from limpet import clients
from limpet.clients.base import CodingAgent
from limpet.doors.dashboard import html, parts
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.view import DrawnPage, PageRow, View
from limpet.importers import memory_tools, sample


def start(view: View) -> DrawnPage:
    main = html.many(
        parts.heading(
            "What to do first", sub="Limpet keeps what your agents learn, and gives it back when they need it."
        ),
        el("div", _connect(view), _import(view), class_="split even"),
        _sample(view),
        _after(view),
    )
    return DrawnPage("Start", main, "/start", live=False)


def _is_used(client: CodingAgent) -> bool:
    """Whether the person uses this agent: it has left its folder in their home."""
    return bool(client.home_folder) and os.path.isdir(os.path.join(os.path.expanduser("~"), client.home_folder))


def _connect(view: View) -> Html:
    if not view.own_machine:
        words = "This is a server for several people. Your agents connect to it by its address, with a token each."
        return parts.panel("1. Connect an agent", el("p", words), el("p", el("code", "limpet token create NAME")))
    every = clients.every()
    present = [client for client in every if _is_used(client)]
    others = [client for client in every if client not in present]
    rows = [_agent(client, "found on this machine") for client in present]
    body = el("ul", rows, class_="rows") if rows else el("p", "No coding agent was found in your home folder.")
    rest = el("details", el("summary", "Others"), el("ul", [_agent(client) for client in others], class_="rows"))
    python = el("p", "In Python: ", el("code", "import limpet; memory = limpet.open()"), class_="dim")
    return parts.panel("1. Connect an agent", el("p", "Run the command in your project's folder."), body, rest, python)


def _agent(client: CodingAgent, words: str = "") -> Html:
    badge = el("span", words, class_="state s-active") if words else None
    command = el("code", f"limpet install {client.name}", class_="command")
    return el("li", el("div", el("strong", client.title), badge, class_="meta"), command)


def _import(view: View) -> Html:
    rows = [
        el("li", el("strong", f"Sessions of {client.title}"), _command(f"limpet import transcript {client.name} --all"))
        for client in (clients.every() if view.own_machine else ())
        if client.has_transcripts and _is_used(client)
    ]
    tools = ", ".join(sorted(memory_tools.READERS))
    rows.append(
        el(
            "li",
            el("strong", "Another memory tool"),
            _command("limpet import TOOL PLACE"),
            el("p", tools, class_="dim"),
        )
    )
    rows += [
        el("li", el("strong", f"Conversations of {title}"), _command(f"limpet import {app} EXPORT.zip"))
        for app, title in (("chatgpt", "ChatGPT"), ("claude-chat", "Claude's apps"))
    ]
    rows.append(el("li", el("strong", "A project of Limpet"), _command("limpet import project.jsonl")))
    advice = el("p", el("code", "--dry-run"), " says what would come in, and changes nothing.", class_="dim")
    return parts.panel("2. Import what you have", el("ul", rows, class_="rows"), advice)


def _command(words: str) -> Html:
    return el("div", el("code", words, class_="command"))


def _sample(view: View) -> Html:
    if not view.own_machine:
        return html.many()
    words = (
        "Three days of two agents in a small shop: conversations, a compaction, big outputs, a journal, and facts that "
        "were corrected, that expired, and whose source changed. It has a folder of its own; nothing of yours changes."
    )
    exists = sample.is_there()
    look = el("a", "Open the sample project", href=f"/p/{sample.PROJECT}/overview", class_="go") if exists else None
    make = _button("make", "Make it again" if exists else "Make a sample project", "plain" if exists else "")
    delete = _button("delete", "Delete it", "plain danger") if exists else None
    return parts.panel("3. Or look around first", el("p", words), el("div", look, make, delete, class_="meta buttons"))


def _button(what: str, label: str, class_: str) -> Html:
    field = html.field(what, type="hidden", name="what")
    return el(
        "form", field, el("button", label, class_=class_ or None), action="/sample", method="post", class_="inline"
    )


def delete_button() -> Html:
    return _button("delete", "Delete the sample", "plain danger")


def _after(view: View) -> Html:
    steps = (
        ("/sessions", "Sessions", "what was worked on, with conversations to read"),
        ("/memory", "Memory", "what every session knows: correct it, pin it, delete it"),
        ("/recall", "Recall", "one question to everything that is kept"),
        ("/settings", "Health and settings", "where the data is, how long outputs stay, what is trusted"),
    )
    rows = [el("li", el("a", name, href=view.link(path)), f": {words}") for path, name, words in steps]
    return parts.panel("Then", el("ul", rows, class_="rows"))


PAGES = (PageRow("start", start, menu="Start", letter="b", place=5),)
