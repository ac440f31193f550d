"""The dashboard's doors: from a route of the gate to a page, a change, a file or a stream.

A page is rendered in a worker thread, like every call of the store. A change comes from a form of the dashboard: a
request without an Authorization header must have an Origin that the gate knows, so that another site cannot send one in
the name of a signed-in person. A problem is shown as a page too, with the sentence every door shows.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

import anyio
import anyio.to_thread
from starlette.responses import RedirectResponse, Response, StreamingResponse

from limpet import limits
from limpet.catalogue.table import find, for_people
from limpet.doors.dashboard import frame, html, parts
from limpet.doors.dashboard.html import el
from limpet.doors.dashboard.pages import NAVIGATION, PAGES
from limpet.doors.dashboard.view import DrawnPage, View
from limpet.doors.http import refusals
from limpet.doors.http.principal import ANY_PROJECT
from limpet.errors import LimpetError
from limpet.importers import sample as samples
from limpet.model import MEMORY, NOTE, EntryName
from limpet.record import NamedTuple
from limpet.redaction import Masking
from limpet.redaction.search import KINDS
from limpet.upkeep import paging

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from limpet.api import Clock, Limpet
    from limpet.catalogue.operation import Context
    from limpet.doors.dashboard.sign_in import People
    from limpet.doors.http.capacity import Threads
    from limpet.doors.http.gate import Visit
    from limpet.doors.http.principal import Principal
    from limpet.store import Store

Handler = Callable[["Request", "Visit"], Awaitable["ASGIApp"]]
NOTICE = "limpet-notice"  # a cookie that carries one sentence over a redirect
MOST_FIELDS = 24
EXPORT_PIECE = 1 << 18  # bytes
RETRY_MS = 3_000  # after which a browser opens the stream again
ALIVE_SECONDS = 15  # a comment so often keeps proxies from closing a stream in which nothing happens


class Dashboard:
    def __init__(
        self, store: Store, people: People, threads: Threads, *, clock: Clock, stopping: Callable[[], bool]
    ) -> None:
        self._store = store
        self._people = people
        self._threads = threads
        self._clock = clock
        self._live = LivePages(stopping)

    def handlers(self) -> dict[str, Handler]:
        """By the names of the policy's routes."""
        fixed: dict[str, Handler] = {
            "dashboard": self.home,
            "dashboard_static": self.static,
            "favicon": self.favicon,
            "dashboard_export": self.export,
            "dashboard_sample": self.sample,
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
                "This address was used already, or is too old. Start the server again for another, or use a token."
                if request.method == "GET"
                else "This token signs nobody in: it is unknown, expired or revoked, or it is an agent's."
            )
            return frame.answer(sign_in_page(wrong), 403)
        # A page, not a redirect: browsers do not send a strict cookie along a redirect that began on another site.
        answer = frame.answer(_leading_on())
        self._people.give(answer, cookie)
        return answer

    async def sign_out(self, request: Request, visit: Visit) -> ASGIApp:
        if not ours(request):
            return frame.answer(_problem("This form did not come from here", "Open the page and try again."), 403)
        await self._people.sign_out(request, visit.principal)
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
        words = "There is no page at this address." if body["error"] == "no_route" else body["message"]
        text = _projects(names, words) if names else _problem("Not here", words)
        return frame.answer(text, refusal.status_code, headers)

    # --- looking ------------------------------------------------------------------------------------------------------

    async def home(self, _request: Request, visit: Visit) -> ASGIApp:
        who = visit.principal
        if (only := who.only_project()) is not None:
            has_any = await anyio.to_thread.run_sync(self._store.projects, who.tenant)
            place = "/overview" if only in has_any or not who.own_machine else "/start"
            return RedirectResponse(place, 303, headers=dict(frame.HEADERS))
        stored = await anyio.to_thread.run_sync(self._store.projects, who.tenant)
        named = {project for project in who.projects if project != ANY_PROJECT}
        names = sorted(named | {project for project in stored if who.may_use(project)})
        return frame.answer(_projects(names, "" if names else "There is nothing here yet: no agent has kept anything."))

    async def favicon(self, _request: Request, _visit: Visit) -> ASGIApp:
        """For programs that do not read the page's own link to it."""
        return frame.static("icon.svg") or refusals.no_route("/favicon.ico")

    async def export(self, request: Request, visit: Visit) -> ASGIApp:
        """Everything of the project, as `limpet export` writes it and `limpet import` reads it."""
        view = self._view(request, visit)
        # Written to a file first: a slow reader must not keep the store waiting.
        file = await anyio.to_thread.run_sync(_exported, view.hold)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", view.hold.scope.project).strip("-") or "limpet"
        disposition = {"content-disposition": f'attachment; filename="{name}.jsonl"'}
        headers = {**frame.HEADERS, **disposition, "content-type": "application/x-ndjson"}
        return StreamingResponse(_pieces(file), headers=headers)

    async def sample(self, request: Request, visit: Visit) -> ASGIApp:
        """Make the sample project, or delete it."""
        if not ours(request):
            return frame.answer(_problem("This form did not come from here", "Open the page and try again."), 403)
        if not (visit.person and visit.principal.own_machine):  # the token of a local server is an agent's
            return self.refused(request, refusals.no_route(request.scope["path"]))
        if (await _form(request)).get("what") == "delete":
            await anyio.to_thread.run_sync(samples.remove)
            return RedirectResponse("/start", 303, headers=dict(frame.HEADERS))
        tenant = visit.principal.tenant
        await anyio.to_thread.run_sync(samples.make, self._clock(), tenant)
        return RedirectResponse(f"/p/{samples.PROJECT}/overview", 303, headers=dict(frame.HEADERS))

    async def static(self, request: Request, visit: Visit) -> ASGIApp:
        return frame.static(visit.parts["file"]) or refusals.no_route(request.scope["path"])

    async def page(self, name: str, request: Request, visit: Visit) -> ASGIApp:
        view = self._view(request, visit)
        notice = request.cookies.get(NOTICE, "")

        def render() -> tuple[str, int]:
            sentence = _unquoted(view, notice) if notice else ""
            try:
                return frame.draw(view, PAGES[name].draw(view), NAVIGATION, notice=sentence), 200
            except LimpetError as problem:
                status = refusals.of(problem).status_code
                return frame.draw(view, _trouble(problem.message), NAVIGATION, notice=sentence), status

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
            return self.refused(request, refusals.no_route(request.scope["path"]))
        if not ours(request):
            return frame.answer(_problem("This form did not come from here", "Open the page and try again."), 403)
        if refusal := visit.may_call(action.operation):
            return self.refused(request, refusal)
        form = await _form(request)
        view = self._view(request, visit)
        session = form.get(action.session) if action.session else None

        masking = Masking()

        def work() -> str:
            written = view.change(action.operation, session, arguments(action, form), masking)
            corrected = getattr(written, "corrects", None)
            return corrected.key if isinstance(corrected, EntryName) else ""

        try:
            corrected = await self._threads.run(visit.principal, action.operation, work)
        except LimpetError as problem:
            status = refusals.of(problem).status_code
            return frame.answer(frame.draw(view, _trouble(problem.message, form), NAVIGATION), status)
        answer = RedirectResponse(view.base + back(form.get("back", "")), 303, headers=dict(frame.HEADERS))
        answer.set_cookie(
            NOTICE,
            quote(f"{action.notice}{_masked(masking.kinds)}\n{corrected}"),
            max_age=30,
            path="/",
            secure=self._people.secure,
            httponly=True,
            samesite="strict",
        )
        return answer


