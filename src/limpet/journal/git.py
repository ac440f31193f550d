"""How git is run, and what is asked of it.

A repository may come from somebody else, with its `.git/config`. No setting in it may start a program, so:

- the environment is built here. Variables of git are not passed on; in particular, with GIT_DIR git would skip its
  check of who owns the repository (safe.directory).
- settings that start programs are overridden for the call, and network protocols are switched off, because a partial
  clone fetches missing objects with whatever command the remote names.
- the subcommands read objects (`cat-file`, `rev-list`, `grep --cached`). None of them reads or writes files of the
  working tree, which clean and smudge filters would see, or prints a difference, for which text converters run.

Without git, everything works with less detail.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from limpet import settings

_SECONDS = 5.0  # a slow repository must not hold up a session
_REFLOG_BYTES = 256 << 10
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
_COMMITS = re.compile(r"commit(?: \((?:initial|amend|merge)\))?:")


def run(folder: str, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """The output of a git command; None when it fails, or there is no git or no repository."""
    import subprocess

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
    """Whether a folder or one above it has a `.git`: without one, no process is started."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return True


# --- texts ------------------------------------------------------------------------------------------------------------


def committed(root: str, file: str, revision: str = "HEAD") -> bytes | None:
    """A file as it is in a commit, by its path relative to `root`."""
    return run(root, "cat-file", "blob", f"{revision}:./{file}") if in_repository(os.path.realpath(root)) else None


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
    """Which commit is checked out, the file in it, and the newest stash; "" for what there is none of."""

    head: str = ""
    blob: str = ""
    stash: str = ""


def state_of(path: str) -> GitState:
    folder, name = os.path.split(path)
    if not in_repository(folder) or "\n" in name:
        return GitState()
    asked = "".join(f"{what}\n" for what in ("HEAD", f"HEAD:./{name}", "refs/stash"))
    listing = run(folder, "cat-file", "--batch-check", stdin=os.fsencode(asked))
    lines = listing.decode("utf-8", "replace").splitlines() if listing else []
    if len(lines) != len(GitState._fields):
        return GitState()
    return GitState(*("" if line.endswith((" missing", " ambiguous")) else line.split(" ")[0] for line in lines))


def only_committed(path: str, since: str) -> bool | None:
    """Whether HEAD has moved by commits alone since it was `since`, by the reflog; None when that is not known.

    A commit leaves the files alone; a checkout, reset, merge, pull or rebase writes them.
    """
    folder = os.path.dirname(path)
    place = run(folder, "rev-parse", "--git-path", "logs/HEAD")
    if not place:
        return None
    try:
        with open(os.path.join(folder, os.fsdecode(place.removesuffix(b"\n"))), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _REFLOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        ids, _, message = line.partition("\t")
        before, after = (*ids.split(" "), "", "")[:2]
        if after == since:
            return True
        if not _COMMITS.match(message):
            return False
        if before == since:
            return True
    return None
