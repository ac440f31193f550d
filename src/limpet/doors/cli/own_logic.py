"""Commands with logic of their own: they work out the arguments of an operation first, or call more than one part.

The modules that one command needs are imported by that command: people wait for every start.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from limpet.catalogue.late import LateModule
from limpet.doors.cli import render
from limpet.doors.cli.commands import ACTIVE, WRITING, Misuse
from limpet.doors.cli.render import Screen
from limpet.doors.cli.run import BY, Invocation
from limpet.errors import LimpetError, needs_a_person, no_project_in_store
from limpet.home.load import nearest, project_names
from limpet.model import AGENT, PERSON

if TYPE_CHECKING:
    from limpet.api import Limpet
    from limpet.catalogue import table
    from limpet.doors.cli import replies
    from limpet.journal import recover as journal_recovery
    from limpet.protocol import jsonrpc, mcp_server, revisions
    from limpet.text import tokens
    from limpet.upkeep import access_tokens
else:
    table, replies, tokens = map(LateModule, ("catalogue.table", "doors.cli.replies", "text.tokens"))
    jsonrpc, mcp_server = map(LateModule, ("protocol.jsonrpc", "protocol.mcp_server"))
    revisions = LateModule("protocol.revisions")
    journal_recovery, access_tokens = map(LateModule, ("journal.recover", "upkeep.access_tokens"))

Json = dict[str, Any]
LEVELS = (1, 2, 3)  # of the journal
NOTHING_RECOVERED = "the journal says nothing yet; `limpet journal --help` lists what can be written into it."


def update_note(cli: Invocation, id: str, text: str | None, tags: tuple[str, ...], no_tags: bool, **more: Any) -> int:
    if tags and no_tags:
        raise Misuse("--tag and --no-tags cannot both be given.")
    arguments = {
        "id": id,
        "content": None if text is None else cli.line_from(text),
        "tags": list(tags) if tags or no_tags else None,
        **more,
        "anchors": list(more["anchors"]) or None,
    }
    return replies.show(cli, "update_note", cli.call("update_note", arguments), arguments)


def undo(cli: Invocation, seq: int | None, dry_run: bool, yes: bool, layer: str | None) -> int:
    arguments: Json = {"seq": seq, "dry_run": dry_run or None, "layer": layer}
    if layer == PERSON and not (yes or dry_run or sys.stdin.isatty()):
        raise needs_a_person("what is kept for a person", "limpet history --layer person")
    if seq is None and not (dry_run or yes or cli.json) and sys.stdin.isatty() and sys.stdout.isatty():
        event = cli.call("undo", {"dry_run": True, "layer": layer})["undone"]
        replies.show_change(render.screen(), event)
        render.ask("Take this change back?")
        arguments["seq"] = event["seq"]
    return replies.show(cli, "undo", cli.call("undo", arguments), arguments)


def scratch(cli: Invocation, text: str | None, mode: str | None) -> int:
    mode = "read" if text is None and mode is None else mode
    arguments = {"content": None if text is None else cli.line_from(text), "mode": mode}
    return replies.show(cli, "scratch_note", cli.call("scratch_note", arguments, cli.writing()), arguments)


def set_state(cli: Invocation, key: str, value: str | None, text: bool, expected_version: int | None) -> int:
    words = cli.line_from(value)
    arguments = {"action": "set", "key": key, "value": words if text else _value(words)}
    reply = cli.call("agent_state", {**arguments, "expected_version": expected_version}, cli.writing())
    return replies.show(cli, "agent_state", reply, arguments)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise Misuse(f"The value is no JSON ({problem}). Give --text if it is a text as it stands.") from None


def keep_output(cli: Invocation, tool: str, call: str) -> None:
    content = sys.stdin.buffer.read().decode("utf-8", "replace")
    session = cli.hold.session(cli.writing(), by=BY, keep_secret=cli.keep_secret)
    output = session.outputs.keep(tool, content, call=call)
    reply = {"text": output.text, "id": output.output.id if output.output else None}
    cli.answer(reply, lambda screen: screen.block(output.text))


def run_code(cli: Invocation, file: str | None, inputs: str | None, name: str | None) -> int:
    code = None if file is None else _code(cli, file)
    arguments = {"code": code, "inputs": None if inputs is None else _inputs(inputs), "name": name}
    reply = cli.call("run_sandbox_code", arguments, cli.active())
    return replies.show(cli, "run_sandbox_code", reply, arguments)


def _code(cli: Invocation, file: str) -> str:
    if file == "-":
        return cli.text_from("-")
    with open(file, "rb") as source:
        return source.read().decode("utf-8", "surrogateescape")


def _inputs(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise Misuse(f"--inputs is no JSON: {problem}.") from None


# --- a notepad or a system prompt: replace or delete a passage, or open the person's editor ---------------------------


# The operations on a text, and which session they are called for.
PAD = {"read": "read_notepad", "write": "write_notepad", "edit": "update_notepad", "calls_for": ACTIVE}
PROMPT = {
    "read": "read_system_prompt",
    "write": "write_system_prompt",
    "edit": "edit_system_prompt",
    "calls_for": WRITING,
}


def edit_pad(cli: Invocation, /, **options: Any) -> int:
    return _edit(cli, PAD, **options)


def edit_prompt(cli: Invocation, /, **options: Any) -> int:
    return _edit(cli, PROMPT, **options)


def _edit(
    cli: Invocation,
    document: dict[str, str],
    find: str | None,
    replace: str | None,
    delete: str | None,
    everywhere: bool,
    expected_version: int | None,
) -> int:
    change: dict[str, Any] = {"replace_all": everywhere or None, "expected_version": expected_version}
    if delete is not None and (find is not None or replace is not None):
        raise Misuse("--delete stands alone: leave --find and --replace out.")
    if delete is not None:
        return _change(
            cli, document["edit"], {"operation": "delete", "content": delete, **change}, document["calls_for"]
        )
    if find is not None or replace is not None:
        change |= {"operation": "find_replace", "find": find, "replace": replace}
        return _change(cli, document["edit"], change, document["calls_for"])
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _edit_by_hand(cli, document)
    raise Misuse("Give --find and --replace, or --delete; on a terminal, nothing opens your editor.")


def _change(cli: Invocation, operation: str, arguments: dict[str, Any], calls_for: str) -> int:
    return replies.show(
        cli, operation, cli.call(operation, arguments, cli.session_for(calls_for, rewrites=True)), arguments
    )


def _edit_by_hand(cli: Invocation, document: dict[str, str]) -> int:
    session = cli.session_for(document["calls_for"], rewrites=True)
    before = cli.call(document["read"], {}, session)

    def save(content: str) -> int:
        arguments = {"content": content, "expected_version": before["version"]}
        return replies.show(cli, document["write"], cli.call(document["write"], arguments, session), arguments)

    return by_hand(cli, before["content"], save)


def by_hand(cli: Invocation, before: str, save: Callable[[str], int]) -> int:
    """Open the person's editor on a private file. If the result cannot be saved the file stays: no work is lost."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Misuse("Give a text; on a terminal, nothing opens your editor.")
    path = _private_file(before)
    saved = True
    try:
        import click  # late: most commands need neither an editor nor click

        try:
            click.edit(filename=path)
        except click.ClickException as problem:
            saved = _content(path) == before  # an editor that was left with an error may have saved something
            where = "" if saved else f" Your text is kept in {path}."
            raise Misuse(f"{problem.message}. Set EDITOR to another one, or give the text.{where}") from problem
        after = _content(path)
        # Editors end the last line; that alone is no change.
        if after in (before, before + "\n"):
            cli.notice("nothing was changed.")
            return 0
        return save(after)
    except LimpetError:
        saved = False
        cli.notice(f"your text was not saved; it is kept in {path}.")
        raise
    finally:
        if saved:
            os.unlink(path)