def _exported(hold: Limpet) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115  It is read after this, and closed by its reader.
    for line in hold.export_lines():
        file.write(line.encode() + b"\n")
    file.seek(0)
    return file


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await anyio.to_thread.run_sync(file.read, EXPORT_PIECE):
            yield piece


def _masked(kinds: Iterable[str]) -> str:
    names = ", ".join(kinds)
    return f" Masked before storing: {names}. The command line's --keep-secret stores it as it is." if names else ""


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


def _unquoted(view: View, cookie: str) -> str:
    """The notice in the cookie, if it is one of those in ACTIONS, with what was masked and what the text seems to
    correct, if there is such an entry; other text is not shown."""
    text, _, key = unquote_to_bytes(cookie).decode("utf-8", "replace").partition("\n")
    for notice in {action.notice for action in ACTIONS.values()}:
        masked = text.removeprefix(notice)
        if masked != text and masked == _masked(kind for kind in re.split("[:.,] ", masked) if kind in KINDS):
            return text + _corrects(view, key)
    return ""


def _corrects(view: View, key: str) -> str:
    if not key or paging.kind_of(view.context(), key, MEMORY) not in (MEMORY, NOTE):
        return ""
    return f" It seems to correct {key}: save the same again with {key} under Replaces, and that one is hidden."


