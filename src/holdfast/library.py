"""The library's face: `Holdfast` (a project's memory) and `Session` (one piece of work in it).

Every method goes through `Holdfast.run`, the same way a tool call does, so that checks, answers and errors are the same
behind every door. `call` gives the answer as JSON, the methods give values.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast import errors, texts
from holdfast.limits import Bounds
from holdfast.model import (
    Digest,
    Event,
    Handoff,
    Memory,
    Note,
    Notepad,
    Scope,
    SessionInfo,
    TagCount,
    Version,
)
from holdfast.operations import handoff, history, journal, memory, notepad, notes, outputs, sessions, transfer
from holdfast.operations.catalogue import find, profile
from holdfast.operations.registry import EVERY, Context, Operation, checked
from holdfast.store import Finding, Store

if TYPE_CHECKING:
    from holdfast.journal.clearing import Cleared
    from holdfast.journal.recover import Recovered
    from holdfast.operations.journal_read import Linted, Verified
    from holdfast.operations.journal_work import Checkpoint, Healed, Rotated, Written

Clock = Callable[[], int]
GUIDANCE = {  # a part of the guidance: the tools any of which calls for it
    "notes": {"add_note", "search_notes", "list_notes", "update_note", "delete_note", "list_tags"},
    "notepad": {"read_notepad", "write_notepad", "update_notepad"},
    "memory": {"search_memory", "write_memory"},
    "handoff": {"write_session_handoff"},
    "journal": {"recover_notes", "log_decision", "update_notes", "checkpoint_session"},
}


def wall_clock() -> int:
    """Milliseconds since 1970. Stores never let a project's time stamps go back, whatever this says."""
    return time.time_ns() // 1_000_000


class Tool(NamedTuple):
    """A tool for people who call a model's API themselves."""

    name: str
    description: str
    parameters: dict[str, Any]  # JSON schema
    handler: Callable[[Mapping[str, Any]], dict[str, Any]]


class Instructions(NamedTuple):
    """A text for a new session, and what to call once the session has really made use of it."""

    text: str
    used: Callable[[], None]


