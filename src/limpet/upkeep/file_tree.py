"""What is kept, seen as a small tree of files, for models whose memory tool speaks of files.

    notepad.md       the session's notepad
    handoff.md       what the last session left for this one, or this one for the next
    notes/<id>.md    the session's notes
    outputs/<id>.txt big results that were kept; only for reading
    everything else  the project's memory: the path is the key

A path is a name in the store and nothing more: no file of the machine is ever looked at. Each change is the one that
the tool of its kind makes, with its bounds and its event, so that history and undo know it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from limpet import errors, limits
from limpet.catalogue.check import bounded, storable
from limpet.catalogue.operation import Context
from limpet.errors import LimpetError
from limpet.memory import handoff, items, memory, notes
from limpet.model import HANDOFF, MEMORY, NOTE, NOTEPAD, OUTPUT, Draft, Entry, Output, Stamp
from limpet.outputs import keep as output_keep
from limpet.outputs import read as output_read
from limpet.session import notepad
from limpet.store import DELETE, Decide, Delete, Listing
from limpet.text import tokens

ROOT = "/memories"
FOLDER = "folder"
NOTEPAD_FILE, HANDOFF_FILE, NOTES, OUTPUTS = "notepad.md", "handoff.md", "notes", "outputs"
NOTE_END, OUTPUT_END = ".md", ".txt"
LEVELS = 2  # of the tree that a listing shows
Change = Callable[[str], str]


class Place(NamedTuple):
    """What a path names. In memory a name may turn out to be a folder, which only the keys in it tell."""

    path: str
    kind: str
    key: str = ""


class File(NamedTuple):
    path: str
    size: int  # bytes


class Listed(NamedTuple):
    files: tuple[File, ...]  # folders too, whose paths end in a slash
    left_out: int  # notes and outputs beyond those shown, and memory whose key is no path


class Shown(NamedTuple):
    """Lines of a file, from the number `first` on, and how many it has."""

    lines: tuple[str, ...]
    first: int
    total: int
    cut: bool  # the last line is not whole


# --- paths ------------------------------------------------------------------------------------------------------------


def place(path: str) -> Place:
    """What a path names; an error where it is no path of ours."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise errors.path_outside(path, ROOT)
    rest = path.removeprefix(ROOT).removeprefix("/").removesuffix("/")
    names = rest.split("/") if rest else []
    if why := _wrong(names):
        raise errors.path_refused(path, why)
    clean = "/".join((ROOT, *names))
    match names:
        case [] | ["notes"] | ["outputs"]:
            return Place(clean, FOLDER, "/".join(names))
        case ["notepad.md"]:
            return Place(clean, NOTEPAD)
        case ["handoff.md"]:
            return Place(clean, HANDOFF, handoff.MAIN)
        case ["notes", name]:
            return Place(clean, NOTE, name.removesuffix(NOTE_END))
        case ["outputs", name]:
            return Place(clean, OUTPUT, name.removesuffix(OUTPUT_END))
        case ["notes" | "outputs" | "notepad.md" | "handoff.md", *_]:
            raise errors.path_refused(path, f"{ROOT}/{names[0]} has no folders in it")
    return Place(clean, MEMORY, memory.memory_key("/".join(names)))


def _wrong(names: Sequence[str]) -> str:
    """What is wrong with the names of a path. Nothing is resolved, decoded or mended: a name is taken as it is."""
    for name in names:
        if name in ("", ".", ".."):
            return "its names may not be empty, . or .."
        if name != name.strip() or not name.isprintable() or "\\" in name:
            return "a name is visible characters without a backslash, and without a space at either end"
    return ""


def _is_path(key: str) -> bool:
    """Whether a key of memory can be named by a path."""
    try:
        return place(f"{ROOT}/{key}") == Place(f"{ROOT}/{key}", MEMORY, key)
    except LimpetError:
        return False


# --- reading ----------------------------------------------------------------------------------------------------------


