"""Stored entries as a small tree of files, for models whose memory tool works on files.

    notepad.md       the session's notepad
    handoff.md       what the last session left for this one, or this one for the next
    notes/<id>.md    the session's notes
    outputs/<id>.txt stored outputs, which cannot be changed
    everything else  the project's memory: the path is the key

A path is a name in the store: no file of the machine is opened. Each change goes through the operation of its kind,
with its limits and its event, so that history and undo cover it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet import errors, limits
from limpet.catalogue.operation import Context, bounded, storable
from limpet.errors import LimpetError
from limpet.memory import handoff, items, memory, notes
from limpet.model import HANDOFF, MEMORY, NOTE, NOTEPAD, OUTPUT, Draft, Entry, Output, Stamp
from limpet.outputs import keep as output_keep
from limpet.outputs import read as output_read
from limpet.record import NamedTuple
from limpet.session import notepad
from limpet.store import DELETE, Decide, Delete, Listing
from limpet.text import tokens
from limpet.text.safe import without_blank_ends

ROOT = "/memories"
FOLDER = "folder"
NOTEPAD_FILE, HANDOFF_FILE, NOTES, OUTPUTS = "notepad.md", "handoff.md", "notes", "outputs"
NOTE_END, OUTPUT_END = ".md", ".txt"
LEVELS = 2  # of the tree that a listing shows
Change = Callable[[str], str]


class TreePath(NamedTuple):
    """What a path names. A path in memory may be a folder; the keys that begin with it decide."""

    path: str
    kind: str
    key: str = ""


class TreeFile(NamedTuple):
    path: str
    size: int  # bytes


class FileList(NamedTuple):
    files: tuple[TreeFile, ...]  # folders too, whose paths end in a slash
    left_out: int  # notes and outputs over the limit, and memory whose key is not a path


class FileLines(NamedTuple):
    """Lines of a file, from the number `first` on, and how many it has."""

    lines: tuple[str, ...]
    first: int
    total: int
    cut: bool  # the last line is incomplete


# --- paths ------------------------------------------------------------------------------------------------------------


def place(path: str) -> TreePath:
    """What a path names; an error if it is not a path of this tree."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise errors.path_outside(path, ROOT)
    rest = path.removeprefix(ROOT).removeprefix("/").removesuffix("/")
    names = rest.split("/") if rest else []
    if why := _name_problem(names):
        raise errors.path_refused(path, why)
    clean = "/".join((ROOT, *names))
    match names:
        case [] | ["notes"] | ["outputs"]:
            return TreePath(clean, FOLDER, "/".join(names))
        case ["notepad.md"]:
            return TreePath(clean, NOTEPAD)
        case ["handoff.md"]:
            return TreePath(clean, HANDOFF, "")
        case ["notes", name]:
            return TreePath(clean, NOTE, name.removesuffix(NOTE_END))
        case ["outputs", name]:
            return TreePath(clean, OUTPUT, name.removesuffix(OUTPUT_END))
        case ["notes" | "outputs" | "notepad.md" | "handoff.md", *_]:
            raise errors.path_refused(path, f"{ROOT}/{names[0]} has no folders in it")
    return TreePath(clean, MEMORY, memory.memory_key("/".join(names)))


def _name_problem(names: Sequence[str]) -> str:
    """What is wrong with the names of a path. Names are taken as they are, without resolving or decoding."""
    for name in names:
        if name in ("", ".", ".."):
            return "none of its names may be empty, '.' or '..'"
        if name != name.strip() or not name.isprintable() or "\\" in name:
            return "a name is visible characters without a backslash, and without a space at either end"
    return ""


def _is_path(key: str) -> bool:
    """Whether a key of memory can be named by a path."""
    try:
        return place(f"{ROOT}/{key}") == TreePath(f"{ROOT}/{key}", MEMORY, key)
    except LimpetError:
        return False


# --- reading ----------------------------------------------------------------------------------------------------------