class Holdfast:
    """A project's memory. Close it, or use it in a `with` statement."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        *,
        session: str | None = None,
        bounds: Bounds | None = None,
        clock: Clock = wall_clock,
        root: str = ".",
    ) -> None:
        self.root = root
        self.store = store
        self.scope = scope
        if session == EVERY:
            raise _only_for_reading()
        self.default_session = sessions.session_name(session) if session else f"s-{os.urandom(6).hex()}"
        self._bounds = bounds or Bounds()
        self._clock = clock

    def __enter__(self) -> Holdfast:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    # --- the one way in -----------------------------------------------------------------------------------------------

    def run(self, operation: Operation, arguments: Mapping[str, Any], session: str | None, by: str) -> Any:
        given = checked(operation, arguments)
        named = given.pop("session_id", None) or session
        if named == EVERY and not operation.every_session:
            raise _only_for_reading()
        return operation.run(self.context(named, by), **given)

    def call(
        self, name: str, arguments: Mapping[str, Any], *, session: str | None = None, by: str = "agent/library"
    ) -> dict[str, Any]:
        """Do an operation by name, as a tool call does; the answer is ready for JSON."""
        operation = find(name)
        return operation.show(self.run(operation, arguments, session, by))

    def context(self, session: str | None = None, by: str = "agent/library") -> Context:
        name = self.default_session if session is None else sessions.session_name(session)
        return Context(self.store, self.scope, name, by, self._clock(), self._bounds, self.root)

    # --- sessions and memory ------------------------------------------------------------------------------------------

    def session(self, id: str | None = None, *, by: str = "agent/library") -> Session:
        """The session of that name: resumed if it exists, begun with its first write if not."""
        return Session(self, self.default_session if id is None else sessions.session_name(id), by)

    @property
    def memory(self) -> MemoryFace:
        return self.session().memory

    @property
    def journal(self) -> JournalFace:
        return self.session().journal

    def sessions(self, *, include_archived: bool = False, limit: int = 50) -> tuple[SessionInfo, ...]:
        arguments = {"include_archived": include_archived, "limit": limit}
        return cast(sessions.Sessions, self._do("list_sessions", arguments)).sessions

    def archive(self, id: str) -> SessionInfo:
        return cast(SessionInfo, self._do("archive_session", {"id": id}))

    def history(self, *, kind: str | None = None, key: str | None = None, limit: int = 50) -> tuple[Event, ...]:
        return cast(history.History, self._do("history", {"kind": kind, "key": key, "limit": limit})).events

    def undo(self, seq: int | None = None) -> Event:
        """Take the last change back, or the one named. The change that was undone."""
        return cast(history.Undone, self._do("undo", {"seq": seq})).event

    def _do(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self.run(find(name), arguments, None, "agent/library")

    # --- for people who build agents ----------------------------------------------------------------------------------

    def tools(self, profile_name: str = "core", *, session: str | None = None) -> list[Tool]:
        """Tools with JSON schemas and handlers, for a model's API. Handlers raise HoldfastError with a text to show."""

        def handler(operation: Operation) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
            return lambda arguments: self.call(operation.name, arguments, session=session, by="agent/tools")

        return [Tool(op.name, op.description(), op.input_schema(), handler(op)) for op in profile(profile_name)]

    def guidance(self, profile_name: str = "core") -> str:
        """The prompt section that teaches these tools. Give it to the model only together with them."""
        return guidance(operation.name for operation in profile(profile_name))

    def instructions(self, profile_name: str = "core", session: str | None = None) -> Instructions:
        """What an agent should know first: the waiting handoff, if any, then how to use the tools."""
        ctx = self.context(session)
        seen = handoff.waiting(ctx)
        first = handoff.section(seen, handoff.other_lines(ctx))
        text = "\n\n".join(part for part in (first, self.guidance(profile_name)) if part)

        def used() -> None:
            if seen is not None:
                handoff.use_handoff(self.context(ctx.session), seen)

        return Instructions(text, used)

    # --- for people who look after it ---------------------------------------------------------------------------------

    def export_lines(self) -> Iterator[str]:
        return transfer.export_lines(self.context())

    def import_lines(self, lines: Iterable[str], *, merge: bool = False) -> int:
        return transfer.import_lines(self.context(by="import/file"), lines, merge=merge)

    def backup(self, target: str) -> None:
        self.store.backup(target)

    def check(self) -> tuple[Finding, ...]:
        return self.store.check()


class Session:
    """One piece of work: its notes, notepad and scratchpad, and the project's memory seen from it."""

    def __init__(self, hold: Holdfast, id: str, by: str) -> None:
        self.hold = hold
        self.id = id
        self.by = by
        self.notes = NotesFace(self)
        self.notepad = NotepadFace(self)
        self.memory = MemoryFace(self)
        self.handoff = HandoffFace(self)
        self.outputs = OutputsFace(self)
        self.journal = JournalFace(self)
        self._seen: Handoff | None = None  # in the context given out last

    def do(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self.hold.run(find(name), arguments, self.id, self.by)

    def begin(self, task: str = "") -> SessionInfo:
        return cast(SessionInfo, self.do("begin_session", {"task": task}))

    def context(self, line: str = handoff.MAIN) -> str:
        """What the session starts with: handoff, notepad, scratchpad and memory, in this order.

        The handoff is that of the line of work named; those that wait for other lines are mentioned.
        """
        ctx = self.hold.context(self.id, self.by)
        self._seen = handoff.waiting(ctx, line)
        return sessions.context(ctx, self._seen, line)

    def used(self) -> None:
        """Say that the last context of this session served a model call; the handoff in it is now used up."""
        if self._seen is not None:
            handoff.use_handoff(self.hold.context(self.id, self.by), self._seen)

    def scratch(self, content: str | None = None, mode: str = "read") -> str:
        """The scratchpad of the task at hand: read, replace, append or clear. Its content afterwards."""
        return cast(memory.Scratch, self.do("scratch_note", {"content": content, "mode": mode})).content


class NotesFace:
    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, content: str, tags: Sequence[str] = ()) -> Note:
        return cast(notes.Written, self._session.do("add_note", {"content": content, "tags": _plain(tags)})).note

    def search(self, query: str = "", tags: Sequence[str] = (), **options: Any) -> notes.Found:
        arguments = {"query": query, "tags": _plain(tags), **options}
        return cast(notes.Found, self._session.do("search_notes", arguments))

    def list(self, tag: str | None = None, **options: Any) -> tuple[Note, ...]:
        return cast(notes.Listed, self._session.do("list_notes", {"tag": tag, **options})).notes

    def update(
        self, id: str, content: str | None = None, tags: Sequence[str] | None = None, done: bool | None = None
    ) -> Note:
        arguments = {"id": id, "content": content, "tags": None if tags is None else _plain(tags), "done": done}
        return cast(notes.Written, self._session.do("update_note", arguments)).note

    def delete(self, id: str) -> Note:
        return cast(notes.Written, self._session.do("delete_note", {"id": id})).note

    def tags(self) -> tuple[TagCount, ...]:
        return cast(notes.Tags, self._session.do("list_tags", {})).tags