def list_files(ctx: Context, path: str) -> Listed | None:
    """What is in a folder, two levels deep; None where the path names no folder."""
    where = place(path)
    if where.kind not in (FOLDER, MEMORY):
        return None
    files, left_out = _below(ctx, where.key) if where.kind == MEMORY else _in_ours(ctx, where.key)
    if where.kind == MEMORY and (not files or ctx.store.entries.read(ctx.scope, MEMORY, where.key) is not None):
        return None
    return Listed((File(where.path, sum(file.size for file in files)), *_tree(where.path, files)), left_out)


def read_file(ctx: Context, path: str, lines: Sequence[int] | None = None) -> Shown:
    """A file's lines, or those from the one number to the other (-1: to the end). As many as one answer may have."""
    where = place(path)
    if where.kind == OUTPUT:
        kept = _output(ctx, where)
        first, last = _range(lines, max(kept.lines, 1))
        read = output_read.scratchpad_read(ctx, kept.id, lines=f"{first}-{last}", tokens=limits.OUTPUT_READ_MOST)
        return _shown(read.content, first, max(kept.lines, 1), read.cursor is not None)
    whole = _text(ctx, where).split("\n")
    first, last = _range(lines, len(whole))
    text, cut = tokens.cut("\n".join(whole[first - 1 : last]), limits.OUTPUT_READ_MOST)
    return _shown(text, first, len(whole), cut)


def _range(lines: Sequence[int] | None, total: int) -> tuple[int, int]:
    if not lines:
        return 1, total
    if len(lines) != 2 or not 1 <= lines[0] <= total or (lines[1] != -1 and lines[1] < lines[0]):
        raise errors.bad_view_range(list(lines), total)
    return lines[0], total if lines[1] == -1 else min(lines[1], total)


def _shown(text: str, first: int, total: int, cut: bool) -> Shown:
    lines = text.removesuffix("\n").split("\n")
    broken = cut and not text.endswith("\n")
    if broken and len(lines) > 1:  # a part of a line would look like the whole of it
        lines, broken = lines[:-1], False
    return Shown(tuple(lines), first, total, broken)


def _text(ctx: Context, where: Place) -> str:
    if where.kind == NOTEPAD:
        if content := notepad.read_notepad(ctx).content:
            return content
    elif where.kind != FOLDER:
        entry = ctx.store.entries.read(ctx.scope, where.kind, where.key)
        if entry is not None and _visible(ctx, entry):
            return entry.content
    if where.kind == FOLDER or (where.kind == MEMORY and _below(ctx, where.key)[0]):
        raise errors.not_a_file(where.path)
    raise errors.no_file(where.path)


def _visible(ctx: Context, entry: Entry) -> bool:
    """Whether it is this session's business: notes of others are not, nor is a handoff that a third session took."""
    if entry.kind == NOTE:
        return entry.session == ctx.session
    if entry.kind == HANDOFF:
        return entry.session == ctx.session or handoff.waiting(ctx, entry.key) is not None
    return True


def _output(ctx: Context, where: Place) -> Output:
    try:
        return output_keep.find_output(ctx, where.key)
    except LimpetError as problem:
        if problem.code == "output_gone":  # it says what it was, and how to get it again
            raise
        raise errors.no_file(where.path) from None


def _below(ctx: Context, folder: str) -> tuple[list[File], int]:
    """Memory in a folder, and how much there is whose key is no path."""
    page = ctx.store.entries.list(ctx.scope, Listing((MEMORY,), limit=limits.ITEMS_READ))
    known = [entry for entry in page.entries if _is_path(entry.key)]
    start = f"{folder}/" if folder else ""
    found = [entry for entry in known if entry.key.startswith(start)]
    left_out = 0 if folder else page.total - len(known)
    return sorted(File(f"{ROOT}/{entry.key}", len(entry.content.encode())) for entry in found), left_out