def _content(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "surrogateescape")


def _private_file(content: str) -> str:
    import tempfile

    handle, path = tempfile.mkstemp(prefix="limpet-notepad-", suffix=".md")  # readable by its owner alone
    with os.fdopen(handle, "wb") as file:
        file.write(content.encode())
    return path


# --- the journal without a store: hooks run it at every start ---------------------------------------------------------


def show_recovered(cli: Invocation, level: int | str | None, query: str | None) -> int:
    if cli.json or isinstance(level, str) or level not in (None, *LEVELS) or not (query or "").isprintable():
        # The operation checks its arguments and renders its reply, which takes a store and longer.
        reply = cli.call("recover_journal", {"level": level, "query": query})
        cli.answer(reply, lambda screen: screen.block(reply["text"]))
        return 0
    journal = journal_recovery.in_project(cli.settings.root, cli.settings.bounds.journal, cli.settings.data)
    text = journal_recovery.recovered(journal, level or 1, query or "", datetime.now(UTC)).text
    if not text.strip():
        cli.notice(NOTHING_RECOVERED)
    render.PlainScreen().block(text)
    return 0


# --- what an agent's window begins with, and the tokens it costs ------------------------------------------------------


def tools(cli: Invocation, profile: str | None) -> None:
    profiles = {name: costs(name) for name in ((profile,) if profile else table.PROFILES)}
    cli.answer({"tokenizer": tokens.NAME, "profiles": profiles}, lambda screen: _draw_costs(screen, profiles))
    if not cli.json:
        cli.notice(f"tokens are counted by {tokens.NAME}; bytes are those of the whole reply to tools/list.")


