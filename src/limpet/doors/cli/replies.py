"""How the reply of each operation is drawn for people.

An operation without an entry in `RENDERERS` gets the generic drawing: a table of its list, or a line for each field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from limpet.doors.cli import render
from limpet.doors.cli.render import Screen
from limpet.doors.cli.run import Invocation
from limpet.light import Any, json
from limpet.text import brief
from limpet.window.plan import gauge

Json = dict[str, Any]
# Draws a reply. The arguments of the call say what was asked for; remarks go beside it with `notice`.
Renderer = Callable[[Invocation, Screen, Json, Json], None]
SAVINGS = ("calls", "kept", "repeats", "reads", "observed", "returned", "read_back", "saved")


def show(cli: Invocation, operation: str, reply: Json, arguments: Json) -> int:
    """Print the reply of an operation; the exit code."""
    cli.say_masked(reply)
    if cli.json:
        render.to_stdout(render.as_json(reply))
    else:
        RENDERERS.get(operation, generic)(cli, render.screen(), reply, arguments)
        _say_empty(cli, operation, reply)
    return 0 if operation not in EXIT_WELL or EXIT_WELL[operation](reply) else 2


UNDO_BACK = "`limpet undo` brings it back"
FILES_BACK = "its file is git's to bring back"

# What an answer without anything in it says: the fields that are empty then, and the sentence.
EMPTY: dict[str, tuple[str, str]] = {
    "list_notes": ("notes", "no notes here; `limpet note add` writes one."),
    "search_notes": ("notes related", "no note fits."),
    "list_tags": ("tags", "no tags yet; `limpet note add TEXT --tag TAG` gives one."),
    "search_memory": ("matches", "nothing in memory fits."),
    "read_notepad": ("content", "the notepad is empty."),
    "read_system_prompt": ("content", "there is no system prompt; `limpet prompt write` makes one."),
    "scratch_note": ("content note_id", "the scratchpad is empty."),
    "list_skills": ("skills problems", "no skills yet; `limpet skill promote` makes one of a section of the notepad."),
    "recall": ("hits", "nothing fits."),
    "list_sessions": ("sessions", "no sessions yet; they begin with the first thing that is written."),
    "history": ("events", "nothing has changed yet."),
    "list_pins": ("pins", "nothing is pinned; `limpet window pin` does it."),
    "list_tasks": ("tasks", "no tasks in this session."),
    "list_folds": ("folds", "nothing is folded."),
    "list_memory": ("memories", "no memory yet; `limpet memory write KEY TEXT` writes it."),
    "agent_state": ("key keys", "no values yet; `limpet state set KEY JSON` keeps one."),
    "list_outputs": ("entries", "no big result was kept yet."),
    "list_seals": ("servers", "no server's tools are sealed; `limpet wrap` and `limpet gateway` seal them."),
    "savings": ("tools", "no big result was kept yet, so nothing was saved."),
}


def _say_empty(cli: Invocation, operation: str, reply: Json) -> None:
    fields, sentence = EMPTY.get(operation, ("", ""))
    if sentence and not any(reply.get(field) for field in fields.split()):
        cli.notice(sentence)


# Hooks and CI look at the exit code of these: 0 when all is well, otherwise 2.
EXIT_WELL: dict[str, Callable[[Json], bool]] = {
    "lint_journal": lambda reply: bool(reply["ok"]),
    "verify_journal": lambda reply: not reply["drifted"] + reply["gone"],
}


# --- ways to draw -----------------------------------------------------------------------------------------------------


def generic(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    """A reply as it is: its first list of objects as a table, every other field on a line."""
    name = next((name for name, value in reply.items() if _is_table(value)), None)
    for field, value in reply.items():
        if field not in (name, "masked"):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            screen.block(f"{field}: {text}")
    if name is not None:
        columns = list(reply[name][0])
        screen.table(columns, [[row.get(column, "") for column in columns] for row in reply[name]])


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def line(template: str, notices: Callable[[Invocation, Json], None] | None = None) -> Renderer:
    """One line, with the fields of the reply in it."""

    def draw(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
        screen.line(template.format(**reply))
        if notices is not None:
            notices(cli, reply)

    return draw


def block(field: str) -> Renderer:
    """A stored text in full."""
    return lambda cli, screen, reply, arguments: screen.block(reply[field])


def table(rows: str, columns: str, remark: Callable[[Invocation, Json], None] | None = None) -> Renderer:
    """The rows of a reply. A column is a field, or "title=field"; an underscore in a title is shown as a space."""
    titles = [column.partition("=")[0].replace("_", " ") for column in columns.split()]
    fields = [column.rpartition("=")[2] for column in columns.split()]

    def draw(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
        screen.table(titles, [[row.get(field, "") for field in fields] for row in reply[rows]])
        if remark is not None:
            remark(cli, reply)

    return draw


def _warn(cli: Invocation, reply: Json) -> None:
    if reply.get("warning"):
        cli.notice(reply["warning"])


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


# --- notes and memory -------------------------------------------------------------------------------------------------


def _note_columns(arguments: Json) -> tuple[str, ...]:
    states = arguments["include_done"] or arguments["include_replaced"]
    return ("id", "updated", *(("state",) if states else ()), "tags", "content")


def _note_cells(note: Json, columns: Sequence[str]) -> list[str]:
    cells = {
        "id": note["id"],
        "match": note.get("match", ""),
        "updated": note["updated_at"],
        "state": _state(note),
        "tags": ", ".join(note["tags"]),
        "content": note["content"],
    }
    return [cells[name] for name in columns]


def _state(entry: Json) -> str:
    """Whether a note or memory still holds."""
    if entry.get("replaced_by"):
        return f"replaced by {entry['replaced_by']}"
    return "expired" if entry.get("expired") else "done" if entry.get("done") else "open"


def _list_notes(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    columns = _note_columns(arguments)
    screen.table(columns, [_note_cells(note, columns) for note in reply["notes"]])
    _more_notes(cli, reply)


def _search_notes(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    columns = ("id", "match", *_note_columns(arguments)[1:])
    notes = [{**note, "match": "exact"} for note in reply["notes"]]
    notes += [{**note, "match": "related"} for note in reply.get("related", ())]
    screen.table(columns, [_note_cells(note, columns) for note in notes])
    _more_notes(cli, reply)


def _more_notes(cli: Invocation, reply: Json) -> None:
    if reply.get("left_out"):
        cli.notice(f"{reply['left_out']:,} more are not shown; --limit shows more, a tag or a search fewer.")


def _add_note(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    counts = f"notes: {reply['total_notes']}, tags: {reply['total_tags']}"
    if reply.get("duplicate_of") == reply["note_id"]:
        screen.line(f"{reply['note_id']} says this already; nothing was added ({counts})")
        return
    screen.line(f"{reply['note_id']} added to session {cli.writing()} ({counts})")
    _remarks(cli, reply)


def _remarks(cli: Invocation, reply: Json) -> None:
    """What the writer should know: it says the same as another entry, corrects one, or pushes one out."""
    if entry := reply.get("duplicate_of") or reply.get("similar_to"):
        cli.notice(f"{entry} says {'' if 'duplicate_of' in reply else 'nearly '}the same.")
    if reply.get("replaced"):
        team = reply.get("layer") == "team"
        back = f" as long as the file of {reply['key']} says so" if team else f"; {UNDO_BACK}"
        cli.notice(f"{reply['replaced']} is replaced{back}.")
    if reply.get("corrects"):
        cli.notice(
            f"it seems to correct {reply['corrects']}: the same command with --replaces {reply['corrects']} hides "
            "that one."
        )
    if reply.get("displaced"):
        cli.notice(f"no longer in the digest at the start of a session: {', '.join(reply['displaced'])}.")
    if reply.get("remark"):
        cli.notice(reply["remark"])


def _search_memory(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    _memories(screen, reply["matches"], arguments)


def _list_memory(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    _memories(screen, reply["memories"], arguments)
    if reply.get("left_out"):
        cli.notice(f"{reply['left_out']:,} more are not shown; --limit shows more.")
    for remark in reply.get("remarks", ()):
        cli.notice(f"{remark}.")


def _memories(screen: Screen, memories: Sequence[Json], arguments: Json) -> None:
    states = ("state",) if arguments.get("include_replaced") else ()
    layers = ("layer",) if any(m.get("layer") for m in memories) else ()
    rows = [
        (
            *(m.get("layer", "project") for _ in layers),
            m["key"],
            m["updated_at"],
            "pinned" if m.get("pinned") else "",
            *(_state(m) for _ in states),
            m["content"],
        )
        for m in memories
    ]
    screen.table((*layers, "key", "updated", "pinned", *states, "content"), rows)


def _write_memory(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    if "proposed" not in reply:
        screen.line(f"{reply['key']} written ({reply['bytes_written']:,} bytes)")
        _remarks(cli, reply)
    elif reply.get("rejected"):
        screen.line(f"{reply['key']} was rejected before, so it is not proposed again")
    else:
        screen.line(f"{reply['key']} waits for you as {reply['proposed']}: `limpet review`")


def _list_proposals(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    for item in reply["proposals"]:
        name = item.get("key") or item["kind"]
        long = f", waiting for {item['waiting_days']:,} days" if "waiting_days" in item else ""
        screen.line(f"{item['id']}  {item['layer']} {item['kind']} {name} (by {item['by']}{long})", "bold")
        if "before" in item:
            screen.block(f"in place of:\n{_set_in(item['before'])}")
        screen.block(_set_in(item["content"]))
    if reply["proposals"]:
        cli.notice("`limpet review accept ID` lets a text count, `limpet review reject ID` leaves it out.")
    else:
        screen.line("Nothing waits for you.")


def _set_in(text: str) -> str:
    """The lines of a text, set in: none of them can pass for a heading between texts."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def _mark_useful(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    screen.line(f"{reply['id']} was called useful {brief.counted(reply['useful'], 'time')}")


