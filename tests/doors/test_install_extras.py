"""Guidance and a skill: put into people's files only when asked, marked, and taken out again byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from doors.test_install import files, in_project, run
from limpet import clients

SCOPES = ["--user", "--project-only"]
BEFORE = ["absent", "", "# My rules\n\nBe brief.\n", "# No line end", "# Windows\r\nline ends\r\n"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def place(client: str, scope: str, project: Path, home: Path) -> Path | None:
    parts = clients.find(client).user_guidance if scope == "--user" else clients.find(client).project_guidance
    return (home if scope == "--user" else project).joinpath(*parts) if parts else None


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("client", clients.names())
def test_they_come_when_asked_for_and_go_with_the_rest(
    client: str, scope: str, before: str, project: Path, home: Path
) -> None:
    path = place(client, scope, project, home)
    if path is None:
        refused = in_project(project, "install", client, scope, "--guidance")
        assert refused.code != 0
        assert "reads no guidance" in refused.err or "has no configuration in projects" in refused.err
        assert files(home) == {}
        return
    if before != "absent":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(before.encode())
    was = files(project), files(home)
    shown = in_project(project, "install", client, scope, "--guidance", "--skill", "--dry-run").out
    assert "+## Working memory (Limpet)" in shown
    assert "+name: limpet" in shown
    assert (files(project), files(home)) == was

    run(project, "install", client, scope, "--guidance", "--skill")
    text = path.read_bytes().decode()
    assert text.startswith("" if before == "absent" else before)
    assert text.count(">>> limpet") == text.count("<<< limpet") == 1
    there = files(project), files(home)
    skills = [name for name in (*there[0], *there[1]) if name.endswith("skills/limpet/SKILL.md")]
    assert len(skills) == 1
    run(project, "install", client, scope, "--guidance", "--skill")
    run(project, "install", client, scope)
    assert (files(project), files(home)) == there
    row = next(row for row in run(project, "status")["clients"] if row["client"] == client)
    assert row["guidance"] == row["skill"] == ["user" if scope == "--user" else "project"]

    run(project, "uninstall", client, scope)
    assert (files(project), files(home)) == was


def test_they_do_not_come_unasked(project: Path, home: Path) -> None:
    run(project, "install", "claude-code")
    assert not (project / "CLAUDE.md").exists()
    assert not list(project.rglob("SKILL.md"))


def test_what_people_write_around_the_guidance_stays(project: Path) -> None:
    path = project / "AGENTS.md"
    path.write_text("# Mine\n")
    run(project, "install", "codex", "--guidance")
    path.write_text(path.read_text().replace("# Mine", "# Ours") + "\nMore.\n")
    run(project, "uninstall", "codex")
    assert path.read_text() == "# Ours\n\nMore.\n"


def test_an_older_guidance_is_replaced_where_it_stands(project: Path) -> None:
    path = project / "CLAUDE.md"
    path.write_text("# Mine\n")
    run(project, "install", "claude-code", "--guidance")
    text = path.read_text()
    path.write_text(text.replace("Your conversation", "An older sentence"))
    run(project, "install", "claude-code", "--guidance")
    assert path.read_text() == text
    run(project, "uninstall", "claude-code")
    assert path.read_text() == "# Mine\n"


def test_a_skill_of_somebody_else_is_left_alone(project: Path) -> None:
    path = project / ".claude" / "skills" / "limpet" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: climbing\n---\nHold fast.\n")
    run(project, "install", "claude-code")
    run(project, "uninstall", "claude-code")
    assert path.read_text() == "---\nname: climbing\n---\nHold fast.\n"
    run(project, "install", "claude-code", "--skill")
    run(project, "uninstall", "claude-code")
    assert path.read_text() == "---\nname: climbing\n---\nHold fast.\n"
