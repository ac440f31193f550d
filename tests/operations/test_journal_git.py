"""The journal in a git repository: branches stay apart, and a hostile configuration starts no program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from limpet.journal import evidence, git
from limpet.journal.document import edit, entries
from limpet.journal.document.entries import Evidence, Item, Ref
from limpet.journal.document.markup import scan
from limpet.journal.document.sections import template
from limpet.journal.file import JournalFile, find, last_seen, revive, update
from limpet.journal.state import of_project

WHO = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *WHO, *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a journal that has one goal, on the branch main."""
    root = tmp_path / "repo"
    root.mkdir()
    run(root, "init", "-q")
    (root / ".gitignore").write_text(".limpet\n")
    log(root, "shared")
    commit(root)
    return root


def journal(root: Path) -> JournalFile:
    return find(str(root), "NOTES.md", of_project(str(root)))


def log(root: Path, *words: str) -> None:
    for word in words:
        update(journal(root), lambda text, word=word: edit.add_goal(text, Item(word)), template)  # type: ignore[misc]


def goals(root: Path) -> list[str]:
    return [one.entry.text for one in entries.goals(scan((root / "NOTES.md").read_text()))]


def commit(root: Path, message: str = "notes") -> None:
    run(root, "add", "--all")
    run(root, "commit", "-qm", message)


# --- branches ---------------------------------------------------------------------------------------------------------


def test_a_goal_of_another_branch_does_not_enter_this_one(root: Path) -> None:
    run(root, "checkout", "-qb", "feature")
    log(root, "of the feature")
    commit(root)
    run(root, "checkout", "-q", "main")
    log(root, "of main")
    assert goals(root) == ["shared", "of main"]
    commit(root)
    run(root, "checkout", "-q", "feature")
    log(root, "more of the feature")
    assert goals(root) == ["shared", "of the feature", "more of the feature"]


def test_an_edit_after_a_checkout_is_merged_into_the_new_branch(root: Path) -> None:
    run(root, "checkout", "-qb", "feature")
    log(root, "of the feature")
    commit(root)
    run(root, "checkout", "-q", "main")
    with open(root / "NOTES.md", "a", encoding="utf-8") as file:
        file.write("by hand\n")
    log(root, "of main")
    assert goals(root) == ["shared", "of main"]
    assert "by hand\n" in (root / "NOTES.md").read_text()


def test_a_buffer_of_another_branch_brings_what_was_typed_and_nothing_else(root: Path) -> None:
    run(root, "checkout", "-qb", "feature")
    log(root, "of the feature")
    buffer = (root / "NOTES.md").read_text()
    commit(root)
    run(root, "checkout", "-q", "main")
    log(root, "of main")
    (root / "NOTES.md").write_text(buffer + "by hand\n")
    log(root, "more of main")
    assert goals(root) == ["shared", "of main", "more of main"]
    assert "by hand\n" in (root / "NOTES.md").read_text()


def test_a_stash_takes_entries_away_and_brings_them_back(root: Path) -> None:
    log(root, "not committed")
    run(root, "stash", "-q")
    log(root, "after the stash")
    assert goals(root) == ["shared", "after the stash"]
    run(root, "checkout", "-q", "NOTES.md")
    run(root, "stash", "pop", "-q")
    log(root, "after it came back")
    assert {"shared", "not committed", "after it came back"} <= set(goals(root))


def test_a_stash_that_is_brought_back_over_newer_entries_keeps_both(root: Path) -> None:
    log(root, "not committed")
    run(root, "stash", "-q")
    with open(root / "NOTES.md", "a", encoding="utf-8") as file:
        file.write("\n## At the end\n\n- far from the goals\n")
    update(journal(root), lambda text: text)
    commit(root)
    run(root, "stash", "pop", "-q")
    log(root, "next")
    assert goals(root) == ["shared", "not committed", "next"]
    assert "- far from the goals\n" in (root / "NOTES.md").read_text()


def test_entries_that_are_not_committed_follow_a_checkout_that_keeps_them(root: Path) -> None:
    run(root, "branch", "feature")
    log(root, "not committed")
    run(root, "checkout", "-q", "feature")
    log(root, "next")
    assert goals(root) == ["shared", "not committed", "next"]


def test_a_commit_is_no_checkout(root: Path) -> None:
    """Somebody saves an old buffer and commits it: what was acknowledged comes back, as without the commit."""
    buffer = (root / "NOTES.md").read_text()
    log(root, "one", "two")
    (root / "NOTES.md").write_text(buffer + "by hand\n")
    commit(root)
    log(root, "three")
    assert sorted(goals(root)) == ["one", "shared", "three", "two"]


