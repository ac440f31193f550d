"""The layers of knowledge above a session: the system prompt, skills and state."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from limpet import errors, limits
from limpet.api import Limpet, Session
from limpet.text import tokens
from operations.conftest import Opener
from person import project_folder


@pytest.fixture
def work(hold: Limpet) -> Session:
    return hold.session()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(project_folder(tmp_path).make()) / "skills"


def skill(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(text)


def good(name: str, description: str = "What it does.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\nBody of {name}.\n"


# --- the system prompt ------------------------------------------------------------------------------------------------


def test_the_prompt_is_edited_as_the_notepad_is(hold: Limpet, work: Session) -> None:
    assert hold.call("read_system_prompt", {}) == {"content": "", "tokens": 0, "version": 0}
    assert hold.call("edit_system_prompt", {"operation": "append", "content": "Be brief.\n"})["version"] == 1
    work.prompt.edit("prepend", content="# Rules\n")
    work.prompt.edit("find_replace", find="brief", replace=r"$& \1 brief")
    work.prompt.edit("delete", content="# Rules\n")
    assert work.prompt.read() == "Be $& \\1 brief.\n"
    with pytest.raises(errors.NotFound, match="the system prompt does not contain 'verbose'"):
        work.prompt.edit("find_replace", find="verbose", replace="x")
    with pytest.raises(errors.BadInput, match="edit_system_prompt with operation append needs content"):
        work.prompt.edit("append")
    with pytest.raises(errors.Conflict, match="the system prompt is at version 4, not 1"):
        work.prompt.write("x", expected_version=1)
    assert work.prompt.read() == "Be $& \\1 brief.\n"
    assert [version.operation for version in work.prompt.history()] == ["edit_system_prompt"] * 4
    assert "-Be brief." in work.prompt.diff(1)
    work.prompt.restore(1)
    assert work.prompt.read() == "Be brief.\n"
    hold.undo()
    assert work.prompt.read() == "Be $& \\1 brief.\n"


def test_one_prompt_serves_every_session_of_a_project(hold: Limpet, opened: Opener) -> None:
    hold.session("a").prompt.write("Rules.")
    assert hold.session("b").prompt.read() == "Rules."
    assert opened().session().prompt.read() == "Rules."
    assert opened(project="other").session().prompt.read() == ""
    assert hold.history(kind="system_prompt")[0].session == "a"
    assert hold.session("a").notepad.read() == ""


def test_the_prompt_has_a_limit_and_a_budget(work: Session) -> None:
    warning = work.prompt.write("word " * 9_000).warning
    assert warning is not None
    assert warning.startswith("The system prompt has about")
    with pytest.raises(errors.BadInput, match="system prompt has 100,001 characters"):
        work.prompt.write("x" * 100_001)
    assert work.prompt.read() == "word " * 9_000


# --- skills -----------------------------------------------------------------------------------------------------------


def test_without_skills_there_is_nothing_to_show(work: Session) -> None:
    assert work.skills.summary().text == ""
    assert work.skills.list() == ((), ())
    with pytest.raises(errors.NotFound, match="There are none yet"):
        work.skills.read("deploy")


def test_a_section_of_the_notepad_becomes_a_skill(work: Session, folder: Path, opened: Opener) -> None:
    work.notepad.write("# Plan\n- x\n\n## Deploy\n1. tag\n2. push\n\n# Else\n")
    done = work.skills.promote("deploy", "How to deploy: tag\nand push.", "## Deploy")
    assert (done.name, done.folder) == ("deploy", "skills/deploy")
    assert work.notepad.read().startswith("# Plan\n- x\n\n## Deploy\n")
    later = opened("later").session()
    assert later.skills.summary().text == (
        "## Skills\nRead one in full with read_skill(name) before doing what it is for.\n"
        "- deploy: How to deploy: tag and push."
    )
    assert later.skills.read("deploy").content == "## Deploy\n1. tag\n2. push"
    assert sorted(path.name for path in folder.iterdir()) == ["deploy"]
    assert sorted(path.name for path in (folder / "deploy").iterdir()) == ["SKILL.md"]


def test_a_skill_is_replaced_only_on_request_and_what_it_said_stays(work: Session, folder: Path) -> None:
    work.notepad.write("# A\none\n")
    work.skills.promote("deploy", "First.", "A")
    before = (folder / "deploy" / "SKILL.md").read_text()
    (folder / "deploy" / "run.sh").write_text("true\n")
    work.notepad.write("# A\ntwo\n")
    with pytest.raises(errors.Conflict, match="there is a skill 'deploy' already"):
        work.skills.promote("deploy", "Second.", "A")
    assert (folder / "deploy" / "SKILL.md").read_text() == before
    work.skills.promote("deploy", "Second.", "A", replace=True)
    body = work.skills.read("deploy")
    assert (body.content, body.skill.description, body.skill.files) == ("# A\ntwo", "Second.", ("run.sh",))
    assert (folder / "deploy" / "SKILL.previous.md").read_text() == before
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "A", "a--b", "-a", "a-", "a b", "a.b", "é", ".x", "x" * 65])
def test_names_are_safe_as_paths(work: Session, folder: Path, name: str) -> None:
    work.notepad.write("# A\none\n")
    with pytest.raises(errors.BadInput, match="small letters, digits and single hyphens"):
        work.skills.promote(name, "D.", "A")
    assert not folder.exists()


def test_a_section_must_be_there_once(work: Session, folder: Path) -> None:
    work.notepad.write("# A\n\n# B\n\n# B\n")
    with pytest.raises(errors.NotFound, match="Its sections: 'A', 'B', 'B'"):
        work.skills.promote("deploy", "D.", "C")
    with pytest.raises(errors.BadInput, match="the notepad has 2 sections of that name"):
        work.skills.promote("deploy", "D.", "B")
    with pytest.raises(errors.BadInput, match="description is empty"):
        work.skills.promote("deploy", " \n", "A")
    with pytest.raises(errors.BadInput, match="the limit is 1,024"):
        work.skills.promote("deploy", "x" * 1_025, "A")
    assert not folder.exists()


def test_bad_skills_are_reported_beside_the_good_ones(work: Session, folder: Path, home: Path) -> None:
    skill(folder, "good", good("good"))
    skill(folder, "twin", good("good"))
    skill(folder, "no-front", "# Deploy\n")
    skill(folder, "large", good("large") + "x" * limits.SKILL_MAX_BYTES)
    skill(folder, "long", good("long", "x" * 1_025))
    (folder / "empty").mkdir()
    (folder / "binary").mkdir()
    (folder / "binary" / "SKILL.md").write_bytes(b"---\xff")
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe" / "SKILL.md")
    (home / "secret").write_text(good("secret"))
    (folder / "linked").mkdir()
    (folder / "linked" / "SKILL.md").symlink_to(home / "secret")
    (folder / "elsewhere").symlink_to(home)
    (folder / "file.md").write_text("no folder\n")
    (folder / ".new-abc").mkdir()
    found = work.skills.list()
    assert [item.name for item in found.skills] == ["good"]
    assert {problem.folder.removeprefix("skills/"): problem.why for problem in found.problems} == {
        "twin": "skills/good has the same name and comes first",
        "no-front": "it does not begin with a line ---, then name and description",
        "large": "its SKILL.md has more than 262,144 bytes",
        "long": "its description has more than 1,024 characters",
        "empty": "it has no SKILL.md",
        "binary": "its SKILL.md is not UTF-8",
        "pipe": "its SKILL.md is not an ordinary file",
        "linked": "its SKILL.md is a link, and links are not followed",
        "elsewhere": "it is a link, and links are not followed; copy it or name its directory instead",
    }
    assert "good: What it does." in work.skills.summary().text


def test_the_summary_keeps_its_budget_and_names_the_rest(work: Session, folder: Path) -> None:
    for number in range(40):
        skill(folder, f"skill-{number:02}", good(f"skill-{number:02}", f"Use it for case {number}. " * 8))
    whole = work.skills.summary(100_000)
    assert whole.left_out == ()
    assert whole.text.count("\n- skill-") == 40
    for budget in (150, 300, 1_000):
        part = work.skills.summary(budget)
        assert part.tokens == tokens.count(part.text) <= budget
        assert f"Not shown ({len(part.left_out)}): " in part.text
        assert part.text.count("\n- skill-") + len(part.left_out) == 40
        assert part == work.skills.summary(budget)


def test_a_long_body_is_kept_as_an_output(work: Session, folder: Path) -> None:
    body = "".join(f"step {number} of many\n" for number in range(3_000))
    skill(folder, "long", good("long") + body)
    read = work.skills.read("long")
    assert read.content.startswith("📁 Output cached: ")
    assert read.tokens > limits.SKILL_BODY_TOKENS
    assert work.outputs.read_content(read.content.split()[3]).endswith("step 2999 of many")


def test_of_many_who_promote_one_name_one_wins(opened: Opener, folder: Path) -> None:
    hold = opened()
    results: list[str] = []

    def promote(number: int) -> None:
        work = hold.session(f"s{number}")
        work.notepad.write(f"# A\nby {number}\n")
        try:
            results.append(work.skills.promote("deploy", f"By {number}.", "A").name)
        except errors.Conflict:
            results.append("")

    threads = [threading.Thread(target=promote, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["", "", "", "", "", "deploy"]
    found = hold.session().skills.list()
    assert len(found.skills) == 1
    assert found.problems == ()
    assert [path.name for path in folder.iterdir()] == ["deploy"]


def test_a_directory_that_cannot_be_written_is_said(work: Session, folder: Path) -> None:
    folder.write_text("a file where the directory should be\n")
    work.notepad.write("# A\n")
    with pytest.raises(errors.StoreReadOnly, match="the skill 'deploy' could not be written"):
        work.skills.promote("deploy", "D.", "A")


def test_without_a_directory_nothing_is_promoted(hold: Limpet) -> None:
    bare = Limpet(hold.store, hold.scope, session="one")
    bare.session().notepad.write("# A\n")
    assert bare.session().skills.summary().text == ""
    with pytest.raises(errors.BadInput, match="no directory for skills"):
        bare.session().skills.promote("deploy", "D.", "A")


# --- state ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, False, "", [], {}, 1.5, "é\u0000", {"a": [1, None, {"b": "c"}]}, 2**60])
def test_values_come_back_as_they_went(work: Session, opened: Opener, value: object) -> None:
    work.state.set("k", value)
    assert opened("later").session("later").state.get("k") == value


def test_state_is_the_projects_and_has_a_history(hold: Limpet, work: Session, opened: Opener) -> None:
    assert work.state.set("build.number", 7) == 1
    assert work.state.set("build.number", 7) == 1
    assert hold.session("other").state.set("build.number", 8) == 2
    work.state.set("owner", "Ada")
    assert work.state.keys() == ("build.number", "owner")
    assert work.state.keys("build.") == ("build.number",)
    assert opened(project="else").session().state.keys() == ()
    work.state.delete("build.number")
    with pytest.raises(errors.NotFound, match=r"there is no state 'build\.number'"):
        work.state.get("build.number")
    with pytest.raises(errors.NotFound):
        work.state.delete("build.number")
    hold.undo()
    assert work.state.get("build.number") == 8
    assert [event.operation for event in hold.history(kind="state")][-1] == "agent_state"


def test_a_value_is_set_only_if_it_is_the_one_that_was_seen(work: Session) -> None:
    assert work.state.set("k", 1, expected_version=0) == 1
    with pytest.raises(errors.Conflict, match="the state is at version 1, not 0"):
        work.state.set("k", 2, expected_version=0)
    assert work.state.get("k") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"action": "set", "key": "k"}, "needs value"),
        ({"action": "set", "value": 1}, "needs key"),
        ({"action": "get"}, "needs key"),
        ({"action": "get", "key": "k", "value": 1}, "does not use value"),
        ({"action": "keys", "key": "k"}, "does not use key"),
        ({"action": "delete", "key": "k", "expected_version": 1}, "does not use expected_version"),
        ({"action": "push", "key": "k"}, "must be one of get, set, delete, keys"),
        ({"action": "set", "key": "a\nb", "value": 1}, "one line of visible characters"),
        ({"action": "set", "key": "k", "value": "x" * 100_000}, "the limit is 100,000"),
        ({"action": "set", "key": "k", "value": float("nan")}, "cannot be written as JSON"),
        ({"action": "set", "key": "k", "value": {1, 2}}, "cannot be written as JSON"),
        ({"action": "set", "key": "k", "value": ["\ud800"]}, "cannot be stored"),
    ],
)
def test_mistakes_change_nothing(hold: Limpet, arguments: dict[str, object], says: str) -> None:
    hold.session().state.set("k", "as it was")
    with pytest.raises(errors.BadInput, match=says):
        hold.call("agent_state", arguments)
    assert hold.session().state.get("k") == "as it was"
    assert hold.session().state.keys() == ("k",)


def test_an_export_carries_prompt_and_state(hold: Limpet, opened: Opener) -> None:
    hold.session().prompt.write("Rules.")
    hold.session().state.set("k", [1])
    other = opened(project="copy")
    other.import_lines(list(hold.export_lines()))
    assert other.session().prompt.read() == "Rules."
    assert other.session().state.get("k") == [1]