# --- what people can change -------------------------------------------------------------------------------------------


class Action(NamedTuple):
    """A row of the table: one operation, so that checks and history are as everywhere.

    A form is sent to /do/<action>. `session` names the field that says which session the operation works in; the other
    fields are the arguments of the operation, by name. Texts come with the line ends of forms and are stored with ours.
    """

    operation: str
    fields: tuple[str, ...]
    notice: str  # what is shown afterwards
    session: str = ""
    fixed: Mapping[str, Any] = {}
    optional: tuple[str, ...] = ()  # fields that count as absent when they are blank


ACTIONS: Mapping[str, Action] = {
    "add_note": Action(
        "add_note", ("content", "tags"), "The note is kept.", "session", optional=("replaces", "expires")
    ),
    "edit_note": Action("update_note", ("id", "content", "tags"), "The note was changed."),
    "finish_note": Action("update_note", ("id",), "The note is done.", fixed={"done": True}),
    "reopen_note": Action("update_note", ("id",), "The note is open again.", fixed={"done": False}),
    "delete_note": Action("delete_note", ("id",), "The note was deleted; the history can bring it back."),
    "write_notepad": Action("write_notepad", ("content", "expected_version"), "The notepad was saved.", "session"),
    "restore_notepad": Action("restore_notepad", ("version",), "That version is the notepad again.", "session"),
    "write_memory": Action(
        "write_memory",
        ("key", "content"),
        "Memory was saved.",
        optional=("replaces", "expires", "expected_version", "layer"),
    ),
    "delete_memory": Action(
        "delete_memory", ("key",), "Memory was deleted; the history can bring it back.", optional=("layer",)
    ),
    "accept_proposal": Action("accept_proposal", ("id",), "It is accepted, and counts from now on."),
    "reject_proposal": Action("reject_proposal", ("id",), "It is rejected; the same text is not proposed again."),
    "pin_memory": Action(
        "pin_memory",
        ("key",),
        "It is pinned: every session sees it first.",
        fixed={"pinned": True},
        optional=("layer",),
    ),
    "unpin_memory": Action(
        "pin_memory", ("key",), "It is not pinned any more.", fixed={"pinned": False}, optional=("layer",)
    ),
    "write_handoff": Action("write_session_handoff", ("content", "line"), "The handoff was left.", "session"),
    "pin_text": Action("pin_text", ("content",), "It is pinned: every window of the session holds it.", "session"),
    "unpin_text": Action("unpin_text", ("id",), "It is not pinned any more.", "session"),
    "archive_session": Action("archive_session", ("id",), "The session was archived."),
    "resume_session": Action("begin_session", (), "The session is active again.", "session"),
    "uncompact": Action("uncompact", ("first", "last"), "These messages are back in the window.", "session"),
    "delete_output": Action("delete_output", ("id",), "The output was deleted; what it was stays on record."),
    "undo": Action("undo", ("seq",), "The change was undone."),
}


def arguments(action: Action, form: Mapping[str, str]) -> dict[str, Any]:
    """The operation's arguments out of a form. What is no number stays a text, for the operation to refuse."""
    kinds = {param.name: param.type for param in find(action.operation).params}
    values: dict[str, Any] = dict(action.fixed)
    for name in (*action.fields, *(name for name in action.optional if form.get(name, "").strip())):
        if name in form:
            values[name] = _value(kinds[name], form[name].replace("\r\n", "\n"))
    return values