class NotepadFace:
    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self) -> str:
        return self.get().content

    def get(self) -> Notepad:
        return cast(Notepad, self._session.do("read_notepad", {}))

    def write(self, content: str, *, expected_version: int | None = None) -> notepad.Edited:
        arguments = {"content": content, "expected_version": expected_version}
        return cast(notepad.Edited, self._session.do("write_notepad", arguments))

    def append(self, content: str) -> notepad.Edited:
        return self.edit("append", content=content)

    def replace(self, find: str, replace: str, *, all: bool = False) -> notepad.Edited:
        return self.edit("find_replace", find=find, replace=replace, replace_all=all)

    def edit(self, operation: str, **arguments: Any) -> notepad.Edited:
        return cast(notepad.Edited, self._session.do("update_notepad", {"operation": operation, **arguments}))

    def history(self, *, limit: int = 50) -> tuple[Version, ...]:
        return cast(notepad.Versions, self._session.do("notepad_history", {"limit": limit})).versions

    def diff(self, version: int) -> str:
        return cast(notepad.Versions, self._session.do("notepad_history", {"version": version})).diff

    def restore(self, version: int) -> notepad.Edited:
        return cast(notepad.Edited, self._session.do("restore_notepad", {"version": version}))

    def section(self) -> str:
        """The prompt section for the next model call. Its bytes change only when the notepad does."""
        return notepad.section(self.get())


class MemoryFace:
    def __init__(self, session: Session) -> None:
        self._session = session

    def write(self, key: str, content: str, mode: str = "replace") -> Memory:
        arguments = {"key": key, "content": content, "mode": mode}
        return cast(memory.Stored, self._session.do("write_memory", arguments)).memory

    def read(self, key: str) -> Memory:
        return cast(Memory, self._session.do("read_memory", {"key": key}))

    def search(self, query: str, limit: int = 8) -> tuple[Memory, ...]:
        return cast(memory.Matches, self._session.do("search_memory", {"query": query, "limit": limit})).matches

    def pin(self, key: str, pinned: bool = True) -> Memory:
        return cast(Memory, self._session.do("pin_memory", {"key": key, "pinned": pinned}))

    def digest(self, budget: int | None = None) -> Digest:
        return memory.digest(self._session.hold.context(self._session.id, self._session.by), budget)


class HandoffFace:
    def __init__(self, session: Session) -> None:
        self._session = session

    def write(self, content: str, line: str = handoff.MAIN) -> Handoff:
        arguments = {"content": content, "line": line}
        return cast(handoff.Left, self._session.do("write_session_handoff", arguments)).handoff

    def read(self, line: str = handoff.MAIN) -> Handoff:
        return cast(Handoff, self._session.do("read_handoff", {"line": line}))


