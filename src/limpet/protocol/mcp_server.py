"""The MCP server: the replies of both MCP doors are built here, as plain dictionaries.

The doors carry messages. A request comes in as a method, its params and a `Client`, and goes out as a result in the
shape of the protocol revision that the client speaks, without fields that this revision does not know.

The revisions are listed in `protocol.revisions`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from limpet import __version__, limits
from limpet import prompts as texts
from limpet.api import Instructions
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import DEFAULTS, EVERY
from limpet.catalogue.table import OPERATIONS, SMALL, as_meant, find, for_agent, guidance, reworded, tool_named
from limpet.catalogue.table import profile as operations_of
from limpet.errors import BadInput, LimpetError, NotFound, quoted
from limpet.light import TYPE_CHECKING
from limpet.memory import handoff
from limpet.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    Json,
    RpcError,
    dumps,
)
from limpet.protocol.revisions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HANDSHAKE,
    MODERN,
    SERVER_KEY,
    VERSION_KEY,
    named_revision,
)
from limpet.redaction import Masking

if TYPE_CHECKING:
    from limpet.api import Limpet
    from limpet.catalogue.operation import Operation
    from limpet.session import greeting as greetings
    from limpet.session import sessions, tree
    from limpet.session.greeting import Greeting
    from limpet.settings import Bounds
else:
    greetings, sessions, tree = map(LateModule, ("session.greeting", "session.sessions", "session.tree"))

STRUCTURED_KEY = "limpet/structured"  # true in the _meta of a call or of tools/list asks for values and their schemas

# Clients that leave tools out of the prompt until their model looks for one, unless a tool asks to be in it.
_LOADS_LATER = ("claude-code",)
_AT_ONCE_KEY = "anthropic/alwaysLoad"  # in the _meta of a tool

# How long a client of 2026-07-28 may cache a list. Lists change with the version or the profile; what is read from the
# store may change at any moment.
_LIST_TTL_MS = 3_600_000
_CACHE = {
    "tools/list": (_LIST_TTL_MS, "private"),  # which tools there are may depend on who asks
    "prompts/list": (_LIST_TTL_MS, "public"),
    "resources/list": (_LIST_TTL_MS, "public"),
    "resources/templates/list": (_LIST_TTL_MS, "public"),
    "resources/read": (0, "private"),
    "server/discover": (0, "private"),
}

_BY = "agent/mcp"  # who changed something, in the history
# Arguments that a client's program may give in the `_meta` of a call.
_META_ARGUMENTS = {"limpet/idempotencyKey": "idempotency_key", "limpet/expectedVersion": "expected_version"}

_NOTEPAD_OF = "limpet://notepad/"
_NOTES_OF = "limpet://notes/"
_TEMPLATES = (
    (_NOTEPAD_OF + "{session_id}", "session notepad", "Notepad of a session", "text/markdown", "Of the session named."),
    (_NOTES_OF + "{tag}", "tagged notes", "Notes with a tag", "application/json", "Open notes of all sessions."),
)
_COMPLETIONS_MOST = 100  # values, of the protocol
_MARKDOWN = "text/markdown"
_JSON = "application/json"
_RESOURCES = (
    ("limpet://notepad", "notepad", "Notepad", _MARKDOWN, "The notepad of this session."),
    ("limpet://notes", "notes", "Notes", _JSON, "The open notes of this session."),
    ("limpet://handoff", "handoff", "Handoff", _MARKDOWN, "What the last session left for the next one."),
)
_SESSION_ARGUMENT = "The session to take up; without it, the session this server works in."
_PROMPTS: Mapping[str, tuple[str, ...]] = {"resume": ("session_id",), "checkpoint": ()}


class ClientState:
    """What is remembered about one client between its requests."""

    __slots__ = (
        *(
            "greeted",
            "knows_session",
            "lists_session",
            "loads_later",
            "record_shown",
            "remark",
            "revision",
            "session",
            "since",
        ),
        "unused",
    )

    def __init__(
        self,
        *,
        revision: str | None = None,
        session: str | None = None,
        since: int | None = None,
        knows_session: bool = True,
        lists_session: bool = False,
    ) -> None:
        self.revision = revision  # agreed by a handshake; None before it, and for 2026-07-28
        self.session = session  # the client's own name for its session, where it has one
        self.knows_session = knows_session  # False: others may work in the session of calls that name none
        self.lists_session = lists_session  # calls name it although the door has one: hooks, or the model, know it
        self.loads_later = False  # it said in its handshake that it is one of those
        self.since = since  # milliseconds: when it connected, where that is known
        self.greeted: set[str | None] = set()  # sessions that have had their first result
        self.record_shown: Callable[[], None] | None = None  # handoffs in the last result; the door calls it
        self.unused: Instructions | None = None  # in an earlier result: handoffs, which the next call uses up
        self.remark = ""  # goes with the next result: the handshake could not say it yet


def revision_of(method: str, params: Json, client: ClientState) -> str:
    """The revision a request is to be answered in, or RpcError.

    Each request decides for itself. So a client whose `server/discover` came back too late for
    it can still fall back to `initialize`, and nothing is locked by what it tried first.
    """
    if method == "initialize":
        return HANDSHAKE[-1]
    meta = params.get("_meta")
    if isinstance(meta, dict) and VERSION_KEY in meta:
        return named_revision(meta)
    if client.revision is None:
        if method == "ping":
            return HANDSHAKE[-1]
        if method not in _HANDSHAKE_METHODS:
            raise _unknown_method(method)
        raise RpcError(
            INVALID_REQUEST,
            f"{method} came before initialize. Send initialize first, or name the protocol version in params._meta.",
        )
    return client.revision


def _unknown_method(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:100]}")


def session_named_by(meta: object) -> str | None:
    """The session a client names in the `_meta` of a call, for the clients known to do so."""
    if not isinstance(meta, dict):
        return None
    for name in (meta.get("agent-session-id"), _sessions_of_turn(meta)[0]):
        if isinstance(name, str) and name:
            return name
    return None


def _sessions_of_turn(meta: Json) -> tuple[object, str]:
    """The session of a turn of Codex, and the one that began it: a sub-agent is a thread of its own in a session."""
    turn = meta.get("x-codex-turn-metadata")
    if not isinstance(turn, dict):
        return None, ""
    session, thread, parent = (turn.get(name) for name in ("session_id", "thread_id", "parent_thread_id"))
    if not (session and thread and parent and all(isinstance(name, str) for name in (session, thread, parent))):
        return session, ""
    return f"{session}.{thread}", session if parent == session else f"{session}.{parent}"


Handler = Callable[[Json, ClientState, str], Json]  # params, client, revision


class Surface:
    """One MCP server over one open Limpet. It holds no state of a client, so many clients may share it.

    `allowed` says which tools its clients get. `reader` says that they may change nothing: a handoff shown to a reader
    keeps waiting for a client that can use it. `remark` ends the instructions. With `late_project` a client that has
    roots is asked for its project after the handshake. Results are short text for models; with `structured`, or where
    the `_meta` of a request asks for it, they are the values as JSON too, with a schema in the list of tools.
    """

    def __init__(  # noqa: PLR0913 - what a door decides
        self,
        hold: Limpet,
        profile: str,
        *,
        session: str | None = None,
        handoff: bool = True,
        allowed: Callable[[str], bool] = lambda name: True,
        reader: bool = False,
        remark: str = "",
        late_project: bool = False,
        structured: bool = False,
    ) -> None:
        self._hold = hold
        self._by = _BY
        self._gives_handoff = handoff
        self._reader = reader
        self._remark = remark
        self._structured = structured
        self._late_project = late_project
        self._profile = profile
        self._session = session
        rows = (row for row in operations_of(profile) if not row.own_window)
        self._operations = {row.name: row for row in rows if allowed(row.name)}
        self._begin = {row.name: row for row in (find("begin_session"),) if allowed(row.name)}
        self._tools: dict[tuple[str, bool, bool, bool], Json] = {}  # answers to tools/list, each built once

    def over(self, hold: Limpet, by: str) -> Surface:
        """The same server over another Limpet, for one caller. It shares what was built once."""
        surface = type(self).__new__(type(self))
        surface.__dict__.update(self.__dict__, _hold=hold, _by=by)
        return surface

    def begin(self, hold: Limpet | None, client: ClientState) -> Surface:
        """The same server in the project that was found after the handshake, or where it was."""
        surface = self if hold is None else self.over(hold, self._by)
        surface._late_project = False
        client.remark = surface._remark = self._remark if hold is None else ""
        return surface

    def end(self) -> None:
        """The process of its one client ends. So does the session that it began with, unless one was named."""
        ctx = self._hold.context(None, self._by)
        if self._session is None and not self._hold.has_named_session and sessions.is_begun(ctx):
            sessions.archive_session(ctx, ctx.session)

    def handler(self, method: str, params: Json, revision: str) -> Handler:
        """What answers a request, or RpcError. The door calls it, and passes its result through `finished`."""
        meta = params.get("_meta")
        if meta is not None and not isinstance(meta, dict):
            raise RpcError(INVALID_PARAMS, f"params._meta of {method[:100]} is an object.")
        name = (_MODERN_METHODS if revision in MODERN else _HANDSHAKE_METHODS).get(method)
        if name is None:
            raise _unknown_method(method)
        handler: Handler = getattr(self, name)
        return handler

    def writes(self, params: Json) -> bool:
        """Whether a tool call can take the write lock of the store, for which it may have to wait."""
        name = params.get("name")
        operation = tool_named(name, self._operations) if isinstance(name, str) else None
        return operation is not None and not operation.read_only

    # --- getting to know each other -----------------------------------------------------------

    def _ping(self, _params: Json, _client: ClientState, _revision: str) -> Json:
        return {}

    def _initialize(self, params: Json, client: ClientState, _revision: str) -> Json:
        version = params.get("protocolVersion")
        if not isinstance(version, str):
            raise RpcError(INVALID_PARAMS, "initialize needs protocolVersion, a string.")
        for name in ("capabilities", "clientInfo"):
            if not isinstance(params.get(name), dict):
                raise RpcError(INVALID_PARAMS, f"initialize needs {name}, an object.")
        # A server that does not know the revision asked for offers its newest, and the client decides.
        client.revision = version if version in HANDSHAKE else HANDSHAKE[-1]
        client.loads_later = _loads_later(params["clientInfo"])
        return {
            "protocolVersion": client.revision,
            "capabilities": _capabilities(client.revision),
            "serverInfo": _server_info(client.revision),
            "instructions": self._instructions(params, client),
        }

    def _discover(self, params: Json, client: ClientState, _revision: str) -> Json:
        return {
            "supportedVersions": list(MODERN),
            "capabilities": _capabilities(),
            "instructions": self._instructions(params, client),
        }

    def _instructions(self, params: Json, client: ClientState) -> str:
        meta = params.get("_meta")
        said = meta.get(CAPABILITIES_KEY) if isinstance(meta, dict) else None  # in 2026-07-28
        capabilities = params.get("capabilities", said)
        guide = guidance(self._operations)
        if self._late_project and isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict):
            return guide
        first = ""
        if self._gives_handoff:
            guide = "" if self._reader else guide
            try:
                session = self._session_of(params, client)
                # Not every client shows them to its model. The first result of a tool carries the handoff again.
                ctx = self._hold.context(session, self._by)
                waiting = handoff.waiting(ctx, since=client.since)
                first = handoff.section(ctx, waiting, limits.HANDOFF_SHOWN_CHARS).text
            except LimpetError as problem:
                # A store in trouble must not keep the client from connecting: the agent should read why.
                first, guide = problem.message, ""
        return "\n\n".join(filter(None, (first, guide, self._remark)))

    def _session_of(self, params: Json, client: ClientState) -> str | None:
        return self._session or session_named_by(params.get("_meta")) or client.session

    # --- tools --------------------------------------------------------------------------------

    def _list_tools(self, params: Json, client: ClientState, revision: str) -> Json:
        _refuse_cursor(params)
        lists_session = client.lists_session or not self._knows_session(params, client)
        meta = params.get("_meta")
        later = client.loads_later or (isinstance(meta, dict) and _loads_later(meta.get(CLIENT_KEY)))
        key = (revision, self._is_structured(params, revision), lists_session, later)
        if key not in self._tools:
            self._tools[key] = {"tools": [self._tool(row, *key) for row in self._offered(params, client).values()]}
        return self._tools[key]

    def _tool(self, operation: Operation, revision: str, structured: bool, lists_session: bool, later: bool) -> Json:
        small = self._profile in SMALL
        bounds: Bounds = getattr(self._hold, "bounds", DEFAULTS)  # prices are listed without a store
        tool: Json = {
            "name": operation.name,
            "description": operation.description(),
            "inputSchema": operation.input_schema(small=small, bounds=bounds, session=lists_session),
        }
        # In the small profiles, for clients that count every byte, it names the keys that every reply has.
        if structured:
            tool["outputSchema"] = operation.output_schema(brief=small)
        hints = operation.annotations()
        if hints and revision >= "2025-03-26":
            tool["annotations"] = hints
        if later and operation.at_once:
            tool["_meta"] = {_AT_ONCE_KEY: True}
        return tool

    def _offered(self, params: Json, client: ClientState) -> Mapping[str, Operation]:
        """The tools. A client whose session is not known needs one that begins it."""
        return self._operations if self._knows_session(params, client) else {**self._operations, **self._begin}

    def _knows_session(self, params: Json, client: ClientState) -> bool:
        return client.knows_session or bool(self._session or session_named_by(params.get("_meta")))

    def _is_structured(self, params: Json, revision: str) -> bool:
        """Whether the caller gets values too. Revisions before 2025-06-18 have no place for them."""
        meta = params.get("_meta")
        wants_values = isinstance(meta, dict) and meta.get(STRUCTURED_KEY) is True
        return (self._structured or wants_values) and revision >= "2025-06-18"

    def _call_tool(self, params: Json, client: ClientState, revision: str) -> Json:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "tools/call needs name, a string.")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments of tools/call is an object.")
        offered = self._offered(params, client)
        operation = tool_named(name, offered)
        if operation is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {quoted(name)}. The tools are {', '.join(offered)}.")
        arguments = as_meant(operation, _with_meta(operation, arguments, params.get("_meta")))
        if operation.name in self._begin and not arguments.get("session_id"):
            arguments = {**arguments, "session_id": f"s-{os.urandom(6).hex()}"}
        self._mark_used(client)
        named = arguments.get("session_id")
        session = named if isinstance(named, str) and named else self._session_of(params, client)
        try:
            if session is not None and session == named and operation.name not in self._begin:
                self._check_session(operation, session, params, client)
            if session not in client.greeted:
                self._record_parent(params)
            goes_on = not self._session and session is not None and session == session_named_by(params.get("_meta"))
            first = greetings.Greeting()
            if session not in client.greeted:
                ctx = self._hold.context(session, self._by)
                first = greetings.greeting(ctx, operation.name, client.since, goes_on=goes_on)
            masking = Masking()
            value = self._hold.run(operation, arguments, self._session_of(params, client), self._by, masking)
        except LimpetError as problem:
            listed = self._listed(operation, params, client)
            return refused_call(reworded(problem, operation, arguments, listed, offered))
        client.greeted.add(session)
        self._remember_shown(client, session, first, value, goes_on=goes_on)
        context = "\n\n".join(filter(None, (first.text, client.remark)))
        client.remark = ""
        text = operation.render_text(self._hold.context(session, self._by), value, masking)
        answer: Json = {"content": [_text(part) for part in (text, context) if part]}
        if self._is_structured(params, revision):
            reply = operation.render(value, masking)
            # Some clients show the model this alone, so it has the context too.
            answer["structuredContent"] = {**reply, **({"context": context} if context else {})}
        return answer

    def _record_parent(self, params: Json) -> None:
        """A sub-agent that its client names begins below the session it names as the parent."""
        meta = params.get("_meta")
        session, parent = _sessions_of_turn(meta) if isinstance(meta, dict) else (None, "")
        if parent and isinstance(session, str) and not self._reader and self._session is None:
            tree.attach(self._hold.context(session, self._by), parent, "")

    def _listed(self, operation: Operation, params: Json, client: ClientState) -> list[str]:
        """The arguments of a tool that this client's list of tools shows."""
        session = client.lists_session or not self._knows_session(params, client)
        return list(operation.input_schema(small=self._profile in SMALL, session=session)["properties"])

    def _check_session(self, operation: Operation, name: str, params: Json, client: ClientState) -> None:
        """A client works in its own session and those that began in it. One that has none names one that exists."""
        if name == EVERY and operation.every_session:
            return
        own = self._session_of(params, client)
        ctx = self._hold.context(own, self._by)
        if name == ctx.session:
            return
        if not self._knows_session(params, client):
            others = sessions.ANY
        elif own is None and not self._hold.has_named_session:
            others = sessions.BY_PROGRAMS  # hooks of an agent that does not tell its servers the session
        else:
            others = sessions.NONE
        sessions.check_named(ctx, name, others)

    def _remember_shown(
        self, client: ClientState, session: str | None, first: Greeting, value: object, *, goes_on: bool
    ) -> None:
        """Handoffs that this result shows are used up by the next call; the session's own go on waiting for others."""
        if self._reader:
            return
        if isinstance(value, handoff.ReadHandoff):
            first = first._replace(handoffs=(*first.handoffs, value.handoff))
        ctx = self._hold.context(session, self._by)
        others = tuple(item for item in first.handoffs if item.written_by != ctx.session)
        if others or (goes_on and (first.handoffs or first.pad)):
            client.record_shown = lambda: greetings.mark_shown(
                self._hold.context(session, self._by), first, goes_on=goes_on
            )
        if others:
            client.unused = Instructions("", lambda: handoff.use(self._hold.context(session, self._by), others))

    def _mark_used(self, client: ClientState) -> None:
        """A client that calls a tool has read the results of earlier calls, and the handoffs in them."""
        if client.unused is None or self._reader:
            return
        try:
            client.unused.used()
        except LimpetError:
            return  # the call itself reports the problem of the store; the next call tries again
        client.unused = None

    # --- resources ----------------------------------------------------------------------------

    def _list_resources(self, params: Json, _client: ClientState, revision: str) -> Json:
        _refuse_cursor(params)
        return {"resources": [_resource(*row, "uri", revision) for row in _RESOURCES]}

    def _list_templates(self, params: Json, _client: ClientState, revision: str) -> Json:
        _refuse_cursor(params)
        return {"resourceTemplates": [_resource(*row, "uriTemplate", revision) for row in _TEMPLATES]}

    def _read_resource(self, params: Json, client: ClientState, revision: str) -> Json:
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "resources/read needs uri, a string.")
        try:
            resource = self._resource_text(uri, self._session_of(params, client))
        except LimpetError as problem:
            raise _refusal(problem) from None
        if resource is None:
            uris = ", ".join(row[0] for row in _RESOURCES)
            code = INVALID_PARAMS if revision in MODERN else RESOURCE_NOT_FOUND
            text = f"Resource not found: {uri[:100]}. The resources are {uris}."
            raise RpcError(code, text, data={"uri": uri[:1000]})
        kind, text = resource
        return {"contents": [{"uri": uri, "mimeType": kind, "text": text}]}

    def _resource_text(self, uri: str, session: str | None) -> tuple[str, str] | None:
        if uri == "limpet://notes":
            return _JSON, dumps(self._hold.call("list_notes", {"this_session": True}, session=session, by=self._by))
        if uri == "limpet://handoff":
            return _MARKDOWN, self._handoff()
        if uri == "limpet://notepad":
            return _MARKDOWN, self._notepad(session)
        for start in (_NOTEPAD_OF, _NOTES_OF):
            if uri.startswith(start) and len(uri) > len(start):
                from urllib.parse import unquote  # here, because few clients ever read a template

                name = unquote(uri[len(start) :])
                if start == _NOTEPAD_OF:
                    return _MARKDOWN, self._notepad(name)
                return _JSON, dumps(self._hold.call("search_notes", {"tags": [name]}, session=session, by=self._by))
        return None

    def _handoff(self) -> str:
        """The latest handoff, used or not; empty when there never was one."""
        try:
            return str(self._hold.call("read_handoff", {}, by=self._by)["content"])
        except NotFound:
            return ""

    def _notepad(self, session: str | None) -> str:
        return str(self._hold.call("read_notepad", {}, session=session, by=self._by)["content"])

    # --- completion ---------------------------------------------------------------------------

    def _complete(self, params: Json, client: ClientState, _revision: str) -> Json:
        """The sessions and tags that begin with what a person has typed; for anything else, none."""
        ref, argument = params.get("ref"), params.get("argument")
        if not isinstance(ref, dict) or not isinstance(argument, dict):
            raise RpcError(INVALID_PARAMS, "completion/complete needs ref and argument, two objects.")
        name, typed = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(typed, str):
            raise RpcError(INVALID_PARAMS, "argument of completion/complete has name and value, two strings.")
        arguments = _completed_by(ref)
        if arguments is None:
            raise RpcError(INVALID_PARAMS, "There is nothing to complete: ref names no prompt and no template here.")
        try:
            values = self._values(name, self._session_of(params, client)) if name in arguments else []
        except LimpetError as problem:
            raise _refusal(problem) from None
        fitting = [value for value in values if value.casefold().startswith(typed.casefold())]
        first = fitting[:_COMPLETIONS_MOST]
        return {"completion": {"values": first, "total": len(fitting), "hasMore": len(first) < len(fitting)}}

    def _values(self, name: str, session: str | None) -> list[str]:
        if name == "tag":
            return [row["tag"] for row in self._hold.call("list_tags", {}, session=session, by=self._by)["tags"]]
        listed = {"limit": limits.LIST_MAX}
        return [row["id"] for row in self._hold.call("list_sessions", listed, by=self._by)["sessions"]]

    # --- prompts ------------------------------------------------------------------------------

    def _list_prompts(self, params: Json, _client: ClientState, revision: str) -> Json:
        _refuse_cursor(params)
        prompts: list[Json] = []
        for name, arguments in _PROMPTS.items():
            prompt: Json = {"name": name, "description": _prompt_parts(name)[0]}
            if revision >= "2025-06-18":
                prompt["title"] = name.capitalize()
            if arguments:
                prompt["arguments"] = [
                    {"name": argument, "description": _SESSION_ARGUMENT, "required": False} for argument in arguments
                ]
            prompts.append(prompt)
        return {"prompts": prompts}

    def _get_prompt(self, params: Json, client: ClientState, _revision: str) -> Json:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in _PROMPTS:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {quoted(name)}. The prompts are {', '.join(_PROMPTS)}.")
        values = {} if arguments is None else arguments
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise RpcError(INVALID_PARAMS, "arguments of prompts/get is an object of strings.")
        for argument in values:
            if argument not in _PROMPTS[name]:
                raise RpcError(INVALID_PARAMS, f"The prompt {name} has no argument {quoted(argument)}.")
        description, body = _prompt_parts(name)
        if name == "resume":
            try:
                context = self._resume_context(values.get("session_id") or self._session_of(params, client), client)
            except LimpetError as problem:
                raise _refusal(problem) from None
            body = body.replace("{kept}", context)
        return {"description": description, "messages": [{"role": "user", "content": _text(body)}]}

    def _resume_context(self, session: str | None, client: ClientState) -> str:
        """What a session starts with, and the last handoff even if it was used before."""
        work = self._hold.session(session, by=self._by)
        context = work.context()
        if context.startswith(handoff.HEADING):
            client.unused = Instructions(context, work.used)  # a person put it into the conversation
        elif last := self._handoff():
            context = f"## The last handoff, taken up before\n{last}\n\n{context}"
        return context