def _in_ours(ctx: Context, folder: str) -> tuple[list[File], int]:
    files: list[File] = []
    left_out = 0
    if folder in ("", NOTES):
        page = ctx.store.entries.list(ctx.scope, Listing((NOTE,), ctx.session, limit=limits.NOTES_SHOWN))
        files += [File(f"{ROOT}/{NOTES}/{one.key}{NOTE_END}", len(one.content.encode())) for one in page.entries]
        left_out += page.total - len(page.entries)
    if folder in ("", OUTPUTS):
        kept = ctx.store.outputs.list(ctx.scope, limits.NOTES_SHOWN)
        files += [File(f"{ROOT}/{OUTPUTS}/{one.id}{OUTPUT_END}", one.size) for one in kept.outputs]
        left_out += kept.total - len(kept.outputs)
    if folder:
        return files, left_out
    own = []
    for name in (HANDOFF_FILE, NOTEPAD_FILE):
        try:
            own.append(File(f"{ROOT}/{name}", len(_text(ctx, place(f"{ROOT}/{name}")).encode())))
        except LimpetError:
            continue  # there is none now
    kept_memory, odd = _below(ctx, "")
    return [*own, *files, *kept_memory], left_out + odd


def _tree(root: str, files: Sequence[File]) -> list[File]:
    """Files and folders, two levels deep; a folder is as big as all that is in it."""
    sizes: dict[str, int] = {}
    for file in files:
        names = file.path.removeprefix(f"{root}/").split("/")
        for level in range(1, min(len(names), LEVELS) + 1):
            path = "/".join((root, *names[:level])) + ("/" if level < len(names) else "")
            sizes[path] = sizes.get(path, 0) + file.size
    return [File(path, size) for path, size in sizes.items()]


# --- changing ---------------------------------------------------------------------------------------------------------


def create_file(ctx: Context, path: str, text: str) -> str:
    """A new file. The path at which it stands, which for a note is one with the id it got."""
    where = place(path)
    storable("file_text", text)
    match where.kind:
        case "folder":
            raise errors.not_a_file(where.path)
        case "output":
            raise _outputs_stay(where)
        case "note":
            if ctx.store.entries.read(ctx.scope, NOTE, where.key) is not None:
                raise errors.file_exists(where.path)
            return f"{ROOT}/{NOTES}/{notes.add_note(ctx, text.strip()).note.id}{NOTE_END}"
        case "handoff":
            handoff.write_session_handoff(ctx, text)  # the last one counts, always
        case "notepad":
            notepad.edit(ctx, notepad.pad(ctx), "write_notepad", lambda before: _only_new(where, before, text), None)
        case _:
            _free(ctx, where)
            ctx.store.entries.edit(ctx.scope, MEMORY, where.key, _new_memory(where, text), _stamp(ctx, "replace"))
    return where.path


def edit_file(ctx: Context, path: str, change: Change) -> str:
    """A file changed in place, at once and whole; what it says afterwards."""
    where = place(path)
    if where.kind == OUTPUT:
        raise _outputs_stay(where)
    if where.kind == NOTEPAD:
        _text(ctx, where)
        return notepad.edit(ctx, notepad.pad(ctx), "update_notepad", change, None).notepad.content
    if where.kind == FOLDER:
        raise errors.not_a_file(where.path)
    stamps = {
        NOTE: ctx.stamp("update_note"),
        HANDOFF: ctx.stamp("write_session_handoff"),
        MEMORY: _stamp(ctx, "replace"),
    }
    _text(ctx, where)
    done = ctx.store.entries.edit(ctx.scope, where.kind, where.key, _changed(ctx, where, change), stamps[where.kind])
    return done.entry.content


def delete_file(ctx: Context, path: str) -> None:
    where = place(path)
    match where.kind:
        case "folder":
            raise errors.file_read_only(where.path, "it is always there. Delete the files in it one by one")
        case "output":
            raise _outputs_stay(where)
        case "handoff":
            raise errors.file_read_only(where.path, "a handoff stays until it is used. Create it again to replace it")
        case "note":
            _text(ctx, where)
            notes.delete_note(ctx, where.key)
        case "notepad":
            _text(ctx, where)
            notepad.write_notepad(ctx, "")
        case _:
            keys = _keys(ctx, where)
            ctx.store.entries.edit_all(ctx.scope, [(MEMORY, key, _gone(where)) for key in keys], _stamp(ctx, "delete"))


