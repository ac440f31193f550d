"""How git is run, and what is asked of it.

A repository may come from a stranger, with its `.git/config`. No setting in it may start a program, so:

- the environment is built here. Variables of git are not passed on; in particular, with GIT_DIR git would skip its
  check of who owns the repository (safe.directory).
- settings that start programs are overridden for the call, and network protocols are switched off, because a partial
  clone fetches missing objects with a command that its remote names.
- the subcommands read objects (`cat-file`, `rev-list`, `grep --cached`). None of them reads or writes files of the
  working tree, which clean and smudge filters would see, or prints a difference, for which text converters run.
- git is asked about repositories that count for `home.place` too and are self-contained: a `.git`, or a link or
  alternates in it, may lead into somebody's private repository, whose texts would then appear here.

Without git, everything works with less detail.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Sequence

from limpet import settings
from limpet.home.place import common_directory, is_self_contained, read_small
from limpet.record import NamedTuple

_SECONDS = 5.0  # a slow repository must not hold up a session
_REFLOG_BYTES = 8 << 20
_MOST_STEPS = 200  # of HEAD, the newest, that are looked at
# What git needs to start, and to find the person's own settings (safe.directory is one of them).
_PASSED = ("PATH", "HOME", "XDG_CONFIG_HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR")
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",  # no protocol at all: no fetch, no ssh, no remote helper
    "GIT_NO_LAZY_FETCH": "1",  # the same for versions that know it, with less noise
    "GIT_NO_REPLACE_OBJECTS": "1",  # refs/replace would show other texts under the same name
    "GIT_OPTIONAL_LOCKS": "0",  # writes nothing
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_OVERRIDDEN = (
    "core.fsmonitor=false",  # a program that is asked which files changed
    f"core.hooksPath={os.devnull}",
    f"core.attributesFile={os.devnull}",
    "core.pager=cat",
    "core.askPass=",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "diff.external=",
    "log.showSignature=false",  # runs gpg.program
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "submodule.recurse=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",  # a folder of the working tree that looks like a repository is none
    "maintenance.auto=false",
    "gc.auto=0",
)
_COMMITS = re.compile(r"commit(?: \((?:amend|merge)\))?:")


def run(folder: str, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """The output of a git command; None when it fails, or there is no git or no repository."""
    import subprocess

    if not in_repository(folder):
        return None
    options = [word for setting in _OVERRIDDEN for word in ("-c", setting)]
    command = ["git", "--no-pager", "-C", folder, *options, *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            input=stdin,
            env=settings.environment(_PASSED) | _ENVIRONMENT,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def in_repository(folder: str) -> bool:
    """Whether a folder belongs to a repository: without one, no process is started."""
    return _git_folder(folder) is not None


# --- texts ------------------------------------------------------------------------------------------------------------


def committed(root: str, file: str, revision: str = "HEAD") -> bytes | None:
    """A file as it is in a commit, by its path relative to `root`."""
    return run(root, "cat-file", "blob", f"{revision}:./{file}")


def containing(root: str, line: str) -> list[str]:
    """Files in the index that contain a line. An untracked file, or an edit that was not added, is not seen."""
    words = ("grep", "--cached", "--no-textconv", "--no-recurse-submodules", "-l", "-z", "-F", "-I", "-e", line)
    listing = run(root, *words)
    return [os.fsdecode(name) for name in listing.split(b"\0")[:-1]] if listing else []


def last_change(root: str, path: str) -> str:
    """The last commit that changed a file, as "abbreviated-id date"; "" when there is none."""
    listing = run(root, "rev-list", "-1", "--format=%h %cs", "HEAD", "--", path)
    return listing.decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2] if listing else ""


# --- what git has of a file -------------------------------------------------------------------------------------------


class GitState(NamedTuple):
    """Which commit is checked out, the file in it, the newest stash, and how far the log of HEAD has come.

    "" for what there is none of.
    """

    head: str = ""
    blob: str = ""
    stash: str = ""
    moves: str = ""


def state_of(path: str) -> GitState:
    folder, name = os.path.split(path)
    asked = ("HEAD", f"HEAD:./{name}", "refs/stash")
    ids = _ids(folder, asked)
    return GitState(ids[0], ids[1], ids[2], _mark(_reflog(folder))) if ids else GitState()


def wrote(path: str, since: GitState) -> bool | None:
    """Whether git has written the file since then, by the log of HEAD; None when that is not known.

    A commit leaves files alone; a checkout, reset, merge, pull or rebase writes those that differ between two commits.
    """
    folder, name = os.path.split(path)
    log = _reflog(folder)
    size = int(since.moves.partition(":")[0] or 0)
    if (since.head and not since.moves) or _mark(log[:size]) != since.moves:
        return None  # it was cut, or is not kept
    steps = []
    before = since.head
    for line in log[size:].decode("utf-8", "replace").splitlines()[-_MOST_STEPS:]:
        ids, _, message = line.partition("\t")
        after = (*ids.split(" "), "", "")[1]
        if before and not _COMMITS.match(message):
            steps.append((before, after))
        before = after
    blobs = _ids(folder, [f"{commit}:./{name}" for step in steps for commit in step]) if steps else []
    return None if blobs is None else blobs[::2] != blobs[1::2]


def _ids(folder: str, objects: Sequence[str]) -> list[str] | None:
    """The ids of objects, "" for a missing one; None without an answer."""
    listing = run(folder, "cat-file", "--batch-check", stdin=os.fsencode("".join(f"{name}\n" for name in objects)))
    lines = listing.decode("utf-8", "replace").splitlines() if listing else []
    if len(lines) != len(objects):
        return None
    return [line.split(" ")[0] if line.endswith(tuple("0123456789")) else "" for line in lines]


def _reflog(folder: str) -> bytes:
    """The log of HEAD, which git appends to with every move; b"" when there is none."""
    place = _git_folder(folder)
    if place is None:
        return b""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(os.path.join(place, "logs", "HEAD"), flags)
        with open(handle, "rb") as file:
            is_usable = stat.S_ISREG(os.fstat(handle).st_mode) and os.fstat(handle).st_size <= _REFLOG_BYTES
            return file.read() if is_usable else b""
    except OSError:
        return b""


def _mark(log: bytes) -> str:
    return f"{len(log)}:{zlib.crc32(log)}" if log else ""


def _git_folder(folder: str) -> str | None:
    """The git directory of the repository that a folder is in: of this worktree, where there are several."""
    folder = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    mark = os.path.join(folder, ".git")
    common = common_directory(folder)
    if common is None or not is_self_contained(common):
        return None
    if os.path.isdir(mark):
        return mark
    return os.path.join(folder, (read_small(mark) or "").removeprefix("gitdir:").strip())
