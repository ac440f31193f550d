"""The notepad and the system prompt: texts that are edited in place, with a version per write.

The notepad is one free text per session, part of every window. The system prompt is a project's lasting instructions to
its agents. An `EditableText` describes either of them.
"""

from __future__ import annotations

from collections.abc import Callable

from limpet import errors, limits
from limpet.catalogue.operation import Caller, Context, Json, bounded, trust_json
from limpet.light import Any, re
from limpet.model import NOTEPAD, SYSTEM_PROMPT, Draft, Entry, Notepad, Version, iso, lowest, moment
from limpet.record import NamedTuple
from limpet.redaction import VERBATIM
from limpet.store import EventQuery
from limpet.text import brief, tokens
from limpet.text.safe import as_data

HEADING = "## Session Notepad"
EMPTY_HINT = (
    "(empty — use write_notepad or update_notepad to save working notes, findings, and task progress; "
    "content here survives context compaction)"
)
TRIM_SHOWN = 3  # sections named when the notepad is over its budget


class EditableText(NamedTuple):
    """A text that is edited in place, and its bounds."""

    kind: str
    what: str  # as it is called in messages
    key: str
    session: str
    max_chars: int
    budget: int  # tokens; soft
    advice: str  # where the long part belongs


class Edited(NamedTuple):
    notepad: Notepad
    warning: str | None


class Versions(NamedTuple):
    versions: tuple[Version, ...]
    diff: str


def read_notepad(ctx: Context) -> Notepad:
    return read(ctx, pad(ctx))


def write_notepad(ctx: Context, content: str, expected_version: int | None = None) -> Edited:
    return edit(ctx, pad(ctx), "write_notepad", lambda before: content, expected_version, anew=True)


def update_notepad(
    ctx: Context,
    operation: str,
    content: str | None = None,
    find: str | None = None,
    replace: str | None = None,
    replace_all: bool = False,
    expected_version: int | None = None,
) -> Edited:
    change = text_edit("update_notepad", "notepad", operation, content, find, replace, replace_all)
    return edit(ctx, pad(ctx), "update_notepad", change, expected_version)


def notepad_history(ctx: Context, version: int | None = None, limit: int = limits.HISTORY_SHOWN) -> Versions:
    """Versions, newest first; with `version`, also what changed from it to now."""
    return versions(ctx, pad(ctx), version, limit)


def restore_notepad(ctx: Context, version: int) -> Edited:
    return restore(ctx, pad(ctx), "restore_notepad", version)


def copy_notepad(ctx: Context, session: str) -> None:
    """Copy this session's notepad to another session, with its origin."""
    notepad = read_notepad(ctx)
    if notepad.content:
        target = ctx._replace(session=session)
        edit(target, pad(target), "write_notepad", lambda before: notepad.content, None, source=notepad.origin)


def section(notepad: Notepad) -> str:
    """The prompt section. Equal notepads give equal bytes."""
    return f"{HEADING}\n{as_data(notepad.content, notepad.origin) or EMPTY_HINT}"


def text_edit(
    name: str,
    what: str,
    operation: str,
    content: str | None,
    find: str | None,
    replace: str | None,
    replace_all: bool,
) -> Callable[[str], str]:
    """One of the four edits as a function of the text. All arguments are literal texts, not patterns."""
    condition = f"operation {operation}"
    if operation == "find_replace":
        if not find or replace is None:
            raise errors.needs(name, condition, "find (not empty) and replace")
        if content is not None:
            raise errors.not_used(name, condition, "content")
        return lambda text: _containing(what, text, find).replace(find, replace, -1 if replace_all else 1)
    if find is not None or replace:  # a model that is made to fill every argument fills it with nothing
        raise errors.not_used(name, condition, "find and replace")
    if not content:
        raise errors.needs(name, condition, "content (not empty)")
    if operation == "append":
        return lambda text: text + content
    if operation == "prepend":
        return lambda text: content + text
    return lambda text: _containing(what, text, content).replace(content, "", -1 if replace_all else 1)


def _containing(what: str, text: str, find: str) -> str:
    """The text, if it contains what is to be replaced."""
    if find not in text:
        raise errors.text_not_found(what, find, _hint(text, find))
    return text


def _hint(text: str, find: str) -> str:
    if not text:
        return "It is empty: append writes to it."
    from limpet.text import diff  # late: every hook loads this module, and only a failed edit needs it

    close = diff.nearest(text, find)
    if close is None:
        return "Nothing in it is similar; read it first."
    return f"Line {close.line} is near ({close.reason}): {errors.quoted(close.text, 130)}. Copy the text from there."