class OutputsFace:
    def __init__(self, session: Session) -> None:
        self._session = session

    def keep(self, tool: str, content: str, *, call: str = "") -> outputs.Kept:
        """What to show for a tool's result: the result itself when it is small, else a preview and a reference."""
        return outputs.keep_output(self._context(), tool, content, call)

    def read(self, id: str, **how: Any) -> outputs.Read:
        """A part of it: query=, lines=, match=, path=, rows=, chars= or bytes=; else all of it page by page."""
        return cast(outputs.Read, self._session.do("scratchpad_read", {"id": id, **how}))

    def read_content(self, id: str) -> str:
        """All of it."""
        return outputs.whole(self._context(), id)

    def expand(self, uri: str) -> str:
        """The text behind hold://<id>, hold://<id>#/json/pointer or hold://<id>#lines=a-b."""
        return outputs.expand(self._context(), uri)

    def list(self, *, limit: int = 20) -> outputs.Listed:
        return cast(outputs.Listed, self._session.do("scratchpad_list", {"limit": limit}))

    def _context(self) -> Context:
        return self._session.hold.context(self._session.id, self._session.by)


class JournalFace:
    """The project's NOTES.md, shared with people."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def recover(self, level: int = 1, query: str = "") -> Recovered:
        """What to take up: 1 where the work stands and the last decisions, 2 more or an answer, 3 all of it."""
        return cast("Recovered", self._session.do("recover_notes", {"level": level, "query": query}))

    def log_decision(
        self, title: str, decision: str, rationale: str, *, evidence: Sequence[str], scenarios: Sequence[str]
    ) -> Written:
        words = {"title": title, "decision": decision, "rationale": rationale}
        lists = {"evidence": _plain(evidence), "scenarios": _plain(scenarios)}
        return cast("Written", self._session.do("log_decision", {**words, **lists}))

    def add(self, section: str, text: str, **more: Any) -> Written:
        """Add a question, goal, debt, blocker or identifier, or set the task or the state."""
        return cast("Written", self._session.do("update_notes", {"section": section, "text": text, **more}))

    def done(self, section: str, text: str) -> Written:
        """Mark the open question, goal, debt or blocker that holds these words as done."""
        return self.add(section, text, done=True)

    def checkpoint(self, summary: str, **more: Any) -> Checkpoint:
        """Log what was done, set where it stands (`state=`, `task=`), leave the handoff; what is still open."""
        return cast("Checkpoint", self._session.do("checkpoint_session", {"summary": summary, **more}))

    def init(self) -> bool:
        return cast(bool, self._session.do("init_notes", {}))

    def lint(self, *, fix: bool = False) -> Linted:
        return cast("Linted", self._session.do("lint_notes", {"fix": fix}))

    def heal(self, *, check: bool = False) -> Healed:
        return cast("Healed", self._session.do("heal_notes", {"check": check}))

    def verify(self, *, check: bool = False, fix: bool = False) -> Verified:
        return cast("Verified", self._session.do("verify_notes", {"check": check, "fix": fix}))

    def rotate(self, *, force: bool = False) -> Rotated:
        return cast("Rotated", self._session.do("rotate_notes", {"force": force}))

    def clear(self, tool: str, content: str) -> Cleared | None:
        """The one line for a tool's result whose findings are noted; it leads back to the whole. None: let it stay."""
        return journal.clear_result(self._session.hold.context(self._session.id, self._session.by), tool, content)


def _only_for_reading() -> errors.BadInput:
    return errors.bad_name("session_id", EVERY, "it stands for every session and can only list and search notes")


def guidance(names: Iterable[str]) -> str:
    """How to use the tools of these names, and nothing about tools that are not among them."""
    given = set(names)
    return "\n".join(texts.prompt(f"guidance_{part}") for part, tools in GUIDANCE.items() if given & tools)


def _plain(tags: Sequence[str]) -> object:
    """A text is a sequence of characters in Python; as tags it is a mistake, which the check then names."""
    return tags if isinstance(tags, str) else list(tags) if isinstance(tags, (tuple, set, frozenset)) else tags
