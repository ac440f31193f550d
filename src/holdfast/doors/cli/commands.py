"""Which operation a command is. The help texts come from here, and a test checks that no operation lacks a command."""

from __future__ import annotations

# The operation a command stands for comes first; further ones are those it also uses.
COMMANDS: dict[str, tuple[str, ...]] = {
    "note add": ("add_note",),
    "note search": ("search_notes",),
    "note list": ("list_notes",),
    "note update": ("update_note",),
    "note delete": ("delete_note",),
    "tags": ("list_tags",),
    "pad show": ("read_notepad",),
    "pad write": ("write_notepad",),
    "pad append": ("update_notepad",),
    "pad prepend": ("update_notepad",),
    "pad edit": ("update_notepad", "read_notepad", "write_notepad"),
    "pad history": ("notepad_history",),
    "pad restore": ("restore_notepad",),
    "scratch": ("scratch_note",),
    "memory search": ("search_memory",),
    "memory write": ("write_memory",),
    "memory show": ("read_memory",),
    "memory pin": ("pin_memory",),
    "memory unpin": ("pin_memory",),
    "handoff write": ("write_session_handoff",),
    "handoff show": ("read_handoff",),
    "output read": ("scratchpad_read",),
    "output list": ("scratchpad_list",),
    "output delete": ("delete_output",),
    "output prune": ("prune_outputs",),
    "output clear": ("clear_outputs",),
    "session list": ("list_sessions",),
    "session show": ("show_session",),
    "session begin": ("begin_session",),
    "session archive": ("archive_session",),
    "history": ("history",),
    "undo": ("undo",),
}