def pad(ctx: Context) -> EditableText:
    budget, advice = ctx.bounds.notepad_budget_tokens, "Move the long part to notes or memory."
    return EditableText(NOTEPAD, "notepad", ctx.session, ctx.session, limits.NOTEPAD_MAX_CHARS, budget, advice)


# --- any sheet --------------------------------------------------------------------------------------------------------


def read(ctx: Context, sheet: EditableText) -> Notepad:
    return _notepad(ctx.store.entries.read(ctx.scope, sheet.kind, sheet.key))


def edit(
    ctx: Context,
    sheet: EditableText,
    operation: str,
    change: Callable[[str], str],
    expected_version: int | None,
    *,
    anew: bool = False,
    source: str = "",
) -> Edited:
    """`anew`: the old text is replaced completely. `source`: the origin of the text where it is copied from."""
    origin = lowest(source, ctx.who) if source else ""

    def decide(before: Entry | None) -> Draft:
        version = before.version if before else 0
        if expected_version is not None and expected_version != version:
            raise errors.version_moved(sheet.what, expected_version, version)
        old = before.content if before else ""
        content = ctx.masked(change(old), old)
        bounded(sheet.what, content, sheet.max_chars, sheet.advice)
        return Draft(content, sheet.session, extra={"tokens": tokens.count(content)}, origin=origin, anew=anew)

    done = ctx.store.entries.edit(ctx.scope, sheet.kind, sheet.key, decide, ctx.stamp(operation))
    notepad = _notepad(done.after)
    return Edited(notepad, _over_budget(notepad, sheet))


def versions(ctx: Context, sheet: EditableText, version: int | None, limit: int) -> Versions:
    newest = _versions(ctx, sheet, limit)
    if version is None:
        return Versions(newest, "")
    from limpet.text import diff  # late, for the same reason

    old, now = _at_version(ctx, sheet, version), read(ctx, sheet)
    then, today = f"version {version}", f"version {now.version}"
    return Versions(newest, diff.unified(old.content, now.content, before_name=then, after_name=today))


def restore(ctx: Context, sheet: EditableText, operation: str, version: int) -> Edited:
    old = _at_version(ctx, sheet, version)
    stored = ctx._replace(masking=VERBATIM)
    return edit(stored, sheet, operation, lambda before: old.content, None, source=old.origin)


def _notepad(entry: Entry | None) -> Notepad:
    if entry is None:
        return Notepad("", 0, 0)
    counted = entry.extra.get("tokens")  # counted when it was written, because it is read far more often
    size = tokens.count(entry.content) if counted is None else counted
    return Notepad(entry.content, entry.version, size, entry.origin)


def _over_budget(notepad: Notepad, sheet: EditableText) -> str | None:
    """The warning for a text over its budget: nothing is dropped, but the agent learns what to trim."""
    if notepad.tokens <= sheet.budget:
        return None
    sections = [part for part in re.split(r"(?m)^(?=#{1,6} )", notepad.content) if part.strip()]
    sizes = sorted(((tokens.count(part), part.split("\n", 1)[0].strip()) for part in sections), reverse=True)
    largest = ", ".join(f"{errors.quoted(title, 42)} ({size:,})" for size, title in sizes[:TRIM_SHOWN])
    return (
        f"The {sheet.what} has about {notepad.tokens:,} tokens; its budget is {sheet.budget:,}, and it is sent with "
        f"every model call. It was saved whole. Trim or move to notes, largest first: {largest}."
    )


def _versions(ctx: Context, sheet: EditableText, limit: int) -> tuple[Version, ...]:
    events = ctx.store.entries.events(ctx.scope, EventQuery(sheet.kind, sheet.key, limit=limit))
    return tuple(
        Version(event.version, event.after.content if event.after else "", moment(event.at), event.by, event.operation)
        for event in events
    )


def _at_version(ctx: Context, sheet: EditableText, version: int) -> Notepad:
    entry = ctx.store.entries.read(ctx.scope, sheet.kind, sheet.key)
    newest = entry.version if entry else 0
    if not 1 <= version <= newest:
        raise errors.no_version(sheet.what, version, newest)
    events = ctx.store.entries.events(ctx.scope, EventQuery(sheet.kind, sheet.key, limit=newest))
    entries = [event.after for event in events if event.version == version]
    if not entries:
        raise errors.no_version(sheet.what, version, newest)
    return _notepad(entries[0])


# --- answers ----------------------------------------------------------------------------------------------------------


def notepad_json(value: Notepad) -> Json:
    answer: Json = {"content": value.content, "tokens": value.tokens, "version": value.version}
    return answer | trust_json(value.origin)


