"""The table of operations, and the profiles: which of them an agent gets.

Tool lists, guidance, the OpenAPI document, the HTTP policy, CLI commands and the reference are all read from here. A
server must start at once, so the table imports no behaviour: `late.resolve` imports that at the first call.

To add an operation: a row here, functions where the row points, and its words in prompts/tools/<name>.md. A row names
what does it, what renders the value as JSON for programs, and what renders it as short text for models.
"""

from collections.abc import Callable, Iterable, Mapping

from limpet import errors, limits, prompts
from limpet.catalogue.operation import ADMIN, INTEGER_MAX, READ, WRITE, Operation, Param
from limpet.light import Any, re
from limpet.model import KINDS, NOTE, PIN
from limpet.text import brief

PROFILES = ("core", "coding", "full", "agent")
SMALL = ("core", "coding")  # profiles for clients that count every byte
# The parts of the guidance, in their order.
GUIDANCE = ("notes", "notepad", "scratch", "memory", "handoff", "outputs", "recall", "tasks", "journal")

# The profiles of a row. A row without any is in "full", and so in "agent".
CORE = ("core", "coding", "full", "agent")  # small enough for every call
CODING = ("coding", "full", "agent")  # what the hooks of coding agents refer to
AGENT = ("agent",)  # makes sense only where the host runs the children of a session
NONE = ()  # for people and programs: no agent pays for its description

# Parameters and results that several rows share.
_LIMIT = Param("limit", "integer", low=1, high=limits.LIST_MAX)
_ID = Param("id", required=True)
_NOTE_ID = Param("id", required=True, names=NOTE)
_KEY = Param("key", required=True)
_CONTENT = Param("content", required=True)
_NOTE_CONTENT = Param("content", required=True, bound="note_max_chars")
_THIS_SESSION = Param("this_session", "boolean", everywhere=False)
_EXPECTED_VERSION = Param("expected_version", "integer", everywhere=False)
_TAGS = Param("tags", "strings")
_NOTE_TAGS = Param("tags", "strings", bound="note_max_tags")
_TAGS_ANY = Param("tags_any", "strings", everywhere=False)
_REPLACES = Param("replaces", names=NOTE)
_LIFE = (Param("expires", everywhere=False), Param("anchors", "strings", everywhere=False))
_INCLUDE_REPLACED = Param("include_replaced", "boolean", everywhere=False)
_LAYER = Param("layer", choices=("project", "team", "person"), everywhere=False)
_VERSION = Param("version", "integer", required=True)
_EDIT = (
    Param("operation", required=True, choices=("find_replace", "append", "prepend", "delete")),
    Param("content"),
    Param("find"),
    Param("replace", blank=True),
    Param("replace_all", "boolean"),
    _EXPECTED_VERSION,
)
_HISTORY = (Param("version", "integer"), _LIMIT)
_HANDOFF_FIELDS = tuple(
    Param(name, "strings", everywhere=False) for name in ("done", "next", "failed", "decisions", "questions")
)
_CHILD_LIMITS = (Param("token_limit", "integer", low=1_000, high=100_000_000), Param("model"))

_TRUST = {"trust": "string?"}
_DUPLICATE = {"duplicate_of": "string?", "similar_to": "string?"}
_CORRECTION = {"corrects": "string?", "hint": "string?", "replaced": "string?", "remark": "string?"}
_NOTE = {"note_id": "string", "total_notes": "integer", "total_tags": "integer"}
_SHEET = {"content": "string", "tokens": "integer", "version": "integer", **_TRUST}
_EDITED = {"ok": "boolean", "tokens": "integer", "version": "integer", "warning": "string?"}
_VERSIONS = {"versions": "array", "diff": "string"}
_HOLDS = {
    "version": "integer",
    "replaces": "string?",
    "replaced_by": "string?",
    "expires_at": "string?",
    "expired": "boolean?",
    "anchors": "array?",
}
_MEMORY = {
    "key": "string",
    "content": "string",
    "updated_at": "string",
    "pinned": "boolean?",
    "layer": "string?",
    "also_in": "array?",
    **_HOLDS,
    **_TRUST,
}
_DECIDED = {"status": "string", "id": "string", "layer": "string", "kind": "string", "key": "string"}
_OUTPUT = {
    "id": "string",
    "tool": "string",
    "size": "integer",
    "lines": "integer",
    "shape": "string",
    "session": "string",
    "created_at": "string",
    "used_at": "string",
}
_JOURNAL = {
    "ok": "boolean",
    "file": "string",
    "line": "integer",
    "id": "string?",
    "moved": "array?",
    "merged": "boolean?",
    "conflicts": "array?",
    "hint": "string?",
}
_PIN = {"id": "string", "content": "string", "created_at": "string"}
_SESSION = {
    "id": "string",
    "task": "string",
    "parent": "string",
    "state": "string",
    "created_at": "string",
    "archived_at": "",
}
_TASK_ENDED = {"ok": "boolean", "messages_collapsed": "integer"}
_CHILD = {"id": "string", "depth": "integer"}
_CAPSULE = ("references", "files", "failed")
_OUTCOME = {
    "id": "string",
    "status": "string",
    "result": "string?",
    "error": "string?",
    **dict.fromkeys(_CAPSULE, "array?"),
}