def rename_file(ctx: Context, old_path: str, new_path: str) -> None:
    """Memory under another key; a folder with all that is in it, or nothing of it."""
    old, new = place(old_path), place(new_path)
    for where in (old, new):
        if where.kind != MEMORY:
            raise errors.file_read_only(where.path, "only files of memory can be renamed. Create one anew instead")
    keys = _keys(ctx, old)
    if new.key == old.key or new.key.startswith(f"{old.key}/"):
        raise errors.path_refused(new.path, f"it is {old.path} itself or in it")
    _free(ctx, new)
    edits: list[tuple[str, str, Decide]] = []
    for key in keys:
        other = memory.memory_key(new.key + key.removeprefix(old.key))
        edits += _moved(old, key, Place(f"{ROOT}/{other}", MEMORY, other))
    ctx.store.entries.edit_all(ctx.scope, edits, _stamp(ctx, "rename"))


def _keys(ctx: Context, where: Place) -> list[str]:
    """The one key that a path names, or those in the folder that it names."""
    if ctx.store.entries.read(ctx.scope, MEMORY, where.key) is not None:
        return [where.key]
    found = [file.path.removeprefix(f"{ROOT}/") for file in _below(ctx, where.key)[0]]
    if not found:
        raise errors.no_file(where.path)
    return found


def _free(ctx: Context, where: Place) -> None:
    """Nothing stands in the way of a new file: no folder of that name, and no file where a folder would be."""
    names = where.key.split("/")
    for count in range(1, len(names)):
        if ctx.store.entries.read(ctx.scope, MEMORY, "/".join(names[:count])) is not None:
            raise errors.path_refused(where.path, f"{ROOT}/{'/'.join(names[:count])} is a file, not a directory")
    if ctx.store.entries.read(ctx.scope, MEMORY, where.key) is not None or _below(ctx, where.key)[0]:
        raise errors.file_exists(where.path)


def _new_memory(where: Place, text: str) -> Decide:
    kept = _memory_text(text)

    def decide(before: Entry | None) -> Draft:
        if before is not None:
            raise errors.file_exists(where.path)
        return Draft(kept)

    return decide


def _only_new(where: Place, before: str, text: str) -> str:
    if before:
        raise errors.file_exists(where.path)
    return text


def _changed(ctx: Context, where: Place, change: Change) -> Decide:
    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise errors.no_file(where.path)
        text = change(before.content)
        if where.kind == MEMORY:
            extra = {name: value for name, value in before.extra.items() if name != items.FIELD}
            return Draft(_memory_text(text), before.session, before.tags, before.done, before.pinned, extra)
        if where.kind == HANDOFF:
            return Draft(handoff.checked(text), ctx.session, extra={"written_at": ctx.now})
        kept = notes.checked(ctx, text.strip())
        return Draft(kept, before.session, before.tags, before.done, before.pinned, before.extra)

    return decide


def _memory_text(text: str) -> str:
    advice = "Split it over several files."
    return bounded("file", text.strip(), limits.MEMORY_MAX_CHARS, advice, blank="Write what is to be kept.")


def _gone(where: Place) -> Decide:
    def decide(before: Entry | None) -> Delete:
        if before is None:
            raise errors.no_file(where.path)
        return DELETE

    return decide


def _moved(old: Place, key: str, new: Place) -> list[tuple[str, str, Decide]]:
    taken: list[Draft] = []

    def take(before: Entry | None) -> Delete:
        if before is None:
            raise errors.no_file(old.path)
        extra = {name: value for name, value in before.extra.items() if name != items.FIELD}
        taken[:] = [Draft(before.content, before.session, before.tags, before.done, before.pinned, extra)]
        return DELETE

    def put(before: Entry | None) -> Draft:
        if before is not None:
            raise errors.file_exists(new.path)
        return taken[0]

    return [(MEMORY, key, take), (MEMORY, new.key, put)]


def _stamp(ctx: Context, mode: str) -> Stamp:
    return ctx.stamp("write_memory", {"mode": mode})


def _outputs_stay(where: Place) -> LimpetError:
    return errors.file_read_only(where.path, "outputs are kept as they were. Write what matters of them to a file")
