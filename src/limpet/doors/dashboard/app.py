"""The dashboard's doors: from a route of the gate to a page, a change, a file or a stream.

A page is rendered in a worker thread, like every call of the store. A change comes from a form of the dashboard: a
request without an Authorization header must have an Origin that the gate knows, so that another site cannot send one in
the name of a signed-in person. A problem is shown as a page too, with the sentence every door shows.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

import anyio.to_thread
from starlette.responses import RedirectResponse, Response

from limpet import limits
from limpet.doors.dashboard import frame, html
from limpet.doors.dashboard.actions import ACTIONS, MOST_FIELDS, arguments
from limpet.doors.dashboard.html import el
from limpet.doors.dashboard.live import Live
from limpet.doors.dashboard.pages import NAVIGATION, PAGES
from limpet.doors.dashboard.view import Page, View
from limpet.doors.http import refusals
from limpet.doors.http.principal import ANY_PROJECT
from limpet.errors import LimpetError
from limpet.redaction import Masking

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from limpet.api import Clock
    from limpet.doors.dashboard.sign_in import People
    from limpet.doors.http.gate import Visit
    from limpet.store import Store

Handler = Callable[["Request", "Visit"], Awaitable["ASGIApp"]]
NOTICE = "limpet-notice"  # a cookie that carries one sentence over a redirect
_log = logging.getLogger("limpet.dashboard")


class Dashboard:
    def __init__(self, store: Store, people: People, *, clock: Clock, stopping: Callable[[], bool]) -> None:
        self._store = store
        self._people = people
        self._clock = clock
        self._live = Live(stopping)

    def handlers(self) -> dict[str, Handler]:
        """By the names of the policy's routes."""
        fixed: dict[str, Handler] = {
            "dashboard": self.home,
            "dashboard_static": self.static,
            "sign_in": self.sign_in,
            "sign_out": self.sign_out,
            "dashboard_events": self.events,
            "dashboard_do": self.do,
        }
        return fixed | {f"dashboard_{name}": partial(self.page, name) for name in PAGES}

    # --- coming in ----------------------------------------------------------------------------------------------------

    async def sign_in(self, request: Request, _visit: Visit) -> ASGIApp:
        if request.method == "POST":
            if not ours(request):
                return frame.answer(_problem("This form did not come from here", "Open the page and try again."), 403)
            token = (await _form(request)).get("token", "").strip()
            cookie = await self._people.sign_in(token) if token else None
        elif code := request.query_params.get("code"):
            cookie = self._people.sign_in_by_code(code)
        else:
            return frame.answer(sign_in_page())
        if cookie is None:
            wrong = (
                "This address was used already, or is too old. Sign in with the token."
                if request.method == "GET"
                else "This token opens nothing here: it is unknown, expired or revoked."
            )
            return frame.answer(sign_in_page(wrong), 403)
        # A page, not a redirect: browsers do not send a strict cookie along a redirect that began on another site.
        answer = frame.answer(_leading_on())
        self._people.give(answer, cookie)
        return answer

    async def sign_out(self, request: Request, _visit: Visit) -> ASGIApp:
        if not ours(request):
            return frame.answer(_problem("This form did not come from here", "Open the page and try again."), 403)
        await self._people.sign_out(request)
        answer = RedirectResponse("/sign-in", 303, headers=dict(frame.HEADERS))
        self._people.take(answer)
        return answer

    def refused(self, request: Request, refusal: ASGIApp) -> ASGIApp:
        """A refusal of the gate as a page, for those who ask for pages; programs get it as it is."""
        wants = "text/html" in request.headers.get("accept", "")
        if not wants or not isinstance(refusal, Response):
            return refusal
        body = json.loads(bytes(refusal.body))
        headers = {
            name: refusal.headers[name] for name in ("www-authenticate", "retry-after") if name in refusal.headers
        }
        if refusal.status_code == 401:
            return frame.answer(sign_in_page(), 401, headers)
        names = [name for name in body.get("projects", ()) if name != ANY_PROJECT]
        text = _projects(names, body["message"]) if names else _problem("Not here", body["message"])
        return frame.answer(text, refusal.status_code, headers)

    # --- looking ------------------------------------------------------------------------------------------------------

    async def home(self, _request: Request, visit: Visit) -> ASGIApp:
        who = visit.principal
        if who.only_project() is not None:
            return RedirectResponse("/overview", 303, headers=dict(frame.HEADERS))
        stored = await anyio.to_thread.run_sync(self._store.projects, who.tenant)
        named = {project for project in who.projects if project != ANY_PROJECT}
        names = sorted(named | {project for project in stored if who.may_use(project)})
        return frame.answer(_projects(names, "" if names else "There is nothing here yet: no agent has kept anything."))

    async def static(self, request: Request, visit: Visit) -> ASGIApp:
        return frame.static(visit.parts["file"]) or refusals.no_route(request.scope["path"])

    async def page(self, name: str, request: Request, visit: Visit) -> ASGIApp:
        view = self._view(request, visit)
        notice = request.cookies.get(NOTICE, "")

        def render() -> tuple[str, int]:
            try:
                return frame.draw(view, PAGES[name].draw(view), NAVIGATION, notice=_unquoted(notice)), 200
            except LimpetError as problem:
                status = refusals.of(problem).status_code
                return frame.draw(view, _trouble(problem.message), NAVIGATION, notice=_unquoted(notice)), status

        text, status = await anyio.to_thread.run_sync(render)
        answer = frame.answer(text, status)
        if notice:
            answer.delete_cookie(NOTICE, path="/", httponly=True, samesite="strict")
        return answer

    async def events(self, request: Request, visit: Visit) -> ASGIApp:
        view = self._view(request, visit)
        seconds = 0 if view.param("once") else limits.LIVE_STREAM_SECONDS
        who = partial(self._people.now, request)
        return self._live.stream(view.context, visit.principal, who, seconds=seconds)

    def _view(self, request: Request, visit: Visit) -> View:
        if visit.project is None:
            raise LookupError("a page needs a project")
        project = visit.project.hold.scope.project
        only = visit.principal.only_project() == project
        base = "" if only else f"/p/{quote(project, safe='')}"
        return View(visit.project.hold, visit, base, request.scope["path"], dict(request.query_params), self._clock())

    # --- changing -----------------------------------------------------------------------------------------------------

    async def do(self, request: Request, visit: Visit) -> ASGIApp:
        action = ACTIONS.get(visit.parts["action"])
        if action is None:
            return refusals.no_route(request.scope["path"])
        if not ours(request):
            return frame.answer(_problem("This form did not come from here", "Open the page and try again."), 403)
        if refusal := visit.may_call(action.operation):
            return self.refused(request, refusal)
        form = await _form(request)
        view = self._view(request, visit)
        session = form.get(action.session) if action.session else None

        masking = Masking()

        def work() -> None:
            view.change(action.operation, session, arguments(action, form), masking)

        try:
            await anyio.to_thread.run_sync(work)
        except LimpetError as problem:
            status = refusals.of(problem).status_code
            return frame.answer(frame.draw(view, _trouble(problem.message, form), NAVIGATION), status)
        answer = RedirectResponse(view.base + back(form.get("back", "")), 303, headers=dict(frame.HEADERS))
        answer.set_cookie(
            NOTICE,
            quote(action.notice + _masked(masking)),
            max_age=30,
            path="/",
            secure=self._people.secure,
            httponly=True,
            samesite="strict",
        )
        return answer