def list_files(ctx: Context, path: str) -> FileList | None:
    """The contents of a folder, two levels deep; None if the path is not a folder."""
    where = place(path)
    if where.kind not in (FOLDER, MEMORY):
        return None
    files, left_out = _below(ctx, where.key) if where.kind == MEMORY else _special_files(ctx, where.key)
    if where.kind == MEMORY and (not files or ctx.store.entries.read(ctx.scope, MEMORY, where.key) is not None):
        return None
    return FileList((TreeFile(where.path, sum(file.size for file in files)), *_tree(where.path, files)), left_out)


def read_file(ctx: Context, path: str, lines: Sequence[int] | None = None) -> FileLines:
    """The lines of a file, or a range of them (-1: to the end), up to the limit of one answer."""
    where = place(path)
    if where.kind == OUTPUT:
        output = _output(ctx, where)
        first, last = _range(lines, max(output.lines, 1))
        read = output_read.read_output(ctx, output.id, lines=f"{first}-{last}", tokens=limits.OUTPUT_READ_MOST)
        return _file_lines(read.content, first, max(output.lines, 1), read.cursor is not None)
    all_lines = _text(ctx, where).split("\n")
    first, last = _range(lines, len(all_lines))
    text, cut = tokens.cut("\n".join(all_lines[first - 1 : last]), limits.OUTPUT_READ_MOST)
    return _file_lines(text, first, len(all_lines), cut)


def _range(lines: Sequence[int] | None, total: int) -> tuple[int, int]:
    if not lines:
        return 1, total
    if len(lines) != 2 or not 1 <= lines[0] <= total or (lines[1] != -1 and lines[1] < lines[0]):
        raise errors.bad_view_range(list(lines), total)
    return lines[0], total if lines[1] == -1 else min(lines[1], total)


def _file_lines(text: str, first: int, total: int, cut: bool) -> FileLines:
    lines = text.removesuffix("\n").split("\n")
    broken = cut and not text.endswith("\n")
    if broken and len(lines) > 1:  # a cut line would look like a complete one
        lines, broken = lines[:-1], False
    return FileLines(tuple(lines), first, total, broken)


def _text(ctx: Context, where: TreePath) -> str:
    if where.kind == NOTEPAD:
        if content := notepad.read_notepad(ctx).content:
            return content
    elif where.kind == HANDOFF:
        if (text := _handoff(ctx)) is not None:
            return text
    elif where.kind != FOLDER:
        entry = ctx.store.entries.read(ctx.scope, where.kind, where.key)
        if entry is not None and _visible(ctx, entry):
            return entry.content
    if where.kind == FOLDER or (where.kind == MEMORY and _below(ctx, where.key)[0]):
        raise errors.not_a_file(where.path)
    raise errors.no_file(where.path)


def _visible(ctx: Context, entry: Entry) -> bool:
    """Whether the session may see it: not the notes of other sessions."""
    return entry.kind != NOTE or entry.session == ctx.session


def _handoff(ctx: Context) -> str | None:
    """What this session leaves for the next, or else the newest handoff that waits for it."""
    own = ctx.store.entries.read(ctx.scope, HANDOFF, handoff.own_key(ctx, handoff.line_of(ctx, None)))
    if own is not None:
        return own.content
    return next((item.content for item in handoff.waiting(ctx).own), None)


def _output(ctx: Context, where: TreePath) -> Output:
    try:
        return output_keep.find_output(ctx, where.key)
    except LimpetError as problem:
        if problem.code == "output_gone":  # the error describes the output and how to produce it again
            raise
        raise errors.no_file(where.path) from None


def _below(ctx: Context, folder: str) -> tuple[list[TreeFile], int]:
    """Memory in a folder, and the number of entries whose key is not a path."""
    page = ctx.store.entries.list(ctx.scope, Listing((MEMORY,), limit=limits.ITEMS_READ))
    with_path = [entry for entry in page.entries if _is_path(entry.key)]
    start = f"{folder}/" if folder else ""
    inside = [entry for entry in with_path if entry.key.startswith(start)]
    left_out = 0 if folder else page.total - len(with_path)
    return sorted(TreeFile(f"{ROOT}/{entry.key}", len(entry.content.encode())) for entry in inside), left_out