def edited_json(value: Edited) -> Json:
    answer: Json = {"ok": True, "tokens": value.notepad.tokens, "version": value.notepad.version}
    return answer | ({"warning": value.warning} if value.warning else {})


def notepad_text(_ctx: Context, value: Notepad) -> str:
    if not value.content:
        return "It is empty."
    text = as_data(value.content, value.origin).rstrip("\n")
    return f"{text}\n[version {value.version}, {brief.counted(value.tokens, 'token')}]"


def edited_text(_ctx: Context, value: Edited) -> str:
    done = f"Kept as version {value.notepad.version}, {brief.counted(value.notepad.tokens, 'token')}."
    return brief.lines((done,), value.warning or "")


def versions_json(value: Versions) -> Json:
    rows = [
        {"version": v.version, "at": iso(v.at), "by": v.by, "operation": v.operation, "characters": len(v.content)}
        for v in value.versions
    ]
    return {"versions": rows, "diff": value.diff}


class SessionNotepad:
    """`session.notepad`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def read(self) -> str:
        return self.get().content

    def get(self) -> Notepad:
        return self._session.do(read_notepad)

    def write(self, content: str, *, expected_version: int | None = None) -> Edited:
        return self._session.do(write_notepad, content=content, expected_version=expected_version)

    def append(self, content: str) -> Edited:
        return self.edit("append", content=content)

    def replace(self, find: str, replace: str, *, all: bool = False) -> Edited:
        return self.edit("find_replace", find=find, replace=replace, replace_all=all)

    def edit(self, operation: str, **arguments: Any) -> Edited:
        return self._session.do(update_notepad, operation=operation, **arguments)

    def history(self, *, limit: int = limits.HISTORY_SHOWN) -> tuple[Version, ...]:
        return self._session.do(notepad_history, limit=limit).versions

    def diff(self, version: int) -> str:
        return self._session.do(notepad_history, version=version).diff

    def restore(self, version: int) -> Edited:
        return self._session.do(restore_notepad, version=version)

    def section(self) -> str:
        """The prompt section for the next model call. Equal notepads give equal bytes."""
        return section(self.get())


# --- the system prompt ------------------------------------------------------------------------------------------------

PROMPT_ADVICE = "Move the long part to a skill or to memory."
PROMPT = EditableText(
    SYSTEM_PROMPT, "system prompt", "main", "", limits.PROMPT_MAX_CHARS, limits.PROMPT_BUDGET_TOKENS, PROMPT_ADVICE
)


def system_prompt(ctx: Context) -> str:
    """The text for the next model call, empty if there is none. Equal prompts give equal bytes."""
    prompt = read_system_prompt(ctx)
    return as_data(prompt.content, prompt.origin)


def read_system_prompt(ctx: Context) -> Notepad:
    return read(ctx, PROMPT)


def write_system_prompt(ctx: Context, content: str, expected_version: int | None = None) -> Edited:
    return edit(ctx, PROMPT, "write_system_prompt", lambda before: content, expected_version, anew=True)


def edit_system_prompt(
    ctx: Context,
    operation: str,
    content: str | None = None,
    find: str | None = None,
    replace: str | None = None,
    replace_all: bool = False,
    expected_version: int | None = None,
) -> Edited:
    change = text_edit("edit_system_prompt", PROMPT.what, operation, content, find, replace, replace_all)
    return edit(ctx, PROMPT, "edit_system_prompt", change, expected_version)


def system_prompt_history(ctx: Context, version: int | None = None, limit: int = limits.HISTORY_SHOWN) -> Versions:
    """Versions, newest first; with `version`, also what changed from it to now."""
    return versions(ctx, PROMPT, version, limit)


def restore_system_prompt(ctx: Context, version: int) -> Edited:
    return restore(ctx, PROMPT, "restore_system_prompt", version)


class SystemPrompt:
    """`session.prompt`, the project's system prompt."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def read(self) -> str:
        return self._session.do(read_system_prompt).content

    def write(self, content: str, *, expected_version: int | None = None) -> Edited:
        return self._session.do(write_system_prompt, content=content, expected_version=expected_version)

    def edit(self, operation: str, **arguments: Any) -> Edited:
        return self._session.do(edit_system_prompt, operation=operation, **arguments)

    def history(self, *, limit: int = limits.HISTORY_SHOWN) -> tuple[Version, ...]:
        return self._session.do(system_prompt_history, limit=limit).versions

    def diff(self, version: int) -> str:
        return self._session.do(system_prompt_history, version=version).diff

    def restore(self, version: int) -> Edited:
        return self._session.do(restore_system_prompt, version=version)