def _with_meta(operation: Operation, arguments: Json, meta: object) -> Json:
    """The arguments with those that a client's program gives in `_meta`, where its model does not see them."""
    if not isinstance(meta, dict) or not any(key in meta for key in _META_ARGUMENTS):
        return arguments
    taken = {param.name for param in operation.all_params()}
    named = {name: meta[key] for key, name in _META_ARGUMENTS.items() if key in meta and name in taken}
    return {**named, **arguments}


def refused_call(problem: LimpetError, tools: Iterable[str] = OPERATIONS) -> Json:
    """The agent can act on a problem, so it is the tool's result and not a failure of the protocol."""
    return {"content": [_text(for_agent(problem.message, tools))], "isError": True}


def finished(method: str, reply: Json, revision: str) -> Json:
    """The reply with what 2026-07-28 adds to every result: its type, how long it may be cached, and who answered."""
    if revision not in MODERN:
        return reply
    result = {**reply, "resultType": "complete"}
    if method in _CACHE:
        result["ttlMs"], result["cacheScope"] = _CACHE[method]
    result["_meta"] = {SERVER_KEY: _server_info(MODERN[-1])}
    return result


def _loads_later(client_info: object) -> bool:
    return isinstance(client_info, dict) and client_info.get("name") in _LOADS_LATER