def _special_files(ctx: Context, folder: str) -> tuple[list[TreeFile], int]:
    files: list[TreeFile] = []
    left_out = 0
    if folder in ("", NOTES):
        page = ctx.store.entries.list(ctx.scope, Listing((NOTE,), ctx.session, limit=limits.NOTES_SHOWN))
        files += [TreeFile(f"{ROOT}/{NOTES}/{note.key}{NOTE_END}", len(note.content.encode())) for note in page.entries]
        left_out += page.total - len(page.entries)
    if folder in ("", OUTPUTS):
        outputs = ctx.store.outputs.list(ctx.scope, limits.NOTES_SHOWN)
        files += [TreeFile(f"{ROOT}/{OUTPUTS}/{output.id}{OUTPUT_END}", output.size) for output in outputs.outputs]
        left_out += outputs.total - len(outputs.outputs)
    if folder:
        return files, left_out
    own = []
    for name in (HANDOFF_FILE, NOTEPAD_FILE):
        try:
            own.append(TreeFile(f"{ROOT}/{name}", len(_text(ctx, place(f"{ROOT}/{name}")).encode())))
        except LimpetError:
            continue  # there is none
    memory_files, odd = _below(ctx, "")
    return [*own, *files, *memory_files], left_out + odd


def _tree(root: str, files: Sequence[TreeFile]) -> list[TreeFile]:
    """Files and folders, two levels deep. The size of a folder is the sum of its files."""
    sizes: dict[str, int] = {}
    for file in files:
        names = file.path.removeprefix(f"{root}/").split("/")
        for level in range(1, min(len(names), LEVELS) + 1):
            path = "/".join((root, *names[:level])) + ("/" if level < len(names) else "")
            sizes[path] = sizes.get(path, 0) + file.size
    return [TreeFile(path, size) for path, size in sizes.items()]


# --- changing ---------------------------------------------------------------------------------------------------------


def create_file(ctx: Context, path: str, text: str) -> str:
    """Create a file and return its path. The path of a note has the id that the store minted."""
    where = place(path)
    storable("file_text", text)
    match where.kind:
        case "folder":
            raise errors.not_a_file(where.path)
        case "output":
            raise _output_read_only(where)
        case "note":
            if ctx.store.entries.read(ctx.scope, NOTE, where.key) is not None:
                raise errors.file_exists(where.path)
            return f"{ROOT}/{NOTES}/{notes.add_note(ctx, without_blank_ends(text)).note.id}{NOTE_END}"
        case "handoff":
            handoff.leave(ctx, text)  # replaces the one that this session left before
        case "notepad":
            notepad.edit(ctx, notepad.pad(ctx), "write_notepad", lambda before: _if_empty(where, before, text), None)
        case _:
            _check_free(ctx, where)
            ctx.store.entries.edit(ctx.scope, MEMORY, where.key, _new_memory(where, text), _stamp(ctx, "replace"))
    return where.path


def edit_file(ctx: Context, path: str, change: Change) -> str:
    """Change a file in one transaction and return its new text."""
    where = place(path)
    if where.kind == OUTPUT:
        raise _output_read_only(where)
    if where.kind == NOTEPAD:
        _text(ctx, where)
        return notepad.edit(ctx, notepad.pad(ctx), "update_notepad", change, None).notepad.content
    if where.kind == FOLDER:
        raise errors.not_a_file(where.path)
    if where.kind == HANDOFF:
        return handoff.leave(ctx, change(_text(ctx, where))).handoff.content  # that of another session stays
    stamps = {NOTE: ctx.stamp("update_note"), MEMORY: _stamp(ctx, "replace")}
    _text(ctx, where)
    done = ctx.store.entries.edit(ctx.scope, where.kind, where.key, _changed(ctx, where, change), stamps[where.kind])
    return done.entry.content