def _masked(masking: Masking) -> str:
    if not masking.count:
        return ""
    kinds = ", ".join(masking.kinds)
    return f" Masked before storing: {kinds}. The command line's --keep-secret stores it as it is."


def ours(request: Request) -> bool:
    """Whether a form was sent by the dashboard. The gate has already refused foreign values of Origin."""
    if request.headers.get("authorization"):
        return True  # a program that holds a token; no page of others can send one
    return bool(request.headers.get("origin")) and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"


def back(path: str) -> str:
    """Where a change leads: a path on this server, else the overview."""
    parts = urlsplit(path)
    plain = not parts.scheme and not parts.netloc and path.startswith("/") and path[1:2] not in ("/", "\\")
    return path if plain and path.isprintable() and path.isascii() else "/overview"


async def _form(request: Request) -> Mapping[str, str]:
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        return {}


def _unquoted(cookie: str) -> str:
    """The notice in the cookie, if it is one of those in ACTIONS; other text in the cookie is not shown."""
    notices = {action.notice for action in ACTIONS.values()}
    text = unquote_to_bytes(cookie).decode("utf-8", "replace")
    return text if text in notices else ""


# --- pages without a project ------------------------------------------------------------------------------------------


def sign_in_page(wrong: str = "") -> str:
    form = el(
        "form",
        el("label", "Token", for_="token"),
        el("input", type="password", id="token", name="token", autocomplete="off", required=True, autofocus=True),
        el("button", "Sign in"),
        action="/sign-in",
        method="post",
        class_="stack",
    )
    hint = el(
        "p",
        el("code", "limpet serve"),
        " prints an address that signs you in once. For a team, ",
        el("code", "limpet token create"),
        " makes a token.",
    )
    return frame.bare("Sign in", el("p", wrong, class_="wrong", role="alert") if wrong else None, form, hint)


def _leading_on() -> str:
    head = html.many(frame.head(), el("meta", http_equiv="refresh", content="0;url=/"))
    body = el("body", el("main", el("h1", "Signed in"), el("a", "To the dashboard", href="/"), class_="card alone"))
    return html.page("Signed in · Limpet", head, body)


def _projects(names: list[str], words: str) -> str:
    def entry(name: str) -> html.Html:
        # A part of a path cannot contain a slash.
        label = el("a", name, href=f"/p/{quote(name, safe='')}/overview") if "/" not in name else el("span", name)
        return el("li", label)

    return frame.bare("Projects", el("p", words) if words else None, el("ul", map(entry, names), class_="rows"))


def _problem(title: str, words: str) -> str:
    return frame.bare(title, el("p", words), el("p", el("a", "To the dashboard", href="/")))


def _trouble(words: str, form: Mapping[str, str] | None = None) -> Page:
    """The problem as a page. Text typed into the form is shown again, so that it is not lost."""
    typed = (form or {}).get("content")
    typed_again = None
    if typed:
        typed_again = html.many(
            el("label", "What you wrote, to copy", for_="kept"), html.area(typed, id="kept", rows=8, readonly=True)
        )
    again = el("p", "Go back to change it.") if form else None
    main = el(
        "section", el("h1", "That did not work"), el("p", words, class_="wrong", role="alert"), again, typed_again
    )
    return Page("Trouble", main, "", live=False)