def _value(kind: str, text: str) -> Any:
    if kind == "integer":
        number = text.strip()
        return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else text
    if kind == "strings":
        return [part for part in (part.strip() for part in text.replace("\n", ",").split(",")) if part]
    return text


# --- open pages -------------------------------------------------------------------------------------------------------


class LivePages:
    """Server-sent events: tells an open page that something in its project changed. The page then reloads itself.

    A message says that there is a change and nothing about it: what may be seen is decided where pages are made. A
    stream ends when its visitor is not let in any more, when the server stops, and after some minutes anyway; browsers
    open it again by themselves.
    """

    def __init__(self, stopping: Callable[[], bool]) -> None:
        self._stopping = stopping
        self._open: dict[str, int] = {}  # streams of each principal

    def stream(
        self,
        context: Callable[[], Context],
        principal: Principal,
        who: Callable[[], Awaitable[Principal | None]],
        *,
        seconds: int = limits.LIVE_STREAM_SECONDS,
    ) -> Response:
        """`who` says who the visitor is now; the stream ends when that changes.

        With `seconds=0` it tells how things are now, and ends.
        """
        if sum(self._open.values()) >= limits.LIVE_STREAMS or self._open.get(principal.id, 0) >= limits.LIVE_EACH:
            # 204 tells browsers not to ask again: the page stays as it is until it is reloaded.
            return Response(status_code=204, headers=dict(frame.HEADERS))
        kind = "text/event-stream; charset=utf-8"
        return StreamingResponse(
            self._events(context, principal, who, seconds), headers={**frame.HEADERS, "content-type": kind}
        )

    async def _events(
        self,
        context: Callable[[], Context],
        principal: Principal,
        who: Callable[[], Awaitable[Principal | None]],
        seconds: int,
    ) -> AsyncIterator[bytes]:
        self._open[principal.id] = self._open.get(principal.id, 0) + 1
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            last_number, until, spoke = "", time.monotonic() + seconds, time.monotonic()
            while not (last_number and time.monotonic() >= until) and not self._stopping():
                if await who() != principal:
                    yield b"event: over\ndata: signed out\n\n"
                    return
                try:
                    number = await anyio.to_thread.run_sync(lambda: paging.change_number(context()))
                except LimpetError:
                    return  # the browser comes back, and perhaps the store has too
                if number != last_number:
                    yield f"event: {'change' if last_number else 'now'}\ndata: {number}\n\n".encode()
                    last_number, spoke = number, time.monotonic()
                elif time.monotonic() - spoke > ALIVE_SECONDS:
                    yield b": still here\n\n"
                    spoke = time.monotonic()
                if seconds:
                    await anyio.sleep(limits.LIVE_POLL_SECONDS)
        finally:
            if left := self._open.pop(principal.id) - 1:
                self._open[principal.id] = left


# --- pages without a project ------------------------------------------------------------------------------------------


def sign_in_page(wrong: str = "") -> str:
    form = el(
        "form",
        el("label", "Token of a person", for_="token"),
        el("input", type="password", id="token", name="token", autocomplete="off", required=True, autofocus=True),
        el("button", "Sign in"),
        action="/sign-in",
        method="post",
        class_="stack",
    )
    hint = el(
        "p",
        el("code", "limpet dashboard"),
        " and ",
        el("code", "limpet serve"),
        " print an address that signs you in once; ",
        el("code", "limpet token create --person"),
        " makes a token that does. Tokens of agents do not.",
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


def _trouble(words: str, form: Mapping[str, str] | None = None) -> DrawnPage:
    """The problem as a page. Text typed into the form is shown again, so that it is not lost."""
    typed = (form or {}).get("content")
    typed_again = None
    if typed:
        typed_again = html.many(
            el("label", "What you wrote, to copy", for_="kept"), html.area(typed, id="kept", rows=8, readonly=True)
        )
    again = el("p", "Go back to change it.") if form else None
    problem = el("p", parts.with_code(for_people(words)), class_="wrong", role="alert")
    main = el("section", el("h1", "That did not work"), problem, again, typed_again)
    return DrawnPage("Trouble", main, "", live=False)
