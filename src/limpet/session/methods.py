"""The faces of a session: one for each noun, with methods that give values. `library.Session` puts them together.

A face knows nothing but how to call an operation, so that checks, answers and errors are those of every door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from limpet import errors
from limpet.catalogue.operation import Context
from limpet.memory import digest, handoff, memory, notes
from limpet.model import Digest, Handoff, Memory, Note, Notepad, TagCount, Version
from limpet.session import notepad
from limpet.store import Pruned

if TYPE_CHECKING:
    # What only some calls need is imported by them: every server starts with this module.
    from limpet.journal.check import Linted, Verified
    from limpet.journal.clearing import Cleared
    from limpet.journal.document.recover import Recovered
    from limpet.journal.write import Checkpoint, Healed, Rotated, Written
    from limpet.memory import skills, state
    from limpet.memory.skill_files import Found
    from limpet.outputs import outputs, savings
    from limpet.sandbox import run as sandbox_run

F = TypeVar("F", bound=Callable[..., Any])


class Caller(Protocol):
    """The session behind a face."""

    id: str

    def do(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call an operation."""

    def ctx(self) -> Context:
        """What an operation is given, for what is no operation."""


class NotesFace:
    def __init__(self, session: Caller) -> None:
        self._session = session

    def add(self, content: str, tags: Sequence[str] = ()) -> Note:
        return cast(notes.Written, self._session.do("add_note", {"content": content, "tags": plain(tags)})).note

    def search(self, query: str = "", tags: Sequence[str] = (), **options: Any) -> notes.Found:
        arguments = {"query": query, "tags": plain(tags), **options}
        return cast(notes.Found, self._session.do("search_notes", arguments))

    def list(self, tag: str | None = None, **options: Any) -> tuple[Note, ...]:
        return cast(notes.Listed, self._session.do("list_notes", {"tag": tag, **options})).notes

    def update(
        self, id: str, content: str | None = None, tags: Sequence[str] | None = None, done: bool | None = None
    ) -> Note:
        arguments = {"id": id, "content": content, "tags": None if tags is None else plain(tags), "done": done}
        return cast(notes.Written, self._session.do("update_note", arguments)).note

    def delete(self, id: str) -> Note:
        return cast(notes.Written, self._session.do("delete_note", {"id": id})).note

    def tags(self) -> tuple[TagCount, ...]:
        return cast(notes.Tags, self._session.do("list_tags", {})).tags


class NotepadFace:
    def __init__(self, session: Caller) -> None:
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
    def __init__(self, session: Caller) -> None:
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
        return digest.digest(self._session.ctx(), budget)


class HandoffFace:
    def __init__(self, session: Caller) -> None:
        self._session = session

    def write(self, content: str, line: str = handoff.MAIN) -> Handoff:
        arguments = {"content": content, "line": line}
        return cast(handoff.Left, self._session.do("write_session_handoff", arguments)).handoff

    def read(self, line: str = handoff.MAIN) -> Handoff:
        return cast(Handoff, self._session.do("read_handoff", {"line": line}))


class OutputsFace:
    def __init__(self, session: Caller) -> None:
        self._session = session

    def keep(self, tool: str, content: str, *, call: str = "", free_tokens: int | None = None) -> outputs.Kept:
        """What to show for a tool's result: the result itself when it is small, else a preview and a reference.

        `call` is what gave it, with its arguments: how to get it again, and how a call that is repeated is known. What
        counts as small adapts to `free_tokens`, the free part of the window, where the caller knows it.
        """
        from limpet.outputs import outputs

        return outputs.keep_output(self._context(), tool, content, call, free_tokens)

    def maybe_cache(self, tool: str, content: str) -> str:
        """The text to show, as `keep` gives it."""
        return self.keep(tool, content).text

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, /, *, name: str | None = None) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, *, name: str | None = None) -> Any:
        """A decorator for your own tools, sync or async: big results are kept, all else is as it was."""
        from limpet.outputs import decorator

        def keep(tool: str, content: str, call: str) -> outputs.Kept:
            return self.keep(tool, content, call=call)

        def wrap(given: Any) -> Any:
            return decorator.watched(given, keep, name or str(getattr(given, "__name__", type(given).__name__)))

        return wrap if function is None else wrap(function)

    def read(self, id: str, **how: Any) -> outputs.Read:
        """A part of it: query=, lines=, match=, path=, rows=, chars= or bytes=; else all of it page by page."""
        return cast("outputs.Read", self._session.do("scratchpad_read", {"id": id, **how}))

    def read_content(self, id: str) -> str:
        """All of it."""
        from limpet.outputs import outputs

        return outputs.whole(self._context(), id)

    def expand(self, uri: str) -> str:
        """The text behind hold://<id>, hold://<id>#/json/pointer or hold://<id>#lines=a-b."""
        from limpet.outputs import outputs

        return outputs.expand(self._context(), uri)

    def list(self, *, limit: int = 20) -> outputs.Listed:
        return cast("outputs.Listed", self._session.do("scratchpad_list", {"limit": limit}))

    def delete(self, id: str) -> bool:
        """Whether it was there."""
        try:
            self._session.do("delete_output", {"id": id})
        except errors.NotFound:
            return False
        return True

    def prune(self) -> Pruned:
        """Delete what nobody has used for long and what is too much, but nothing that is cited."""
        return cast(Pruned, self._session.do("prune_outputs", {}))

    def clear(self) -> int:
        """Delete every output of the project. How many there were."""
        return cast(int, self._session.do("clear_outputs", {}))

    def stats(self) -> outputs.Stats:
        """How many there are and how big, and what they saved."""
        from limpet.outputs import outputs

        return outputs.stats(self._context())

    def savings(self) -> savings.Saved:
        """What this session saved, by tool. `Limpet.savings` is for all sessions."""
        return cast("savings.Saved", self._session.do("savings", {"session": self._session.id}))

    def _context(self) -> Context:
        return self._session.ctx()