def _capabilities(revision: str = MODERN[-1]) -> Json:
    completions: Json = {"completions": {}} if revision >= "2025-03-26" else {}
    return {"tools": {}, "resources": {}, "prompts": {}, **completions}


def _completed_by(ref: Json) -> tuple[str, ...] | None:
    """The arguments of what a reference names; None if there is no such prompt or template."""
    if ref.get("type") == "ref/prompt":
        return _PROMPTS.get(str(ref.get("name")))
    uri = ref.get("uri")
    if ref.get("type") != "ref/resource" or not any(row[0] == uri for row in _TEMPLATES):
        return None
    return (str(uri).rpartition("{")[2].rstrip("}"),)


def _server_info(revision: str) -> Json:
    info: Json = {"name": "limpet", "version": __version__}
    if revision >= "2025-06-18":
        info["title"] = "Limpet"
    return info


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _resource(uri: str, name: str, title: str, kind: str, description: str, key: str, revision: str) -> Json:
    resource: Json = {key: uri, "name": name, "description": description, "mimeType": kind}
    if revision >= "2025-06-18":
        resource["title"] = title
    return resource


def _prompt_parts(name: str) -> tuple[str, str]:
    """A prompt file: its first paragraph describes it to people, the rest is what the agent reads."""
    description, _, body = texts.prompt(name).strip().partition("\n\n")
    return " ".join(description.split()), body


def _refuse_cursor(params: Json) -> None:
    if params.get("cursor") is not None:
        page = quoted(params["cursor"])
        raise RpcError(INVALID_PARAMS, f"There is no page {page}: the first page holds all. Leave cursor out.")


def _refusal(problem: LimpetError) -> RpcError:
    """A problem outside of a tool call, where the protocol has no other place for it."""
    return RpcError(INVALID_PARAMS if isinstance(problem, BadInput | NotFound) else INTERNAL_ERROR, problem.message)


# The method of Surface that answers a method of MCP.
_SHARED_METHODS = {
    "tools/list": "_list_tools",
    "tools/call": "_call_tool",
    "resources/list": "_list_resources",
    "resources/templates/list": "_list_templates",
    "resources/read": "_read_resource",
    "prompts/list": "_list_prompts",
    "prompts/get": "_get_prompt",
    "completion/complete": "_complete",
}
_HANDSHAKE_METHODS = {"initialize": "_initialize", "ping": "_ping", **_SHARED_METHODS}
_MODERN_METHODS = {"server/discover": "_discover", **_SHARED_METHODS}
