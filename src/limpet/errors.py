"""One tree of problems. Each says what happened, names the value, the rule and the next step.

    LimpetError
    ├── BadInput          the caller can mend it by calling differently          exit 2
    ├── NotFound          the thing named is not there                           exit 3
    ├── Conflict          somebody else changed it first                         exit 4
    └── StoreProblem      the place where things are kept is in trouble          exit 5
        ├── NotAStore     the file or address is not a Limpet store
        ├── StoreTooNew   written by a later version
        ├── StoreReadOnly cannot be written here
        ├── StoreFull     no room left
        ├── StoreBusy     somebody holds the write lock for too long
        ├── StoreDamaged  what was read is not what was written
        └── StoreGone     the server or file cannot be reached

A problem is made once, where it is found, and every door shows the same sentence. The sentences are written here, those
about the journal in journal/document/problems.py, about files in upkeep/file_tree_problems.py, about coding agents in
clients/problems.py, and nowhere else, so that a test can print them all.
"""

from __future__ import annotations


class LimpetError(Exception):
    """Any problem Limpet reports. `code` is stable for machines, the message is for people and agents."""

    exit_code = 1

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class BadInput(LimpetError):
    exit_code = 2


class NotFound(LimpetError):
    exit_code = 3


class Conflict(LimpetError):
    exit_code = 4


class StoreProblem(LimpetError):
    exit_code = 5


class NotAStore(StoreProblem):
    pass


class StoreTooNew(StoreProblem):
    pass


class StoreReadOnly(StoreProblem):
    pass


class StoreFull(StoreProblem):
    pass


class StoreBusy(StoreProblem):
    pass


class StoreDamaged(StoreProblem):
    pass


class StoreGone(StoreProblem):
    pass


def shown(value: object, most: int = 60) -> str:
    """A value as it appears inside a message: quoted when it is text, and never long."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def a_kind(value: object) -> str:
    """The JSON name of a value's type, for messages that agents read."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", tuple: "a list"}
    return "null" if value is None else names.get(type(value), "an object")


# --- what callers get wrong -------------------------------------------------------------------------------------------


def empty(what: str, advice: str) -> BadInput:
    return BadInput("empty", f"{what} is empty; it needs at least one character that is not a space. {advice}")


def too_long(what: str, got: int, limit: int, advice: str) -> BadInput:
    return BadInput("too_long", f"{what} has {got:,} characters; the limit is {limit:,}. {advice}")


def tree_too_deep(limit: int) -> BadInput:
    return BadInput(
        "tree_too_deep", f"a session can be at most {limit} below the first one, and this one is. Do the work here."
    )


def too_many_children(limit: int) -> Conflict:
    return Conflict(
        "too_many_children",
        f"this session has {limit} children at work, which is the limit. Wait for one with wait_for_sessions first.",
    )


def not_a_child(id: str) -> BadInput:
    return BadInput(
        "not_a_child", f"session {shown(id)} has no parent to report to. Answer in your reply, or leave a handoff."
    )


def session_over(id: str, outcome: str) -> Conflict:
    return Conflict(
        "session_over", f"session {shown(id)} has already ended ({outcome}). Spawn a new one for more work."
    )


def bad_config_file(path: str, why: str) -> BadInput:
    return BadInput(
        "bad_config_file", f"{path} was left as it is: {why}. Mend the file or give another one, then call again."
    )


def unknown_client(name: str, known: list[str]) -> BadInput:
    return BadInput(
        "unknown_client",
        f"there is no client {shown(name)}. Known are: {', '.join(known)}. Any other one takes the entry that "
        "`limpet install generic` prints.",
    )


def output_too_big(got: int, limit: int) -> BadInput:
    return BadInput(
        "output_too_big",
        f"the output has {got:,} bytes; the limit is {limit:,}. Nothing was kept; ask the tool for less at a time.",
    )


def ambiguous_output(name: str) -> BadInput:
    return BadInput("ambiguous_output", f"more than one output's digest begins with {shown(name)}. Give the whole id.")