# One paragraph per operation, laid out by hand: a formatter would need four times the lines.
# fmt: off
ROWS = (
    # --- notes --------------------------------------------------------------------------------------------------------
    Operation("add_note", "memory.notes:add_note", "memory.notes:written_json", "memory.notes:written_text",
        params=(_NOTE_CONTENT, _NOTE_TAGS, _REPLACES, *_LIFE), result={**_NOTE, **_DUPLICATE, **_CORRECTION},
        level=WRITE, profiles=CORE, at_once=True, guidance="notes", commands=("note add",), retryable=True),
    Operation("search_notes", "memory.notes:search_notes", "memory.notes:search_json", "memory.notes:search_text",
        params=(Param("query"), _TAGS, Param("include_done", "boolean"), _LIMIT, _THIS_SESSION, _TAGS_ANY,
            _INCLUDE_REPLACED),
        result={"notes": "array", "result_count": "integer", "query": "string", "tags": "array", "more": "boolean?",
            "left_out": "integer?", "related": "array?"},
        level=READ, profiles=CORE, at_once=True, guidance="notes", commands=("note search",), every_session=True),
    Operation("list_notes", "memory.notes:list_notes", "memory.notes:list_json", "memory.notes:list_text",
        params=(Param("tag"), Param("include_done", "boolean"), _LIMIT, _THIS_SESSION, _TAGS_ANY, _INCLUDE_REPLACED),
        result={"notes": "array", "note_count": "integer", "tag_filter": "", "left_out": "integer?"},
        level=READ, guidance="notes", commands=("note list",), every_session=True),
    Operation("update_note", "memory.notes:update_note", "memory.notes:updated_json", "memory.notes:updated_text",
        params=(_NOTE_ID, Param("content", bound="note_max_chars"), _NOTE_TAGS, Param("done", "boolean"), *_LIFE,
            _EXPECTED_VERSION),
        result={**_NOTE, "note": "object"},
        level=WRITE, profiles=CORE, guidance="notes", commands=("note update",), idempotent=True, retryable=True),
    Operation("delete_note", "memory.notes:delete_note", "memory.notes:written_json", "memory.notes:deleted_text",
        params=(_NOTE_ID, _EXPECTED_VERSION), result=_NOTE,
        level=WRITE, profiles=CORE, guidance="notes", commands=("note delete",), destructive=True, frees=True,
        retryable=True),
    Operation("list_tags", "memory.notes:list_tags", "memory.notes:tags_json", "memory.notes:tags_text",
        params=(_THIS_SESSION,), result={"tags": "array", "tag_count": "integer", "total_notes": "integer"},
        level=READ, guidance="notes", commands=("tags",), every_session=True),
    # --- the notepad --------------------------------------------------------------------------------------------------
    Operation("read_notepad", "session.notepad:read_notepad", "session.notepad:notepad_json",
        "session.notepad:notepad_text",
        result=_SHEET,
        level=READ, profiles=CORE, guidance="notepad", commands=("pad show",)),
    Operation("write_notepad", "session.notepad:write_notepad", "session.notepad:edited_json",
        "session.notepad:edited_text",
        params=(_CONTENT, _EXPECTED_VERSION), result=_EDITED,
        level=WRITE, profiles=CORE, at_once=True, guidance="notepad", commands=("pad write",),
        destructive=True, idempotent=True),
    Operation("update_notepad", "session.notepad:update_notepad", "session.notepad:edited_json",
        "session.notepad:edited_text",
        params=_EDIT, result=_EDITED,
        level=WRITE, profiles=CORE, at_once=True, guidance="notepad",
        commands=("pad append", "pad prepend", "pad edit"), destructive=True),
    Operation("notepad_history", "session.notepad:notepad_history", "session.notepad:versions_json",
        params=_HISTORY, result=_VERSIONS,
        level=READ, profiles=NONE, commands=("pad history",)),
    Operation("restore_notepad", "session.notepad:restore_notepad", "session.notepad:edited_json",
        "session.notepad:edited_text",
        params=(_VERSION,), result=_EDITED,
        level=WRITE, profiles=NONE, commands=("pad restore",), destructive=True, idempotent=True),
    # --- memory -------------------------------------------------------------------------------------------------------
    Operation("search_memory", "memory.memory:search_memory", "memory.memory:matches_json",
        "memory.memory:matches_text",
        params=(Param("query", required=True),
            Param("limit", "integer", low=1, high=limits.MEMORY_LIMIT_MAX, clamp=True), _INCLUDE_REPLACED, _LAYER),
        result={"status": "string", "query": "string", "match_count": "integer", "matches": "array"},
        level=READ, profiles=CORE, guidance="memory", commands=("memory search",), in_session=False),
    Operation("write_memory", "memory.memory:write_memory", "memory.memory:stored_json", "memory.memory:stored_text",
        params=(_KEY, _CONTENT, Param("mode", choices=("replace", "append")), _REPLACES, *_LIFE, _EXPECTED_VERSION,
            _LAYER),
        result={"status": "string", "key": "string", "mode": "string", "bytes_written": "integer",
            "version": "integer", "displaced": "array?", "layer": "string?", "proposed": "string?",
            "waiting": "integer?", "rejected": "boolean?", **_DUPLICATE, **_CORRECTION},
        level=WRITE, profiles=CORE, guidance="memory", commands=("memory write",), destructive=True, retryable=True),
    Operation("list_memory", "memory.memory:list_memory", "memory.memory:list_json", "memory.memory:list_text",
        params=(Param("key_prefix"), _LIMIT, _INCLUDE_REPLACED, _LAYER),
        result={"memories": "array", "memory_count": "integer", "left_out": "integer?",
            "remarks": "array?"},
        level=READ, guidance="memory", commands=("memory list",), in_session=False),
    Operation("delete_memory", "memory.memory:delete_memory", "memory.memory:deleted_json",
        "memory.memory:deleted_text",
        params=(_KEY, _LAYER, _EXPECTED_VERSION), result={"status": "string", "key": "string"},
        level=WRITE, profiles=CORE, guidance="memory", commands=("memory delete",), destructive=True, frees=True,
        retryable=True),
    Operation("scratch_note", "memory.memory:scratch_note", "memory.memory:scratch_json",
        "memory.memory:scratch_text",
        params=(Param("content"), Param("mode", choices=("replace", "append", "clear", "read"))),
        result={"note_id": "string?", "total_notes": "integer?", "total_tags": "integer?", "status": "string?",
            "content": "string?", "empty": "boolean?", **_DUPLICATE, **_CORRECTION, **_TRUST},
        level=WRITE, guidance="scratch", commands=("scratch",), destructive=True),
    Operation("read_memory", "memory.memory:read_memory", "memory.memory:memory_json", "memory.memory:memory_text",
        params=(_KEY, _LAYER), result=_MEMORY,
        level=READ, profiles=NONE, commands=("memory show",), in_session=False),
    Operation("mark_useful", "memory.uses:mark_useful", "memory.uses:useful_json", "memory.uses:useful_text",
        params=(_NOTE_ID,), result={"kind": "string", "id": "string", "useful": "integer"},
        level=WRITE, commands=("memory useful",), in_session=False),
    Operation("pin_memory", "memory.memory:pin_memory", "memory.memory:memory_json", "memory.memory:memory_text",
        params=(_KEY, Param("pinned", "boolean"), _LAYER), result=_MEMORY,
        level=WRITE, profiles=NONE, commands=("memory pin", "memory unpin"), idempotent=True),
    # --- what waits for a person --------------------------------------------------------------------------------------
    Operation("list_proposals", "memory.review:list_proposals", "memory.review:proposals_json",
        result={"proposals": "array", "proposal_count": "integer"},
        level=READ, profiles=NONE, commands=("review list",), in_session=False),
    Operation("accept_proposal", "memory.review:accept_proposal", "memory.review:decided_json",
        params=(_ID,), result=_DECIDED,
        level=WRITE, profiles=NONE, commands=("review accept",), in_session=False),
    Operation("reject_proposal", "memory.review:reject_proposal", "memory.review:decided_json",
        params=(_ID,), result=_DECIDED,
        level=WRITE, profiles=NONE, commands=("review reject",), in_session=False, frees=True),
    # --- handoff ------------------------------------------------------------------------------------------------------
    Operation("write_session_handoff", "memory.handoff:write_session_handoff", "memory.handoff:written_json",
        "memory.handoff:written_text",
        params=(_CONTENT, Param("line", everywhere=False), _LIFE[1], *_HANDOFF_FIELDS),
        result={"status": "string", "replaced": "boolean"},
        level=WRITE, profiles=CORE, at_once=True, guidance="handoff", commands=("handoff write",), idempotent=True),
    Operation("read_handoff", "memory.handoff:read_handoff", "memory.handoff:handoff_json",
        "memory.handoff:handoff_text",
        params=(Param("line", everywhere=False), Param("id")),
        result={"content": "string", "id": "string", "line": "string", "written_by": "string", "written_at": "string",
            "used_by": "", **{field.name: "array?" for field in _HANDOFF_FIELDS}, "since": "array?", "others": "array?",
            **_TRUST},
        level=READ, profiles=CORE, guidance="handoff", commands=("handoff show",), in_session=False),
    # --- kept outputs -------------------------------------------------------------------------------------------------
    Operation("read_output", "outputs.read:read_output", "outputs.read:read_json", "outputs.read:read_text",
        params=(_ID, Param("query"), Param("lines"), Param("match"), Param("regex", "boolean"),
            Param("context", "integer", low=0, high=50), Param("path"), Param("rows"), Param("columns", "strings"),
            Param("chars", everywhere=False), Param("bytes", everywhere=False), Param("cursor"),
            Param("tokens", "integer", low=50, high=limits.OUTPUT_READ_MOST, everywhere=False)),
        result={"content": "string", "cursor": "string?", "note": "string?"},
        level=READ, aliases=("scratchpad_read",), profiles=CODING, at_once=True, guidance="outputs",
        commands=("output read",), in_session=False, with_window=True),
    Operation("list_outputs", "outputs.keep:list_outputs", "outputs.keep:list_json", "outputs.keep:list_text",
        params=(_LIMIT,), result={"entries": "array", "stats": "object", "left_out": "integer?"},
        level=READ, aliases=("scratchpad_list",), guidance="outputs",
        commands=("output list",), in_session=False, with_window=True),
    Operation("delete_output", "outputs.keep:delete_output", "outputs.keep:output_json",
        params=(_ID,), result=_OUTPUT,
        level=WRITE, profiles=NONE, commands=("output delete",), in_session=False, destructive=True, frees=True),
    Operation("prune_outputs", "outputs.keep:prune_outputs", "outputs.keep:pruned_json",
        result={"deleted": "integer", "freed_bytes": "integer"},
        level=WRITE, profiles=NONE, commands=("output prune",), in_session=False, destructive=True, frees=True),
    Operation("clear_outputs", "outputs.keep:clear_outputs", "outputs.keep:cleared_json",
        result={"deleted": "integer"},
        level=ADMIN, profiles=NONE, commands=("output clear",), in_session=False, destructive=True, frees=True),
    # --- the journal --------------------------------------------------------------------------------------------------
    Operation("recover_journal", "journal.write:recover_journal", "journal.recover:recovered_json",
        "journal.recover:recovered_text",
        params=(Param("level", "integer", low=1, high=3), Param("query")),
        result={"level": "integer", "text": "string", "tokens": "integer", "tokenizer": "string", "how": "string"},
        level=READ, mends=True, aliases=("recover_notes",), guidance="journal",
        commands=("journal recover",), in_session=False, in_folder=True),
    Operation("log_decision", "journal.write:log_decision", "journal.write:written_json",
        "journal.write:written_text",
        params=(Param("title", required=True), Param("decision", required=True), Param("rationale", required=True),
            Param("evidence", "strings", required=True), Param("scenarios", "strings", required=True)),
        result=_JOURNAL,
        level=WRITE, guidance="journal", commands=("journal decision add",), in_folder=True),
    Operation("update_journal", "journal.write:update_journal", "journal.write:written_json",
        "journal.write:written_text",
        params=(
            Param("section", required=True,
                choices=("question", "goal", "debt", "blocker", "identifier", "task", "state")),
            Param("text", required=True), Param("done", "boolean"), Param("note"),
            Param("severity", choices=("LOW", "MEDIUM", "HIGH", "CRITICAL")), Param("eta"), Param("sprint"),
            Param("track", "boolean")),
        result=_JOURNAL,
        level=WRITE, aliases=("update_notes",), guidance="journal",
        commands=("journal question add", "journal question done", "journal goal add", "journal goal done",
            "journal debt add", "journal debt done", "journal blocker add", "journal blocker done",
            "journal identifier add", "journal set task", "journal set state"),
        in_folder=True),
    Operation("checkpoint_session", "journal.write:checkpoint_session", "journal.write:checkpoint_json",
        "journal.write:checkpoint_text",
        params=(Param("summary", required=True), Param("state"), Param("task"), Param("agent"), Param("line")),
        result={**_JOURNAL, "at": "string", "blockers": "array", "incomplete": "array", "questions": "array",
            "handoff": "boolean", "rotated": "integer"},
        level=WRITE, guidance="journal", commands=("journal checkpoint",), in_folder=True),
    Operation("init_journal", "journal.write:init_journal", "journal.write:created_json",
        result={"created": "boolean"},
        level=WRITE, aliases=("init_notes",), profiles=NONE,
        commands=("journal init",), in_session=False, idempotent=True, in_folder=True),
    Operation("lint_journal", "journal.check:lint_journal", "journal.check:lint_json",
        params=(Param("fix", "boolean"),), result={"ok": "boolean", "findings": "array", "fixed": "boolean"},
        level=WRITE, aliases=("lint_notes",), profiles=NONE,
        commands=("journal lint",), in_session=False, idempotent=True, in_folder=True),
    Operation("heal_journal", "journal.write:heal_journal", "catalogue.operation:fields_json",
        params=(Param("check", "boolean"),),
        result={"file": "string", "state": "string", "source": "string", "written": "boolean"},
        level=WRITE, aliases=("heal_notes",), profiles=NONE,
        commands=("journal heal",), in_session=False, idempotent=True, in_folder=True),
    Operation("verify_journal", "journal.check:verify_journal", "journal.check:verified_json",
        params=(Param("check", "boolean"), Param("fix", "boolean")),
        result={"fresh": "integer", "moved": "integer", "drifted": "integer", "gone": "integer", "checked": "array",
            "written": "boolean"},
        level=WRITE, aliases=("verify_notes",), profiles=NONE,
        commands=("journal verify",), in_session=False, idempotent=True, in_folder=True),
    Operation("rotate_journal", "journal.write:rotate_journal", "catalogue.operation:fields_json",
        params=(Param("force", "boolean"),),
        result={"file": "string", "archive": "string", "decisions": "integer", "rows": "integer"},
        level=WRITE, aliases=("rotate_notes",), profiles=NONE,
        commands=("journal rotate",), in_session=False, idempotent=True, in_folder=True),
    # --- recall -------------------------------------------------------------------------------------------------------
    Operation("recall", "recall.recall:recall", "recall.recall:recalled_json", "recall.recall:recalled_text",
        params=(Param("query", required=True), Param("kinds", "strings"), Param("tags", "strings", everywhere=False),
            Param("session", everywhere=False), Param("since"), Param("until", everywhere=False),
            Param("key_prefix", everywhere=False), Param("include_done", "boolean", everywhere=False), _TAGS_ANY,
            _INCLUDE_REPLACED,
            Param("limit", "integer", low=1, high=limits.RECALL_LIMIT_MAX, clamp=True),
            Param("tokens", "integer", low=100, high=limits.OUTPUT_READ_MOST, everywhere=False),
            Param("more", "boolean")),
        result={"hits": "array", "hit_count": "integer", "query": "string", "left_out": "integer?",
            "nothing_fits": "string?", "not_searched": "object?", "hint": "string?"},
        level=READ, profiles=CORE, at_once=True, guidance="recall", commands=("recall",),
        in_session=False, with_window=True),
    # --- tasks --------------------------------------------------------------------------------------------------------
    Operation("begin_task", "session.tasks:begin_task", "catalogue.operation:fields_json", "session.tasks:begun_text",
        params=(Param("description", required=True),), result={"task_id": "string", "depth": "integer"},
        level=WRITE, guidance="tasks", commands=("task begin",), own_window=True),
    Operation("end_task", "session.tasks:end_task", "session.tasks:ended_json", "session.tasks:ended_text",
        params=(Param("summary", required=True),), result=_TASK_ENDED,
        level=WRITE, guidance="tasks", commands=("task end",), own_window=True, destructive=True),
    Operation("cancel_task", "session.tasks:cancel_task", "session.tasks:ended_json", "session.tasks:ended_text",
        params=(Param("reason", required=True),), result=_TASK_ENDED,
        level=WRITE, guidance="tasks", commands=("task cancel",), own_window=True, destructive=True),
    Operation("list_tasks", "session.tasks:list_tasks", "session.tasks:tasks_json",
        params=(_LIMIT,), result={"tasks": "array", "left_out": "integer?"},
        level=READ, profiles=NONE, commands=("task list",)),
    # --- the window ---------------------------------------------------------------------------------------------------
    Operation("uncompact", "window.window:uncompact", "window.window:restored_json", "window.window:restored_text",
        params=(Param("first", "integer", required=True), Param("last", "integer")),
        result={"first": "integer", "last": "integer", "content": "string", "cut": "boolean?"},
        level=WRITE, commands=("window restore",), with_window=True),
    Operation("show_window", "window.window:show_window", "window.window:gauge_json",
        result={"limit": "integer", "used": "integer", "percent": "number", "sections": "object", "left_out": "array"},
        level=READ, commands=("window show",), own_window=True),
    Operation("compact_window", "window.window:compact_window", "window.window:compacted_json",
        result={"ok": "boolean", "folded": "integer", "first": "integer?", "last": "integer?", "freed": "integer?",
            "used": "integer", "limit": "integer", "left_out": "integer?", "reason": "string?"},
        level=WRITE, commands=("window compact",), own_window=True),
    Operation("list_folds", "window.window:list_folds", "window.window:folds_json",
        result={"folds": "array", "messages": "integer"},
        level=READ, profiles=NONE, commands=("window folds",)),
    # --- pinned texts -------------------------------------------------------------------------------------------------
    Operation("pin_text", "session.pins:pin_text", "session.pins:pin_json",
        params=(_CONTENT,), result=_PIN,
        level=WRITE, profiles=NONE, commands=("window pin",), idempotent=True),
    Operation("unpin_text", "session.pins:unpin_text", "session.pins:pin_json",
        params=(Param("id", required=True, names=PIN),), result=_PIN,
        level=WRITE, profiles=NONE, commands=("window unpin",), idempotent=True, frees=True),
    Operation("list_pins", "session.pins:list_pins", "session.pins:pins_json",
        result={"pins": "array"},
        level=READ, profiles=NONE, commands=("window pins",)),
    # --- the sandbox --------------------------------------------------------------------------------------------------
    Operation("run_sandbox_code", "sandbox.run:run_sandbox_code", "sandbox.run:result_json",
        "sandbox.run:result_text",
        params=(Param("code"), Param("inputs", "object"), Param("name")),
        result={"output": "string", "result": "?", "warning": "string?"},
        level=WRITE, commands=("sandbox run",), destructive=True, slow=True),
    # --- the system prompt --------------------------------------------------------------------------------------------
    Operation("read_system_prompt", "session.notepad:read_system_prompt", "session.notepad:notepad_json",
        "session.notepad:notepad_text",
        result=_SHEET,
        level=READ, commands=("prompt show",), in_session=False),
    Operation("edit_system_prompt", "session.notepad:edit_system_prompt", "session.notepad:edited_json",
        "session.notepad:edited_text",
        params=_EDIT, result=_EDITED,
        level=WRITE, commands=("prompt append", "prompt prepend", "prompt edit"), destructive=True),
    Operation("write_system_prompt", "session.notepad:write_system_prompt", "session.notepad:edited_json",
        "session.notepad:edited_text",
        params=(_CONTENT, _EXPECTED_VERSION), result=_EDITED,
        level=WRITE, profiles=NONE, commands=("prompt write",), destructive=True, idempotent=True),
    Operation("system_prompt_history", "session.notepad:system_prompt_history", "session.notepad:versions_json",
        params=_HISTORY, result=_VERSIONS,
        level=READ, profiles=NONE, commands=("prompt history",), in_session=False),
    Operation("restore_system_prompt", "session.notepad:restore_system_prompt", "session.notepad:edited_json",
        "session.notepad:edited_text",
        params=(_VERSION,), result=_EDITED,
        level=WRITE, profiles=NONE, commands=("prompt restore",), destructive=True, idempotent=True),
    # --- skills -------------------------------------------------------------------------------------------------------
    Operation("list_skills", "memory.skills:list_skills", "memory.skills:skills_json", "memory.skills:skills_text",
        result={"skills": "array", "problems": "array"},
        level=READ, commands=("skill list",), in_session=False, in_folder=True),
    Operation("read_skill", "memory.skills:read_skill", "memory.skills:skill_json", "memory.skills:body_text",
        params=(Param("name", required=True),),
        result={"name": "string", "description": "string", "content": "string", "tokens": "integer",
            "folder": "string", "files": "array"},
        level=READ, commands=("skill show",), in_session=False, in_folder=True),
    Operation("promote_skill", "memory.skills:promote_skill", "memory.skills:promoted_json",
        params=(Param("name", required=True), Param("description", required=True), Param("section", required=True),
            Param("replace", "boolean")),
        result={"ok": "boolean", "name": "string", "folder": "string", "tokens": "integer"},
        level=WRITE, commands=("skill promote",), destructive=True, in_folder=True),
    # --- values of agents ---------------------------------------------------------------------------------------------
    Operation("agent_state", "memory.state:agent_state", "memory.state:answer_json", "memory.state:answer_text",
        params=(Param("action", required=True, choices=("get", "set", "delete", "keys")), Param("key"),
            Param("value", "json", blank=True), Param("prefix"), _EXPECTED_VERSION),
        result={"ok": "boolean", "key": "string?", "value": "?", "version": "integer?", "updated_at": "string?",
            "keys": "array?", "left_out": "integer?", **_TRUST},
        level=WRITE, commands=("state get", "state set", "state delete", "state keys"), destructive=True),
    # --- savings ------------------------------------------------------------------------------------------------------
    Operation("savings", "outputs.savings:savings", "outputs.savings:savings_json",
        params=(Param("session"),),
        result={"tokenizer": "string", "saved": "integer", "total": "object", "tools": "array"},
        level=READ, profiles=NONE, commands=("savings",), in_session=False),
    # --- sessions -----------------------------------------------------------------------------------------------------
    Operation("begin_session", "session.sessions:begin_session", "session.sessions:session_json",
        "session.sessions:begun_text",
        params=(Param("task"),), result=_SESSION,
        level=WRITE, profiles=NONE, commands=("session begin",), idempotent=True),
    Operation("archive_session", "session.sessions:archive_session", "session.sessions:session_json",
        params=(_ID,), result=_SESSION,
        level=WRITE, profiles=NONE, commands=("session archive",), in_session=False, idempotent=True, frees=True),
    Operation("show_session", "session.sessions:show_session", "session.sessions:overview_json",
        params=(_ID,), result={**_SESSION, "notes": "integer", "notepad": "string"},
        level=READ, profiles=NONE, commands=("session show",), in_session=False),
    Operation("list_sessions", "session.sessions:list_sessions", "session.sessions:sessions_json",
        params=(Param("include_archived", "boolean"), _LIMIT), result={"sessions": "array", "left_out": "integer?"},
        level=READ, profiles=NONE, commands=("session list",), in_session=False),
    # --- sub-sessions -------------------------------------------------------------------------------------------------
    Operation("spawn_session", "session.tree:spawn_session", "catalogue.operation:fields_json",
        "session.tree:spawned_text",
        params=(Param("task", required=True), Param("copy_notepad", "boolean"), Param("notes", "strings", names=NOTE),
            Param("references", "strings"), *_CHILD_LIMITS),
        result=_CHILD,
        level=WRITE, profiles=AGENT, commands=("session spawn",)),
    Operation("fork_session", "session.tree:fork_session", "catalogue.operation:fields_json",
        "session.tree:spawned_text",
        params=(Param("task", required=True), *_CHILD_LIMITS), result=_CHILD,
        level=WRITE, profiles=AGENT, commands=("session fork",)),
    Operation("wait_for_sessions", "session.tree:wait_for_sessions", "session.tree:waited_json",
        "session.tree:waited_text",
        params=(Param("ids", "strings", required=True),
            Param("seconds", "integer", low=0, high=limits.WAIT_MAX_SECONDS, clamp=True)),
        result={"results": "array", "waiting": "array?"},
        level=READ, profiles=AGENT, commands=("session wait",), in_session=False, waits=True),
    Operation("report_result", "session.tree:report_result", "session.tree:outcome_json", "session.tree:outcome_text",
        params=(Param("result", required=True), *(Param(name, "strings") for name in _CAPSULE)), result=_OUTCOME,
        level=WRITE, profiles=AGENT, commands=("session report",)),
    Operation("end_session", "session.tree:end_session", "session.tree:outcome_json",
        params=(_ID,
            Param("outcome", required=True, choices=("completed", "error", "token_limit_reached", "cancelled")),
            Param("result")),
        result=_OUTCOME,
        level=WRITE, profiles=NONE, commands=("session end",), in_session=False, frees=True),
    # --- history ------------------------------------------------------------------------------------------------------
    Operation("history", "upkeep.history:history", "upkeep.history:history_json",
        params=(Param("kind", choices=KINDS), Param("key"), Param("before_seq", "integer"), _LIMIT, _LAYER),
        result={"events": "array"},
        level=READ, profiles=NONE, commands=("history",), in_session=False),
    Operation("undo", "upkeep.history:undo", "upkeep.history:undone_json",
        params=(Param("seq", "integer"), Param("dry_run", "boolean"), _LAYER),
        result={"undone": "object", "seq": "integer", "restored": "integer?"},
        level=WRITE, profiles=NONE, commands=("undo",), in_session=False, destructive=True, frees=True),
    # --- pinned tool definitions --------------------------------------------------------------------------------------
    Operation("list_seals", "upkeep.tool_pins:list_seals", "upkeep.tool_pins:servers_json",
        params=(Param("server"),), result={"servers": "array"},
        level=READ, profiles=NONE, commands=("seals list",), in_session=False),
    Operation("approve_seals", "upkeep.tool_pins:approve_seals", "upkeep.tool_pins:approved_json",
        params=(Param("server", required=True), Param("tool")), result={"server": "string", "approved": "array"},
        level=ADMIN, profiles=NONE, commands=("seals approve",), in_session=False, idempotent=True),
    # --- audit and purge ----------------------------------------------------------------------------------------------
    Operation("audit", "upkeep.audit:audit", "upkeep.audit:audit_json",
        params=(Param("only", "strings"), Param("stale_days", "integer", low=1, high=36_500), _LIMIT),
        result={"findings": "array", "counts": "object", "looked_at": "object", "not_known": "string",
            "left_out": "integer?", "skipped": "array?", "used": "array?"},
        level=ADMIN, profiles=NONE, commands=("audit",), in_session=False, only_reads=True, slow=True),
    Operation("purge", "upkeep.purge:purge", "upkeep.purge:purged_json",
        params=(Param("origin"), Param("since"), Param("session"), Param("dry_run", "boolean"),
            Param("forever", "boolean"), Param("id"), Param("version", "integer", low=1, high=INTEGER_MAX)),
        result={"origin": "string", "dry_run": "boolean", "counts": "object", "entries": "array", "remarks": "array",
            "purge": "string?", "erased": "integer?"},
        level=ADMIN, profiles=NONE, commands=("purge",), in_session=False, destructive=True, frees=True, slow=True),
)
# fmt: on


OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in ROWS}
ALIASES: Mapping[str, str] = {alias: operation.name for operation in ROWS for alias in operation.aliases}
_BY_PLACE = {operation.run: operation for operation in ROWS}
COMMANDS: Mapping[str, Operation] = {words: operation for operation in ROWS for words in operation.commands}
_TOOL_NAMES = frozenset(name for name in OPERATIONS if "_" in name)  # the others are also words
_COMMANDS_FOR = {'agent_state with action "keys"': "state keys"}  # of operations that several commands call
WITH_WINDOW = tuple(operation.name for operation in ROWS if operation.with_window)
OWN_WINDOW = tuple(operation.name for operation in ROWS if operation.own_window)


def listed_name(name: str) -> str:
    """The name that an operation is listed by. Earlier names, which the documents that Limpet began with use, are
    accepted at every door."""
    return ALIASES.get(name, name)


def find(name: str) -> Operation:
    operation = OPERATIONS.get(listed_name(name))
    if operation is None:
        raise errors.unknown_operation(name, f"Those that exist: {', '.join(OPERATIONS)}.")
    return operation


def profile(name: str) -> tuple[Operation, ...]:
    """The operations an agent gets."""
    if name not in PROFILES:
        raise errors.unknown_profile(name, PROFILES)
    return tuple(operation for operation in ROWS if name in operation.profiles)