def costs(profile: str) -> Json:
    """Every tool of a profile as a client gets it from the newest revision of the protocol, with its cost."""
    # Listing tools uses no store, and looking at prices must not create one.
    surface = mcp_server.Surface(cast("Limpet", None), profile)
    method, revision = "tools/list", revisions.MODERN[-1]
    listed = surface.handler(method, {}, revision)({}, mcp_server.ClientState(), revision)
    reply = mcp_server.finished(method, listed, revision)
    rows = [
        {"name": tool["name"], "tokens": tokens.count(jsonrpc.dumps(tool)), "bytes": len(jsonrpc.encode(tool))}
        for tool in cast(list[Json], reply["tools"])
    ]
    return {"tools": rows, "tokens": tokens.count(jsonrpc.dumps(reply)), "bytes": len(jsonrpc.encode(reply))}


def _draw_costs(screen: Screen, profiles: dict[str, Json]) -> None:
    rows: list[tuple[object, ...]] = []
    for name, profile in profiles.items():
        rows += [(name, tool["name"], tool["tokens"], tool["bytes"]) for tool in profile["tools"]]
        rows.append((name, "(total)", profile["tokens"], profile["bytes"]))
    screen.table(("profile", "tool", "tokens", "bytes"), rows)


def context(cli: Invocation, line: str | None) -> None:
    # Without --session it is a session that does not exist, and looking does not create it.
    text = cli.hold.session(cli.session or f"new-{os.urandom(6).hex()}", by=BY).context(line)
    reply = {"context": text, "tokens": tokens.count(text), "tokenizer": tokens.NAME}
    cli.answer(reply, lambda screen: screen.block(text))
    if not cli.json:
        cli.notice(f"about {reply['tokens']:,} tokens, by {tokens.NAME}.")


# --- access tokens of the HTTP server of this store -------------------------------------------------------------------