def not_json(operation: str, name: str) -> BadInput:
    return BadInput(
        "not_json", f"{name} of {operation} cannot be written as JSON (or is nested too deeply). Give a plain value."
    )


def unstorable(what: str, why: str) -> BadInput:
    return BadInput("unstorable", f"{what} holds {why}, which cannot be stored as text. Remove it and call again.")


def missing(operation: str, name: str) -> BadInput:
    return BadInput("missing", f"{operation} needs {name}, which was not given. Call again with {name}.")


def unknown_argument(operation: str, name: str, known: list[str]) -> BadInput:
    takes = f"It takes {', '.join(known)}." if known else "It takes no arguments."
    return BadInput("unknown_argument", f"{operation} has no argument {shown(name)}. {takes}")


def wrong_type(operation: str, name: str, value: object, wanted: str) -> BadInput:
    return BadInput(
        "wrong_type", f"{name} of {operation} is {a_kind(value)} ({shown(value)}); it must be {wanted}. Call again so."
    )


def not_one_of(operation: str, name: str, value: object, allowed: tuple[str, ...]) -> BadInput:
    return BadInput(
        "not_one_of", f"{name} of {operation} is {shown(value)}; it must be one of {', '.join(allowed)}. Choose one."
    )


def out_of_range(operation: str, name: str, value: object, low: int, high: int) -> BadInput:
    return BadInput(
        "out_of_range",
        f"{name} of {operation} is {shown(value)}; it must be from {low:,} to {high:,}. Choose a number in between.",
    )


def too_many_tags(got: int, limit: int) -> BadInput:
    return BadInput("too_many_tags", f"{got} tags were given; the limit is {limit}. Keep the ones you would search by.")


def blank_tag(position: int) -> BadInput:
    return BadInput("blank_tag", f"tag {position} is blank; a tag needs a character that is not a space. Leave it out.")


def nothing_to_update(operation: str, choices: str) -> BadInput:
    return BadInput("nothing_to_update", f"{operation} was given nothing to change. Give {choices}.")


def needs(operation: str, given: str, names: str) -> BadInput:
    return BadInput("needs", f"{operation} with {given} needs {names}. Call again with it.")


def not_used(operation: str, given: str, name: str) -> BadInput:
    return BadInput("not_used", f"{operation} with {given} does not use {name}. Leave {name} out.")


def reserved_key(key: str, instead: str) -> BadInput:
    return BadInput("reserved_key", f"the key {shown(key)} is kept by Limpet itself. {instead}")


def bad_name(what: str, value: object, rule: str) -> BadInput:
    return BadInput("bad_name", f"{what} {shown(value)} is not valid: {rule}. Choose another.")


def unknown_profile(name: object, known: tuple[str, ...]) -> BadInput:
    return BadInput("unknown_profile", f"there is no profile {shown(name)}. Choose one of {', '.join(known)}.")


def unknown_operation(name: object, known: str) -> BadInput:
    return BadInput("unknown_operation", f"there is no operation {shown(name)}. {known}")


def bad_setting(name: str, value: object, rule: str) -> BadInput:
    return BadInput("bad_setting", f"the setting {name} is {shown(value)}; {rule}. Correct it and start again.")


def bad_import(line: int, why: str) -> BadInput:
    return BadInput(
        "bad_import", f"line {line} of the import cannot be read: {why}. Nothing was imported; mend the line."
    )


def text_not_found(what: str, find: str, hint: str) -> NotFound:
    return NotFound("text_not_found", f"the {what} does not contain {shown(find)}. {hint} Nothing was changed.")


def sandbox_failed(what: str, where: str, after: str) -> BadInput:
    return BadInput("sandbox_failed", f"the code failed{where}: {what}. Mend it and run it again. {after}")


def sandbox_limit(what: str, advice: str, after: str) -> BadInput:
    return BadInput("sandbox_limit", f"the code was stopped: {what}. {advice} {after}")