def _delete_memory(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    back = FILES_BACK if arguments.get("layer") == "team" else UNDO_BACK
    screen.line(f"{reply['key']} deleted; {back}")


def _pin_memory(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    screen.line(f"{reply['key']} {'pinned' if arguments['pinned'] else 'unpinned'}")


def _write_handoff(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    screen.line(f"handoff left for the next session{'; it replaces an earlier one' if reply['replaced'] else ''}")


def _read_handoff(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    screen.block(reply["content"])
    for change in reply.get("since", ()):
        screen.block(change)
    used = f"used by {reply['used_by']}" if reply["used_by"] else "not used yet"
    cli.notice(f"left by session {reply['written_by']} at {reply['written_at']}, {used}.")
    for waiting in reply.get("others", ()):
        cli.notice(f"also waits on {waiting['line']}: {waiting['begins']} (--id {waiting['id']})")


def _versions(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    columns = ("version", "at", "by", "operation", "characters")
    if arguments["version"] is None:
        screen.table(columns, [[version[name] for name in columns] for version in reply["versions"]])
    else:
        screen.diff(reply["diff"])


def _scratch(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    screen.block(reply.get("content") or reply.get("note_id", ""))


def _agent_state(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    if arguments["action"] == "get":
        screen.block(_as_text(reply["value"]))
    elif arguments["action"] == "set":
        screen.line(f"{reply['key']} is at version {reply['version']}")
    elif arguments["action"] == "delete":
        screen.line(f"{reply['key']} deleted; limpet undo brings it back")
    else:
        screen.table(("key",), [(key,) for key in reply["keys"]])
        if reply.get("left_out"):
            cli.notice(f"{reply['left_out']:,} older keys were not looked at.")


def _broken_skills(cli: Invocation, reply: Json) -> None:
    for problem in reply["problems"]:
        cli.notice(f"{problem['folder']} cannot be used: {problem['why']}.")


# --- the journal ------------------------------------------------------------------------------------------------------


def _lint(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    table("findings", "line rule message")(cli, screen, reply, arguments)
    if reply["ok"]:
        cli.notice("nothing to mend.")


def _verify(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    table("checked", "state place now what detail")(cli, screen, reply, arguments)
    if EXIT_WELL["verify_journal"](reply):
        cli.notice("all evidence stands.")


def _init_journal(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    file = cli.settings.bounds.journal.file
    exists = f"{file} is there already; `limpet journal lint` looks at it"
    screen.line(f"{file} made" if reply["created"] else exists)


def _heal(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    did = "brought back" if reply["written"] else "would be brought back"
    source = f"; {did} from: {reply['source']}" if reply["source"] else ""
    screen.line(f"{reply['file']}: {reply['state']}{source}")


def _journal_entry(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    place = f"{reply['file']}:{reply['line']}" if reply["line"] else reply["file"]
    screen.line(f"{place} {reply.get('id', '')}".strip())
    _journal_notices(cli, reply)


def _checkpoint(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    screen.line(f"checkpoint {reply['at']}, {reply['file']}:{reply['line']}; handoff written")
    for title in ("blockers", "incomplete", "questions"):
        for item in reply[title]:
            screen.line(f"{title}: {item}")
    _journal_notices(cli, reply)


def _journal_notices(cli: Invocation, reply: Json) -> None:
    for place in reply.get("moved", ()):
        cli.notice(f"the quote stands at {place}; that is what was written.")
    if reply.get("conflicts"):
        cli.notice("people changed the same entries meanwhile; both versions are in the file: see `journal lint`.")
    if reply.get("hint"):
        cli.notice(reply["hint"])


# --- recall, sessions and history -------------------------------------------------------------------------------------


def _holds(hit: Json) -> Iterator[str]:
    """What no longer holds of a hit, or is in another place."""
    if state := hit.get("state"):
        yield f"{state} by {hit['replaced_by']}" if hit.get("replaced_by") else state
    if "layer" in hit:
        yield f"of the {hit['layer']}"
    source = hit.get("source", {})
    if "was_true_at" in source:
        change = "is gone" if source["state"] == "gone" else "has changed since"
        yield f"was true at {source['was_true_at'][:10]}: {source['place']} {change}"
    elif source.get("state") == "moved":
        yield f"its source moved to {source['place']}"
    if "corrected_in" in hit:
        yield f"corrected since in {', '.join(hit['corrected_in'])}"


def _recall(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    rows = []
    for hit in reply["hits"]:
        place = f"{hit['id']}:{hit['line']}" if "line" in hit else str(hit["id"])
        state = ", ".join((hit["trust"], *_holds(hit)))  # provenance, and whether it still holds
        rows.append((hit["kind"], place, hit["updated_at"], state, hit["text"], "; ".join(hit["why"])))
    screen.table(("kind", "id", "updated", "state", "text", "why"), rows)
    if nothing := reply.get("nothing_fits"):
        cli.notice(nothing.replace("more=true", "--more"))
    elif reply.get("left_out"):
        cli.notice(f"{reply['left_out']} more; --limit shows them.")
    if waiting := reply.get("not_searched"):
        cli.notice(f"{waiting['outputs']} outputs were not searched. {waiting['why']}")
    if waiting := reply.get("not_embedded"):
        count = waiting["texts"]
        many = "1 text is" if count == 1 else f"{count:,} texts are"
        cli.notice(f"{many} not embedded yet and found by words alone; `limpet index` does it.")
    if reply.get("hint") and not reply["hits"]:
        cli.notice(reply["hint"])


def _more_sessions(cli: Invocation, reply: Json) -> None:
    if reply.get("left_out"):
        cli.notice(f"{reply['left_out']:,} more are not shown; --limit shows more.")


def _show_session(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    names = ("id", "task", "state", "parent", "created_at", "archived_at", "notes")
    screen.table(("field", "value"), [(name, "" if reply[name] is None else reply[name]) for name in names])
    screen.line("")
    screen.block(reply["notepad"])


def _wait(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    rows = [(row["id"], row["status"], row.get("result", row.get("error"))) for row in reply["results"]]
    rows += [(id, "active", "") for id in reply.get("waiting", ())]
    screen.table(("id", "status", "result"), rows)


def _history(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    columns = ("seq", "at", "by", "operation", "session", "kind", "key", "after")
    rows = [["(deleted)" if event[name] is None else str(event[name]) for name in columns] for event in reply["events"]]
    screen.table(columns, rows)


def show_change(screen: Screen, event: Json) -> None:
    """A change as it was, for a person who thinks of undoing it."""
    of = f"{event['operation']} {event['kind']} {event['key']}"
    screen.line(f"change {event['seq']}, {render.when(event['at'])}: {of}")
    for mark, text in (("-", event["before"]), ("+", event["after"])):
        screen.diff("".join(f"{mark}{line}\n" for line in (text or "").splitlines()))


def _undo(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    event = reply["undone"]
    if arguments.get("dry_run"):
        show_change(screen, event)
        return
    count = reply.get("restored", 0)
    back = f"{brief.counted(count, 'entry', 'entries')} {'is' if count == 1 else 'are'} back"
    restored = f"; {back}" if "restored" in reply else ""
    screen.line(f"change {event['seq']} undone ({event['operation']}: {event['kind']} {event['key']}){restored}")


# --- the window, outputs and the sandbox ------------------------------------------------------------------------------


def _window(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    screen.block(gauge.bar(gauge.Gauge(reply["limit"], reply["used"], reply["sections"])))
    for text in reply["left_out"]:
        screen.line(text)


def _compacted(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    if reply["ok"]:
        screen.line(f"messages {reply['first']} to {reply['last']} are folded, {reply['freed']:,} tokens are free")
    else:
        screen.line(f"nothing was folded: {reply['reason']}")


def _folds(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    rows = []
    for fold in reply["folds"]:
        sizes = f"{fold['before']:,} → {fold['after']:,}" if fold["before"] is not None else ""
        score = f"{fold['score']:.0%}" if fold["score"] is not None else ""
        rows.append((fold["id"], fold["how"], f"{fold['first']}-{fold['last']}", sizes, score, fold["at"]))
    screen.table(("id", "how", "messages", "tokens", "found again", "at"), rows)
    cli.notice(f"the session has {reply['messages']:,} messages; `limpet window restore` brings some back.")


def _outputs(cli: Invocation, reply: Json) -> None:
    stats = reply["stats"]
    if stats["entries"]:
        count = brief.counted(stats["entries"], "output")
        cli.notice(f"{count}, {stats['total_bytes']:,} bytes, {stats['stored_bytes']:,} on disk.")


def _read_output(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    screen.block(reply["content"])
    if reply.get("note") or reply.get("cursor"):
        more = f" --cursor {reply['cursor']} reads on." if reply.get("cursor") else ""
        cli.notice(f"{reply.get('note', '')}{more}".strip())


def _savings(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    rows = [(row["session"], row["tool"], *(f"{row[name]:,}" for name in SAVINGS)) for row in reply["tools"]]
    if not rows:
        return
    rows.append(("in all", "", *(f"{reply['total'][name]:,}" for name in SAVINGS)))
    screen.table(("session", "tool", *SAVINGS), rows)
    cli.notice(f"tokens by {reply['tokenizer']}; of long texts a sample is counted.")


def _sandbox(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    if reply["output"]:
        screen.block(reply["output"])
    if "result" in reply:
        screen.block(_as_text(reply["result"]))
    _warn(cli, reply)


# --- care -------------------------------------------------------------------------------------------------------------


def _audit(cli: Invocation, reply: Json) -> None:
    counts = ", ".join(f"{name} {count:,}" for name, count in reply["counts"].items())
    cli.notice(f"{counts}; looked at {reply['looked_at']['entries']:,} entries. {reply['not_known']}")
    for use in reply.get("used", ()):
        counts = ", ".join(f"{name} {brief.counted(use[name], 'time')}" for name in ("opened", "useful", "cited"))
        cli.notice(f"{use['kind']} {use['id']}: {counts}.")
    for skipped in reply.get("skipped", ()):
        cli.notice(f"{skipped}.")


def _purge(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    table("entries", "kind id session at")(cli, screen, reply, arguments)
    counts = ", ".join(f"{count:,} {name}" for name, count in reply["counts"].items()) or "nothing"
    if arguments.get("version") is not None:
        counts = f"version {arguments['version']:,} of {arguments['id']}"
    back = "; `limpet undo` brings entries back" if reply.get("purge") and not arguments["forever"] else ""
    cli.notice(f"{counts} {'would go' if arguments['dry_run'] else 'taken out'}{back}.")
    for remark in reply["remarks"]:
        cli.notice(remark)


def _tool_pins(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    rows = [
        (server["server"], pin["tool"], pin["state"], ", ".join(pin.get("parts", ())))
        for server in reply["servers"]
        for pin in server["tools"]
    ]
    screen.table(("server", "tool", "state", "what changed"), rows)


def _approved(cli: Invocation, screen: Screen, reply: Json, arguments: Json) -> None:
    names = ", ".join(reply["approved"]) or "nothing, all was as sealed"
    screen.line(f"{reply['server']}: approved {names}")


COUNTS = "(notes: {total_notes}, tags: {total_tags})"
NOTEPAD = line("notepad is at version {version} (about {tokens:,} tokens)", _warn)
PROMPT = line("system prompt is at version {version} (about {tokens:,} tokens)", _warn)
SPAWNED = line("{id} at depth {depth}")
FOLDED = line("{messages_collapsed:,} messages folded")

RENDERERS: dict[str, Renderer] = {
    "add_note": _add_note,
    "update_note": line(f"{{note_id}} updated {COUNTS}"),
    "delete_note": line(f"{{note_id}} deleted; `limpet undo` brings it back {COUNTS}"),
    "list_notes": _list_notes,
    "search_notes": _search_notes,
    "list_tags": table("tags", "tag notes=count"),
    "search_memory": _search_memory,
    "read_memory": block("content"),
    "write_memory": _write_memory,
    "list_proposals": _list_proposals,
    "accept_proposal": line("{id} accepted: it counts from now on"),
    "reject_proposal": line("{id} rejected: the same text is not proposed again"),
    "list_memory": _list_memory,
    "delete_memory": _delete_memory,
    "mark_useful": _mark_useful,
    "pin_memory": _pin_memory,
    "write_session_handoff": _write_handoff,
    "read_handoff": _read_handoff,
    "read_notepad": block("content"),
    "write_notepad": NOTEPAD,
    "update_notepad": NOTEPAD,
    "restore_notepad": NOTEPAD,
    "notepad_history": _versions,
    "read_system_prompt": block("content"),
    "write_system_prompt": PROMPT,
    "edit_system_prompt": PROMPT,
    "restore_system_prompt": PROMPT,
    "system_prompt_history": _versions,
    "scratch_note": _scratch,
    "agent_state": _agent_state,
    "list_skills": table("skills", "name description folder", _broken_skills),
    "read_skill": block("content"),
    "promote_skill": line("{name} is in {folder}"),
    "recover_journal": block("text"),
    "lint_journal": _lint,
    "verify_journal": _verify,
    "init_journal": _init_journal,
    "heal_journal": _heal,
    "rotate_journal": line("{decisions} decisions and {rows} log rows moved to {archive}"),
    "log_decision": _journal_entry,
    "update_journal": _journal_entry,
    "checkpoint_session": _checkpoint,
    "recall": _recall,
    "list_sessions": table("sessions", "id state created=created_at task", _more_sessions),
    "show_session": _show_session,
    "begin_session": line("{id} is {state}"),
    "archive_session": line("{id} is {state}"),
    "spawn_session": SPAWNED,
    "fork_session": SPAWNED,
    "wait_for_sessions": _wait,
    "report_result": line("{id} is {status}"),
    "end_session": line("{id} is {status}"),
    "history": _history,
    "undo": _undo,
    "show_window": _window,
    "compact_window": _compacted,
    "list_folds": _folds,
    "uncompact": line("messages {first} to {last} are in the window again"),
    "pin_text": line("{id} pinned"),
    "unpin_text": line("{id} unpinned"),
    "list_pins": table("pins", "id text=content"),
    "begin_task": line("{task_id} begun, depth {depth}"),
    "end_task": FOLDED,
    "cancel_task": FOLDED,
    "list_tasks": table("tasks", "id=task_id state description outcome"),
    "list_outputs": table("entries", "id tool bytes=size shape used=used_at", _outputs),
    "read_output": _read_output,
    "delete_output": line("{id} deleted ({size:,} bytes)"),
    "prune_outputs": line("{deleted:,} pruned, {freed_bytes:,} bytes"),
    "clear_outputs": line("{deleted:,} deleted"),
    "savings": _savings,
    "run_sandbox_code": _sandbox,
    "audit": table("findings", "finding kind id reason", _audit),
    "purge": _purge,
    "list_seals": _tool_pins,
    "approve_seals": _approved,
}