@pytest.mark.parametrize("reflog", ["kept", "none"])
def test_an_old_buffer_after_a_commit_drops_nothing(root: Path, reflog: str) -> None:
    buffer = (root / "NOTES.md").read_text()
    log(root, "one", "two")
    commit(root)
    if reflog == "none":
        (root / ".git" / "logs" / "HEAD").unlink()
    (root / "NOTES.md").write_text(buffer + "by hand\n")
    log(root, "three")
    assert goals(root) == ["shared", "one", "two", "three"]


def test_a_pull_a_reset_and_a_rebase_are_taken_as_they_are(root: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    run(tmp_path, "clone", "-q", str(root), str(clone))
    log(clone, "of the clone")
    run(clone, "stash", "-q")
    log(root, "of the origin")
    (root / "NOTES.md").write_text((root / "NOTES.md").read_text().replace("- [ ] shared\n", ""))
    update(journal(root), lambda text: text)
    commit(root)
    run(clone, "pull", "-q", "--ff-only")
    log(clone, "after the pull")
    assert goals(clone) == ["of the origin", "after the pull"]
    commit(clone)
    run(clone, "reset", "-q", "--hard", "HEAD~1")
    log(clone, "after the reset")
    assert goals(clone) == ["of the origin", "after the reset"]
    commit(clone)
    run(clone, "checkout", "-qb", "side", "HEAD~1")
    update(journal(clone), lambda text: edit.add_question(text, Item("aside?")))
    commit(clone)
    run(clone, "rebase", "-q", "main")
    log(clone, "after the rebase")
    assert goals(clone) == ["of the origin", "after the reset", "after the rebase"]
    assert "aside?" in (clone / "NOTES.md").read_text()


def test_a_branch_without_a_journal_starts_a_new_one(root: Path) -> None:
    run(root, "checkout", "-q", "--orphan", "empty")
    run(root, "rm", "-qrf", ".")
    run(root, "commit", "-qm", "nothing", "--allow-empty")
    assert not (root / "NOTES.md").exists()
    assert last_seen(journal(root)) == ""
    log(root, "of the empty branch")
    assert goals(root) == ["of the empty branch"]


def test_healing_brings_back_nothing_of_another_branch(root: Path) -> None:
    run(root, "checkout", "-qb", "feature")
    log(root, "of the feature")
    commit(root)
    run(root, "checkout", "-q", "main")
    (root / "NOTES.md").unlink()
    assert last_seen(journal(root)) == ""
    assert revive(journal(root), (git.committed(str(root), "NOTES.md") or b"").decode())
    log(root, "next")
    assert goals(root) == ["shared", "next"]


def test_worktrees_have_journals_of_their_own(root: Path, tmp_path: Path) -> None:
    run(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    log(tmp_path / "side", "of the side")
    log(root, "of main")
    assert goals(root) == ["shared", "of main"]
    assert goals(tmp_path / "side") == ["shared", "of the side"]


def test_line_ends_that_git_converts_are_no_change(root: Path) -> None:
    run(root, "checkout", "-qb", "feature")
    log(root, "of the feature")
    commit(root)
    run(root, "config", "core.autocrlf", "true")
    run(root, "checkout", "-q", "main")
    log(root, "of main")
    assert goals(root) == ["shared", "of main"]


# --- a repository of somebody else ------------------------------------------------------------------------------------

EVIL = "{evil}"
CONFIGS = {
    "fsmonitor": "[core]\n\tfsmonitor = {evil}\n",
    "signatures": "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {evil}\n",
    "signatures by ssh": '[log]\n\tshowSignature = true\n[gpg]\n\tformat = ssh\n[gpg "ssh"]\n\tprogram = {evil}\n',
    "hooks": "[core]\n\thooksPath = {hooks}\n",
    "pager": "[core]\n\tpager = {evil}\n[pager]\n\tgrep = {evil}\n\tcat-file = {evil}\n\trev-list = {evil}\n",
    "text converter": '[diff "x"]\n\ttextconv = {evil}\n\tcommand = {evil}\n[diff]\n\texternal = {evil}\n',
    "filter": '[filter "x"]\n\tclean = {evil}\n\tsmudge = {evil}\n\tprocess = {evil}\n\trequired = true\n',
    "aliases": "[alias]\n\tcat-file = !{evil}\n\tgrep = !{evil}\n\trev-list = !{evil}\n\trev-parse = !{evil}\n",
    "editor": "[core]\n\teditor = {evil}\n\taskPass = {evil}\n[credential]\n\thelper = {evil}\n",
    "partial clone by ssh": (
        "[core]\n\trepositoryformatversion = 1\n\tsshCommand = {evil}\n[extensions]\n\tpartialClone = far\n"
        '[remote "far"]\n\turl = ssh://nobody@127.0.0.1/x\n\tpromisor = true\n\tpartialclonefilter = blob:none\n'
    ),
    "partial clone by a helper": (
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = far\n[protocol]\n\tallow = always\n"
        '[remote "far"]\n\turl = ext::{evil}\n\tpromisor = true\n'
    ),
    "partial clone by a folder": (
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = far\n"
        '[remote "far"]\n\turl = {root}/.git\n\tuploadpack = {evil}\n\tpromisor = true\n'
    ),
    "submodules": '[submodule]\n\trecurse = true\n[submodule "sub"]\n\tactive = true\n\tupdate = !{evil}\n',
    "trailers": '[trailer "x"]\n\tcommand = {evil}\n',
    "alternates": "[core]\n\talternateRefsCommand = {evil}\n\tgitProxy = {evil}\n",
    "included": "[include]\n\tpath = {included}\n",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_no_configuration_of_a_repository_starts_a_program(root: Path, tmp_path: Path, name: str) -> None:
    evil, ran = tmp_path / "evil.sh", tmp_path / "ran"
    evil.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\n')
    evil.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "fsmonitor-watchman"):
        (hooks / hook).symlink_to(evil)
        (root / ".git" / "hooks" / hook).unlink(missing_ok=True)
        (root / ".git" / "hooks" / hook).symlink_to(evil)
    (root / ".gitattributes").write_text("* diff=x filter=x merge=x\n")
    (root / "a.py").write_text("def moved_to_another_file(): pass\n")
    (root / "gone.py").write_text("some line that is gone later\n")
    commit(root)
    # A commit with a signature, which a `git log` that shows signatures would verify.
    plain = run(root, "cat-file", "commit", "HEAD")
    head, _, body = plain.partition("\n\n")
    raw = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{body}"
    signed = subprocess.run(
        ["git", "-C", str(root), "hash-object", "-t", "commit", "-w", "--stdin"],
        input=raw,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    run(root, "update-ref", "HEAD", signed)
    ran.unlink(missing_ok=True)
    (root / "gone.py").write_text("something else\n")
    included = tmp_path / "included"
    included.write_text(CONFIGS["fsmonitor"].format(evil=evil) + CONFIGS["signatures"].format(evil=evil))
    text = CONFIGS[name].format(evil=evil, hooks=hooks, root=root, included=included)
    with open(root / ".git" / "config", "a", encoding="utf-8") as file:
        file.write(text)
    if name.startswith("partial"):  # the blobs are missing, so a reader wants to fetch them
        for blob in (git.run(str(root), "rev-parse", "HEAD:./a.py", "HEAD:./NOTES.md") or b"").decode().split():
            (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for quote in ("def moved_to_another_file(): pass", "some line that is gone later"):
        evidence.still(str(root), Evidence(quote, Ref("gone.py", 1, 1)))
    git.committed(str(root), "NOTES.md")
    log(root, "a change")
    with open(root / "NOTES.md", "a", encoding="utf-8") as file:
        file.write("by hand\n")
    log(root, "another")
    last_seen(journal(root))
    git.wrote(str(root / "NOTES.md"), git.state_of(str(root / "NOTES.md")))
    assert not ran.exists(), ran.read_text()


def test_the_plain_command_would_have_started_it(root: Path, tmp_path: Path) -> None:
    """The test above can fail: git itself, run plainly, does start the program."""
    evil, ran = tmp_path / "evil.sh", tmp_path / "ran"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\n")
    evil.chmod(0o755)
    with open(root / ".git" / "config", "a", encoding="utf-8") as file:
        file.write(CONFIGS["fsmonitor"].format(evil=evil))
    subprocess.run(["git", "-C", str(root), "status"], capture_output=True, check=False)
    assert ran.exists()


def test_a_repository_hidden_in_a_folder_is_none(root: Path) -> None:
    """Files named HEAD, objects and refs in a working tree are a repository to git, with a configuration of its own."""
    hidden = root / "docs"
    subprocess.run(["git", "init", "-q", "--bare", str(hidden)], check=True, capture_output=True)
    assert git.run(str(hidden), "rev-parse", "--git-dir") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_repository_of_another_user_is_left_alone(root: Path) -> None:
    for path in (root, root / ".git", *(root / ".git").rglob("*")):
        os.chown(path, 12_345, 12_345)
    assert git.run(str(root), "rev-parse", "HEAD") is None
    assert git.state_of(str(root / "NOTES.md")) == ("", "", "", "")


def test_variables_of_git_are_not_passed_on(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a hook of git, GIT_DIR and GIT_INDEX_FILE are set, for that repository and not for this one."""
    before = git.state_of(str(root / "NOTES.md"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    assert git.state_of(str(root / "NOTES.md")) == before
    assert before.head
    assert before.blob