def sandbox_forked() -> BadInput:
    return BadInput(
        "sandbox_forked",
        "this process was forked from one that had used the sandbox, which does not work after that. "
        "Start processes anew instead (spawn), or use the sandbox only after the fork.",
    )


# --- what is not there, or not as expected ----------------------------------------------------------------------------


def no_note(id: str) -> NotFound:
    return NotFound("no_note", f"there is no note {shown(id)}. list_notes and search_notes give the ids that exist.")


def output_gone(id: str, was: str) -> NotFound:
    return NotFound(
        "output_gone", f"the output {shown(id)} is gone: {was}. This is final; make the call again if you need it."
    )


def one_of(operation: str, given: list[str]) -> BadInput:
    ways = " and ".join(given)
    return BadInput("one_of", f"{operation} was given {ways}; it reads in one way at a time. Choose one.")


def bad_slice(why: str) -> BadInput:
    return BadInput("bad_slice", why)


def no_output(id: str) -> NotFound:
    return NotFound("no_output", f"there is no output {shown(id)}. scratchpad_list gives the ids that exist.")


def no_entry(kind: str, key: str, advice: str) -> NotFound:
    return NotFound("no_entry", f"there is no {kind} {shown(key)}. {advice}")


def no_version(what: str, version: int, newest: int) -> NotFound:
    return NotFound("no_version", f"the {what} has no version {version}; it has versions up to {newest}. Choose one.")


def no_event(seq: int) -> NotFound:
    return NotFound("no_event", f"there is no change {seq} in this project's history. `limpet history` lists them.")


def nothing_to_undo() -> NotFound:
    return NotFound("nothing_to_undo", "there is no change left to undo here. `limpet history` lists what happened.")


def version_moved(what: str, expected: int, actual: int) -> Conflict:
    return Conflict(
        "version_moved",
        f"the {what} is at version {actual}, not {expected}: it changed since you read it. "
        f"Read it again and apply your change to what is there now.",
    )


def changed_since(seq: int, kind: str, key: str) -> Conflict:
    return Conflict(
        "changed_since",
        f"change {seq} cannot be undone: {kind} {shown(key)} was changed again after it. Undo the later change first.",
    )


def change_erased(seq: int) -> Conflict:
    return Conflict(
        "change_erased",
        f"change {seq} cannot be undone: what was there before it was purged for ever. Write it anew if it is needed.",
    )


def appended_before(kind: str, key: str) -> Conflict:
    return Conflict(
        "appended_before",
        f"there is a {kind} {shown(key)} already: another process works in this session too. Nothing was added; "
        f"give each loop a session of its own.",
    )


def no_open_task(verb: str) -> NotFound:
    return NotFound("no_open_task", f"there is no open task to {verb}. begin_task opens one.")


def tasks_too_deep(limit: int) -> BadInput:
    return BadInput(
        "tasks_too_deep",
        f"{limit} tasks are open inside each other; the limit is {limit}. End or cancel the innermost one first.",
    )


def too_many_pins(limit: int) -> BadInput:
    return BadInput(
        "too_many_pins",
        f"{limit} texts are pinned in this session, and each is sent with every model call; the limit is {limit}. "
        f"Unpin one first.",
    )


def nothing_folded(first: int, last: int, total: int) -> NotFound:
    return NotFound(
        "nothing_folded",
        f"no fold covers the messages {first:,} to {last:,}; this session has {total:,} messages. "
        f"`limpet window folds` lists what is folded.",
    )


def sessions_stay(id: str) -> BadInput:
    return BadInput(
        "sessions_stay",
        f"the session {shown(id)} cannot be undone: what was written in it belongs to it. Archive it instead.",
    )


def tool_not_approved(server: str, tool: str, why: str) -> Conflict:
    quoted = "'" + server.replace("'", "'\\''") + "'"
    return Conflict(
        "tool_not_approved",
        f"the tool {shown(tool)} is blocked: {why}. The call was not made. Somebody who trusts it can run "
        f"`limpet seals approve {quoted}`; until then work without it.",
    )