def delete_file(ctx: Context, path: str) -> None:
    where = place(path)
    match where.kind:
        case "folder":
            raise errors.file_read_only(where.path, "it is always there. Delete the files in it one by one")
        case "output":
            raise _output_read_only(where)
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
            ctx.store.entries.edit_all(
                ctx.scope, [(MEMORY, key, _deletion(where)) for key in keys], _stamp(ctx, "delete")
            )


def rename_file(ctx: Context, old_path: str, new_path: str) -> None:
    """Move memory to another key, or all entries of a folder, in one transaction."""
    old, new = place(old_path), place(new_path)
    for where in (old, new):
        if where.kind != MEMORY:
            raise errors.file_read_only(where.path, "only files of memory can be renamed. Create one anew instead")
    keys = _keys(ctx, old)
    if new.key == old.key or new.key.startswith(f"{old.key}/"):
        raise errors.path_refused(new.path, f"it is {old.path} itself or in it")
    _check_free(ctx, new)
    edits: list[tuple[str, str, Decide]] = []
    for key in keys:
        new_key = memory.memory_key(new.key + key.removeprefix(old.key))
        edits += _moved(old, key, TreePath(f"{ROOT}/{new_key}", MEMORY, new_key))
    ctx.store.entries.edit_all(ctx.scope, edits, _stamp(ctx, "rename"))


def _keys(ctx: Context, where: TreePath) -> list[str]:
    """The key that a path names, or the keys in the folder that it names."""
    if ctx.store.entries.read(ctx.scope, MEMORY, where.key) is not None:
        return [where.key]
    keys = [file.path.removeprefix(f"{ROOT}/") for file in _below(ctx, where.key)[0]]
    if not keys:
        raise errors.no_file(where.path)
    return keys


def _check_free(ctx: Context, where: TreePath) -> None:
    """Check that a new file can be created: no folder has its name, and no file the name of one of its folders."""
    names = where.key.split("/")
    for count in range(1, len(names)):
        if ctx.store.entries.read(ctx.scope, MEMORY, "/".join(names[:count])) is not None:
            raise errors.path_refused(where.path, f"{ROOT}/{'/'.join(names[:count])} is a file, not a directory")
    if ctx.store.entries.read(ctx.scope, MEMORY, where.key) is not None or _below(ctx, where.key)[0]:
        raise errors.file_exists(where.path)


def _new_memory(where: TreePath, text: str) -> Decide:
    checked = _memory_text(text)

    def decide(before: Entry | None) -> Draft:
        if before is not None:
            raise errors.file_exists(where.path)
        return Draft(checked)

    return decide


def _if_empty(where: TreePath, before: str, text: str) -> str:
    if before:
        raise errors.file_exists(where.path)
    return text


def _changed(ctx: Context, where: TreePath, change: Change) -> Decide:
    def decide(before: Entry | None) -> Draft:
        if before is None:
            raise errors.no_file(where.path)
        text = change(before.content)
        if where.kind == MEMORY:
            extra = {name: value for name, value in before.extra.items() if name != items.FIELD}
            return Draft(_memory_text(text), before.session, before.tags, before.done, before.pinned, extra)
        checked = notes.checked(ctx, without_blank_ends(text))
        return Draft(checked, before.session, before.tags, before.done, before.pinned, before.extra)

    return decide


def _memory_text(text: str) -> str:
    advice = "Split it over several files."
    return bounded("file", without_blank_ends(text), limits.MEMORY_MAX_CHARS, advice, blank="Write what is to be kept.")


def _deletion(where: TreePath) -> Decide:
    def decide(before: Entry | None) -> Delete:
        if before is None:
            raise errors.no_file(where.path)
        return DELETE

    return decide


def _moved(old: TreePath, key: str, new: TreePath) -> list[tuple[str, str, Decide]]:
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


def _output_read_only(where: TreePath) -> LimpetError:
    return errors.file_read_only(where.path, "outputs are kept as they were. Write what matters of them to a file")