class SandboxFace:
    def __init__(self, session: Caller) -> None:
        self._session = session

    def run(self, code: str, inputs: Mapping[str, Any] | None = None) -> sandbox_run.Ran:
        """Run Python over this session's notepad and the kept outputs; what it prints and its last expression."""
        arguments = {"code": code, "inputs": None if inputs is None else dict(inputs)}
        return cast("sandbox_run.Ran", self._session.do("run_sandbox_code", arguments))


class PromptFace:
    """The project's system prompt."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def read(self) -> str:
        return cast(Notepad, self._session.do("read_system_prompt", {})).content

    def write(self, content: str, *, expected_version: int | None = None) -> notepad.Edited:
        arguments = {"content": content, "expected_version": expected_version}
        return cast(notepad.Edited, self._session.do("write_system_prompt", arguments))

    def edit(self, operation: str, **arguments: Any) -> notepad.Edited:
        return cast(notepad.Edited, self._session.do("edit_system_prompt", {"operation": operation, **arguments}))

    def history(self, *, limit: int = 50) -> tuple[Version, ...]:
        return cast(notepad.Versions, self._session.do("system_prompt_history", {"limit": limit})).versions

    def diff(self, version: int) -> str:
        return cast(notepad.Versions, self._session.do("system_prompt_history", {"version": version})).diff

    def restore(self, version: int) -> notepad.Edited:
        return cast(notepad.Edited, self._session.do("restore_system_prompt", {"version": version}))


class SkillsFace:
    def __init__(self, session: Caller) -> None:
        self._session = session

    def list(self) -> Found:
        """The skills, and what is wrong with those that cannot be used."""
        return cast("Found", self._session.do("list_skills", {}))

    def read(self, name: str) -> skills.Body:
        return cast("skills.Body", self._session.do("read_skill", {"name": name}))

    def promote(self, name: str, description: str, section: str, *, replace: bool = False) -> skills.Promoted:
        """Make a section of this session's notepad a skill."""
        arguments = {"name": name, "description": description, "section": section, "replace": replace}
        return cast("skills.Promoted", self._session.do("promote_skill", arguments))

    def summary(self, budget: int | None = None) -> Digest:
        """The prompt section about skills."""
        from limpet.memory import skills

        return skills.summary(self._session.ctx(), budget)


class StateFace:
    """JSON values by key, for the whole project."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def get(self, key: str) -> Any:
        return cast("state.Value", self._do("get", key=key)).value

    def set(self, key: str, value: Any, *, expected_version: int | None = None) -> int:
        """Its version."""
        return cast("state.Stored", self._do("set", key=key, value=value, expected_version=expected_version)).version

    def delete(self, key: str) -> None:
        self._do("delete", key=key)

    def keys(self, prefix: str = "") -> tuple[str, ...]:
        return cast("state.Keys", self._do("keys", prefix=prefix)).keys

    def _do(self, action: str, **arguments: Any) -> Any:
        return self._session.do("agent_state", {"action": action, **arguments})


class JournalFace:
    """The project's NOTES.md, shared with people."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def recover(self, level: int = 1, query: str = "") -> Recovered:
        """What to take up: 1 where the work stands and the last decisions, 2 more or an answer, 3 all of it."""
        return cast("Recovered", self._session.do("recover_notes", {"level": level, "query": query}))

    def log_decision(
        self, title: str, decision: str, rationale: str, *, evidence: Sequence[str], scenarios: Sequence[str]
    ) -> Written:
        words = {"title": title, "decision": decision, "rationale": rationale}
        lists = {"evidence": plain(evidence), "scenarios": plain(scenarios)}
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
        from limpet.journal import clearing

        return clearing.clear_result(self._session.ctx(), tool, content)


def plain(tags: Sequence[str]) -> object:
    """A text is a sequence of characters in Python; as tags it is a mistake, which the check then names."""
    return tags if isinstance(tags, str) else list(tags) if isinstance(tags, (tuple, set, frozenset)) else tags