def create_token(
    cli: Invocation, name: str, scope: str, also: tuple[str, ...], tenant: str | None, expires: str, person: bool
) -> None:
    label, project, served = _token_project(cli)
    _refuse_mistyped(cli, (project, *also))
    now = cli.hold.clock()
    projects = (project, *also)
    kind = PERSON if person else AGENT
    request = access_tokens.token_request(name, tenant or cli.settings.tenant, scope, projects, expires, now, kind)
    created = access_tokens.create(cli.hold.store, request, by=BY, now=now)
    reply = {**access_tokens.token_json(created.token, now), "token": created.secret}
    cli.answer(reply, lambda screen: _explain_token(screen, reply, (label, *also), served))


def _token_project(cli: Invocation) -> tuple[str, str, str]:
    """The project a token is for: as people call it, as the store does, and the command that serves it.

    A token is kept in the store that `limpet serve --team` serves here. A project that has a store of its own is served
    by its name; any other one that is named is a project of the folder's store.
    """
    named, chosen = cli.project, cli.settings
    command = "limpet serve --team"
    if named is None or not chosen.own_store:
        return (chosen.name if chosen.own_store else chosen.project), chosen.project, command
    if named != access_tokens.EVERY_PROJECT and chosen.data is not None and chosen.data.path is not None:
        return named, chosen.project, f"{command} --project {named}"
    cli.leave_project()
    is_this_one = named == cli.settings.name
    return named, (cli.settings.project if is_this_one else named), command


def _refuse_mistyped(cli: Invocation, projects: tuple[str, ...]) -> None:
    """A project may begin with the first thing that is written to it, unless its name is nearly that of another."""
    store, tenant = cli.hold.store, cli.hold.scope.tenant
    existing = {cli.settings.project, *store.projects(tenant), access_tokens.EVERY_PROJECT}
    for token in access_tokens.listed(store, tenant):
        existing.update(token.projects)
    others = {cli.settings.name, *project_names()} if cli.settings.own_store else set()
    for name in projects:
        near = nearest(name, sorted(existing | others))
        if name not in existing and near:
            raise no_project_in_store(name, render.shown_place(store.place), near)


def list_tokens(cli: Invocation, tenant: str | None) -> None:
    now = cli.hold.clock()
    tokens = [access_tokens.token_json(token, now) for token in access_tokens.listed(cli.hold.store, tenant)]
    columns = ("id", "name", "kind", "tenant", "scope", "projects", "state", "expires", "last used")
    rows = [
        (
            *(token["id"], token["name"], token["kind"], token["tenant"], token["scope"]),
            *(", ".join(token["projects"]), token["state"]),
            *(token["expires_at"] or "never", token["used_at"] or "never"),
        )
        for token in tokens
    ]
    cli.answer({"tokens": tokens}, lambda screen: screen.table(columns, rows))
    if not tokens and not cli.json:
        cli.notice("no tokens yet; `limpet token create` makes one.")


def revoke_token(cli: Invocation, id: str) -> None:
    now = cli.hold.clock()
    reply = access_tokens.token_json(access_tokens.revoke(cli.hold.store, id, tenant=None, by=BY, now=now), now)
    cli.answer(reply, lambda screen: screen.line(f"{reply['id']} ({reply['name']}) is revoked"))


def token_history(cli: Invocation, tenant: str | None) -> None:
    rows = [access_tokens.change_json(event) for event in access_tokens.history(cli.hold.store, tenant)]
    columns = ("at", "by", "operation", "id", "name", "tenant")
    cli.answer({"events": rows}, lambda screen: screen.table(columns, [tuple(row.values()) for row in rows]))


def _explain_token(screen: Screen, reply: dict[str, Any], projects: tuple[str, ...], served: str) -> None:
    screen.line(reply["token"], "bold")
    until = f"until {reply['expires_at']}" if reply["expires_at"] else "without an end"
    screen.line(f"{reply['name']} may {reply['scope']} in {', '.join(projects)} {until}")
    sign_in = "It signs a person in to the dashboard" if reply["kind"] == PERSON else "It is for agents and programs"
    screen.line(f"{sign_in}. This is the only time it is shown. `{served}` lets it in.", "yellow")
