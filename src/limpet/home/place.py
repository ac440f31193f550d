"""Which project a folder belongs to, by looking at the file system and nothing else. Nothing is written.

A git repository is known by its common git directory, which all its worktrees share. A `.git` file counts if the
directory it names points back: otherwise an archive could bring one that names a private repository. `git` itself is
not asked, because it runs what a repository's configuration names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from limpet.platform import sha256
from limpet.record import NamedTuple

GIT, FOLDER, PERSONAL, NAMED = "git", "folder", "personal", "named"
OTHER_VERSION_CONTROL = (".hg", ".jj", ".svn")
MARKS = (".limpet", "pyproject.toml", "package.json", "Cargo.toml", "go.mod")
POINTER_BYTES = 8 << 10  # of files that hold one path
CONFIG_BYTES = 1 << 20
NAME_CHARS = 80  # of a worktree, as it is
_OWN_PARTS = ("HEAD", "config", "index", "logs", "objects", "packed-refs", "refs", "reftable")  # of a git directory
_MARKUP = frozenset("\"'`<>[]#*|\\")


class Place(NamedTuple):
    """Where work happens."""

    root: str  # the project's folder: of this worktree, where there are several
    kind: str  # GIT, FOLDER, PERSONAL or NAMED
    key: str  # what tells the project from others: a real path, or the name of a project without a folder

    @property
    def name(self) -> str:
        """A name for people."""
        if self.kind in (PERSONAL, NAMED):
            return self.key
        folder = os.path.dirname(self.key) if self.kind == GIT and os.path.basename(self.key) == ".git" else self.key
        return os.path.basename(folder).removesuffix(".git") or "/"


def personal(root: str) -> Place:
    """For servers that were started in no project."""
    return Place(root, PERSONAL, PERSONAL)


def locate(folder: str, shared: Iterable[str]) -> Place:
    """The project of a folder. `shared` folders hold projects and are none: the home folder, those for temporary files.

    Work in exactly such a folder is a project of its own all the same.
    """
    start = os.path.realpath(folder)
    parents = _upwards(start, {os.path.realpath(path) for path in (os.sep, *shared)})
    for path in parents:
        if common := common_directory(path):
            return Place(path, GIT, common)
    for marks in (OTHER_VERSION_CONTROL, MARKS):
        for path in parents:
            if any(os.path.lexists(os.path.join(path, mark)) for mark in marks):
                return Place(path, FOLDER, path)
    return Place(start, FOLDER, start)


def worktree(place: Place) -> str:
    """The name of a linked worktree of the project; empty in its main working tree and in plain folders."""
    text = read_small(os.path.join(place.root, ".git")) if place.kind == GIT else None
    if text is None or not text.startswith("gitdir:"):
        return ""
    directory = os.path.realpath(os.path.join(place.root, text.removeprefix("gitdir:").strip()))
    if os.path.dirname(directory) != os.path.join(place.key, "worktrees"):
        return ""
    return _safe_name(os.path.basename(directory))


def _safe_name(name: str) -> str:
    """Models read it. Git makes plain names; an archive can bring any, and gets one that says nothing."""
    if len(name) <= NAME_CHARS and name.isprintable() and not _MARKUP.intersection(name):
        return name
    return f"worktree-{sha256(os.fsencode(name)).hexdigest()[:12]}"


def is_nowhere(folder: str, home: str) -> bool:
    """Whether a program that starts here was not started in a project on purpose."""
    return os.path.realpath(folder) in (os.path.abspath(os.sep), os.path.realpath(home))


def _upwards(start: str, shared: set[str]) -> list[str]:
    """The folder and those above it, up to a home folder, or one that all users can write."""
    paths = [start]
    path = os.path.dirname(start)
    while start not in shared and path not in shared and path != paths[-1] and not _open_to_all(path):
        paths.append(path)
        path = os.path.dirname(path)
    return paths


def _open_to_all(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & stat.S_IWOTH)
    except OSError:
        return True


# --- git --------------------------------------------------------------------------------------------------------------


def common_directory(folder: str) -> str | None:
    """The common git directory of the repository whose working tree is exactly this folder."""
    mark = os.path.join(folder, ".git")
    try:
        mode = os.lstat(mark).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):  # and no link: a link may lead into another repository, and so does `commondir` in here
        return mark if _is_git_directory(mark) and not os.path.lexists(os.path.join(mark, "commondir")) else None
    return _linked(folder, mark) if stat.S_ISREG(mode) else None


def _is_git_directory(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "HEAD")) and os.path.isdir(os.path.join(path, "objects"))


def is_self_contained(directory: str) -> bool:
    """Whether git, asked about this git directory, reads it and nothing else.

    Links and alternates may lead into a private repository, whose texts git would show as those of this one. Shared
    clones have them too; of those, git is not asked, and their projects are what they were.
    """
    objects = os.path.join(directory, "objects")
    alternates = os.path.join(objects, "info", "alternates")
    if os.path.lexists(alternates) and read_small(alternates) != "":
        return False
    if any(os.path.islink(os.path.join(directory, name)) for name in _OWN_PARTS):
        return False
    return not any(map(_has_links, (objects, os.path.join(objects, "pack"), os.path.join(objects, "info"))))


def _has_links(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.is_symlink() for entry in entries)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # not known


def _linked(folder: str, mark: str) -> str | None:
    """The common directory of a worktree, or the git directory of a submodule, if it points back to this folder."""
    text = read_small(mark)
    if text is None or not text.startswith("gitdir:"):
        return None
    directory = os.path.realpath(os.path.join(folder, text.removeprefix("gitdir:").strip()))
    back = read_small(os.path.join(directory, "gitdir"))
    if back is not None:
        common = os.path.dirname(os.path.dirname(directory))
        named = read_small(os.path.join(directory, "commondir")) or ""
        is_worktree = (
            os.path.basename(os.path.dirname(directory)) == "worktrees"
            and os.path.realpath(os.path.join(directory, named.strip())) == common
            and os.path.realpath(os.path.join(directory, back.strip())) == mark
        )
        return common if is_worktree and _is_git_directory(common) else None
    if os.path.lexists(os.path.join(directory, "commondir")):  # it would lead into another repository
        return None
    tree = _configured_tree(os.path.join(directory, "config"))
    if tree is not None and os.path.realpath(os.path.join(directory, tree)) == folder:
        return directory if _is_git_directory(directory) else None
    return None


def _configured_tree(config: str) -> str | None:
    """`core.worktree` of a git configuration, as git writes it into those of submodules."""
    section = ""
    for line in (read_small(config, CONFIG_BYTES) or "").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text.lower()
        elif section == "[core]" and text.lower().replace(" ", "").startswith("worktree="):
            return text.partition("=")[2].strip().strip('"')
    return None


def read_small(path: str, most: int = POINTER_BYTES) -> str | None:
    """The text of a regular file that is no link and not larger; None for everything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_size > most:
            return None
        return os.read(handle, most).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    finally:
        os.close(handle)