def import_conflict(kind: str, key: str) -> Conflict:
    return Conflict(
        "import_conflict",
        f"the import has another {kind} {shown(key)} than this project. Nothing was imported; "
        f"import into an empty project (--project NAME) or delete one of the two.",
    )


def project_not_empty(project: str) -> Conflict:
    return Conflict(
        "project_not_empty",
        f"the project {shown(project)} already holds something. Nothing was imported; "
        f"import into an empty one (--project NAME) or use --merge.",
    )


def target_exists(path: str) -> Conflict:
    return Conflict("target_exists", f"{path} exists already and is not overwritten. Choose another path.")


def skill_exists(name: str) -> Conflict:
    return Conflict(
        "skill_exists",
        f"there is a skill {shown(name)} already. Nothing was changed; "
        "choose another name, or call again with replace=true.",
    )


# --- the store --------------------------------------------------------------------------------------------------------


def not_a_store(place: str, why: str) -> NotAStore:
    return NotAStore(
        "not_a_store",
        f"{place} is not a Limpet store: {why}. It was left untouched; "
        f"choose another place with --store, or move it away.",
    )


def store_too_new(place: str, found: int, known: int) -> StoreTooNew:
    return StoreTooNew(
        "store_too_new",
        f"{place} was written by a later Limpet (schema {found}; this one knows up to {known}). "
        f"It was left untouched; upgrade with `pip install -U limpet`.",
    )


def store_read_only(place: str, why: str) -> StoreReadOnly:
    return StoreReadOnly(
        "store_read_only",
        f"{place} cannot be written: {why}. Nothing was changed; "
        f"make it writable or choose another place with --store.",
    )


def store_full(place: str) -> StoreFull:
    return StoreFull(
        "store_full", f"there is no room left for {place}. Nothing was changed; free some disk space and call again."
    )


def store_busy(place: str, seconds: float) -> StoreBusy:
    return StoreBusy(
        "store_busy",
        f"another process has kept the write lock of {place} for {seconds:.0f} seconds. Nothing was changed; "
        f"call again, and if it lasts look for a stopped process that has it open.",
    )


def store_damaged(place: str, what: str) -> StoreDamaged:
    return StoreDamaged(
        "store_damaged",
        f"{what} in {place} is not what was written (its checksum differs). It is not shown; "
        f"run `limpet doctor` and restore it from history or a backup.",
    )


def store_broken(place: str, why: str) -> StoreDamaged:
    return StoreDamaged(
        "store_broken",
        f"{place} could not be read or written: {why}. Run `limpet doctor`; a backup can be put in its place.",
    )


def store_gone(place: str, why: str) -> StoreGone:
    return StoreGone("store_gone", f"{place} cannot be reached: {why}. Check the address and that it is running.")


def not_installed(what: str, extra: str) -> StoreGone:
    return StoreGone(
        "not_installed", f"{what} needs a package that is not installed. Run `pip install 'limpet[{extra}]'`."
    )


def skill_not_saved(name: str, why: str) -> StoreReadOnly:
    return StoreReadOnly(
        "skill_not_saved",
        f"the skill {shown(name)} could not be written: {why}. Nothing was changed; make its directory writable, "
        "or name another one with the setting skills.",
    )


def no_skills_folder() -> BadInput:
    return BadInput(
        "no_skills_folder",
        "this project has no directory for skills. Name one with the setting skills, then call again.",
    )


def no_sandbox(why: str) -> StoreGone:
    return StoreGone(
        "no_sandbox",
        f"the sandbox's own process could not be started: {why}. Nothing was run; try again, "
        "and if it lasts run `pip install --force-reinstall 'limpet[sandbox]'`.",
    )


def sqlite_too_old(version: str) -> StoreGone:
    return StoreGone(
        "sqlite_too_old",
        f"SQLite {version} can damage a store that several processes write. Run `pip install -U apsw`.",
    )
