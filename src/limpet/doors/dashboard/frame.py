"""What every page has around it: the head, the navigation, and headers that forbid everything not needed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from starlette.responses import HTMLResponse, Response

from limpet.doors.dashboard import documentation, html
from limpet.doors.dashboard.html import Html, el
from limpet.doors.dashboard.view import DrawnPage, PageRow, View

# Nothing comes from elsewhere, nothing inline runs, no page is framed, and no script can turn a text into markup.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that, browsers hide the origin of our own forms, and it is what we check.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
KEYS = (
    ("/", "search everything"),
    ("j  k", "next and previous in a list"),
    ("Enter", "open what is marked"),
    ("t", "light or dark"),
    ("?", "this help"),
    ("Esc", "close, or leave a field"),
)
STATIC = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "theme.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def head() -> Html:
    return html.many(
        el("link", rel="icon", href=_file("icon.svg"), type="image/svg+xml"),
        el("link", rel="stylesheet", href=_file("dashboard.css")),
        # Before the page is drawn, so that a chosen theme does not flash.
        el("script", src=_file("theme.js")),
        el("script", src=_file("dashboard.js"), defer=True),
    )


def _file(name: str) -> str:
    """The address of a file, another one whenever the file is: browsers then keep it for good."""
    return html.address(f"/static/{name}", v=hashlib.sha256(_bytes(name)).hexdigest()[:12])


@cache
def _bytes(name: str) -> bytes:
    return files("limpet.doors.dashboard").joinpath("static", name).read_bytes()


def answer(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(text.encode("utf-8", "replace"), status, headers={**HEADERS, **(headers or {})})


def static(name: str) -> Response | None:
    kind = STATIC.get(name)
    if kind is None:
        picture = documentation.picture(name)
        return None if picture is None else Response(picture, headers=HEADERS, media_type=STATIC["icon.svg"])
    headers = {"cache-control": "public, max-age=31536000, immutable", "content-type": kind}
    return Response(_bytes(name), headers={**HEADERS, **headers})


def draw(view: View, page: DrawnPage, navigation: Sequence[PageRow], *, notice: str = "") -> str:
    """A page of a project with everything around it. `notice` says what the last change did."""
    project = view.project_name
    body = el(
        "body",
        el("a", "Skip to content", class_="skip", href="#main"),
        _top(view, project),
        el("div", _navigation(view, page.place, navigation), _main(page, notice), class_="columns"),
        _help(navigation),
        data_base=view.base,
        data_live=view.link("/events") if page.live else None,
    )
    return html.page(f"{page.title} · {project} · Limpet", head(), body)


def bare(title: str, *content: html.Child) -> str:
    """A page without a project: signing in, choosing, and what went wrong before anything was reached."""
    card = el("main", _brand("/"), el("h1", title), content, class_="card alone", id="main")
    return html.page(f"{title} · Limpet", head(), el("body", card, class_="bare"))


def _main(page: DrawnPage, notice: str) -> Html:
    note = el("p", notice, class_="said", role="status") if notice else None
    live = el("div", page.main, data_region="page")
    return el("main", note, live, id="main", tabindex=-1)


def _brand(href: str) -> Html:
    mark = el("img", src=_file("icon.svg"), alt="", width=22, height=22)
    return el("a", mark, el("span", "Limpet"), class_="brand", href=href)


def _top(view: View, project: str) -> Html:
    search = el(
        "form",
        el("label", "Search everything", class_="unseen", for_="search"),
        el(
            "input", type="search", id="search", name="q", placeholder="Search everything kept here", autocomplete="off"
        ),
        el("kbd", "/", aria_hidden="true"),
        class_="search",
        role="search",
        action=view.link("/recall"),
        method="get",
    )
    who = view.visit.principal.subject or "you"
    leave = el("form", el("button", "Sign out", class_="quiet"), action="/sign-out", method="post")
    single = view.visit.principal.only_project() is not None
    place = (
        el("span", project, class_="project")
        if single and not view.base
        else el("a", project, class_="project", href="/")
    )
    return el(
        "header",
        _brand(view.link("/overview")),
        place,
        search,
        el("span", "", id="pulse", title="Updates by itself", hidden=True),
        el("button", "◐", class_="quiet icon", id="theme", type="button", aria_label="Light or dark", hidden=True),
        el("button", "?", class_="quiet icon", id="keys", type="button", aria_label="Keys", hidden=True),
        el("span", who, class_="who"),
        leave,
        class_="top",
    )


def _navigation(view: View, current: str, pages: Sequence[PageRow]) -> Html:
    def entry(page: PageRow) -> Html:
        path = f"/{page.name}"
        marked = "page" if path == current else None
        return el("li", el("a", page.menu, href=view.link(path), aria_current=marked, data_key=page.letter))

    return el("nav", el("ul", [entry(page) for page in pages]), aria_label="Pages")


def _help(navigation: Sequence[PageRow]) -> Html:
    def row(keys: str, does: str) -> Html:
        return el("div", el("dt", [el("kbd", key) for key in keys.split()]), el("dd", does))

    pages = [row(f"g {page.letter}", page.menu) for page in navigation]
    close = el("form", el("button", "Close", class_="plain"), method="dialog")
    return el(
        "dialog",
        el("h2", "Keys"),
        el("div", el("dl", [row(*key) for key in KEYS]), el("dl", pages), class_="two"),
        close,
        id="help",
        aria_label="Keys",
    )