def guidance(names: Iterable[str]) -> str:
    """How to use the tools with these names. It mentions no other tool."""
    present = set(names)
    tools = {part: [row.name for row in ROWS if row.guidance == part and row.name in present] for part in GUIDANCE}
    return "\n".join(prompts.guidance(part, its_tools) for part, its_tools in tools.items() if its_tools)


# --- calls as models make them, and refusals as they read them --------------------------------------------------------

_TAG_PARAMS = {"tags", "tags_any", "tag"}
_NEVER_ALONE = {"expected_version", "session_id"}  # they change nothing by themselves


def tool_named(name: str, offered: Mapping[str, Operation]) -> Operation | None:
    """The tool that a model calls by this name; models write it in other cases, and with hyphens."""
    operation = offered.get(listed_name(name))
    return operation if operation is not None else offered.get(listed_name(name.lower().replace("-", "_")))


def as_meant(operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that may be left out and are an empty text: some clients have their model fill in
    all of them. An empty text that says something stays. Tags are as they were stored, not as answers show them."""
    optional = {param.name for param in operation.all_params() if not (param.required or param.blank)}
    return {
        name: _bare_tags(argument) if name in _TAG_PARAMS else argument
        for name, argument in arguments.items()
        if argument != "" or name not in optional
    }


def _bare_tags(argument: Any) -> Any:
    if isinstance(argument, list):
        return [tag for member in argument for tag in _shown_tags(member) or [member]]
    tags = _shown_tags(argument)
    return (tags[0] if len(tags) == 1 else tags) if tags else argument


def _shown_tags(argument: object) -> list[str]:
    return brief.untagged(argument) if isinstance(argument, str) else []


def reworded(
    problem: errors.LimpetError,
    operation: Operation,
    arguments: Mapping[str, Any],
    listed: Iterable[str],
    tools: Iterable[str],
) -> errors.LimpetError:
    """A refusal that names those arguments and tools which the model has in its list, not all that are accepted."""
    if problem.code == "unknown_argument":
        accepted = {param.name for param in operation.all_params()}
        unknown = next((name for name in arguments if name not in accepted), "")
        problem = errors.unknown_argument(operation.name, unknown, list(listed))
    elif problem.code == "nothing_to_update":
        needed = {param.name for param in operation.params if param.required} | _NEVER_ALONE
        *names, last = [name for name in listed if name not in needed]
        problem = errors.nothing_to_update(operation.name, f"{', '.join(names)} or {last}")
    return type(problem)(problem.code, for_agent(problem.message, tools))


def for_agent(text: str, tools: Iterable[str]) -> str:
    """A message as an agent with these tools reads it: without the sentences about tools that it does not have."""
    missing = _TOOL_NAMES - set(tools)
    first, *more = re.split(r"(?<=[.!?]) ", text)
    return " ".join([first, *(sentence for sentence in more if not missing.intersection(re.findall(r"\w+", sentence)))])


def for_people(text: str, running: str = "") -> str:
    """A message as a person at a terminal reads it: with commands in the place of tools. `running` is the command that
    was typed, which is named where it calls the operation."""

    def command(name: re.Match[str]) -> str:
        operation = OPERATIONS.get(name[0])
        if operation is None or not operation.commands:
            return name[0]
        return f"`limpet {running if running in operation.commands else operation.commands[0]}`"

    for words, words_of_command in _COMMANDS_FOR.items():
        text = text.replace(words, f"`limpet {words_of_command}`")
    text = re.sub(r"\blayer=(\w+)", r"--layer \1", text)
    return re.sub(r"(?<![\w'\"`])[a-z]+(?:_[a-z]+)+(?![\w'\"`])", command, text)


def operation_of(function: Callable[..., Any]) -> Operation:
    """The operation whose behaviour is this function."""
    return _BY_PLACE[f"{function.__module__.removeprefix('limpet.')}:{function.__name__}"]
