"""A person makes tokens for a team on a computer where nothing was set up, and serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from life.kit import Computer


def token(computer: Computer, where: Path, *words: str) -> str:
    reply = json.loads(computer.limpet("token", "create", "--scope", "write", *words, "--json", where=where))
    return str(reply["token"])


def note(computer: Computer, where: Path, secret: str, *words: str) -> int:
    """The status with which a server in the folder answers a note of whoever has the token."""
    with computer.served(where, "--team", *words, token=secret) as client:
        return client.post("/api/v1/operations/add_note", json={"content": "Casts break LL(1)"}).status_code


def test_the_line_of_the_readme_lets_alice_into_the_project_it_names(computer: Computer) -> None:
    where = computer.repository("work")
    line = ("token", "create", "--name", "alice", "--scope", "write", "--project", "parser")
    explained = computer.limpet(*line, where=where)
    assert "alice may write in parser" in explained
    assert note(computer, where, explained.split()[0]) == 200
    projects = json.loads(computer.limpet("project", "list", "--json", where=where))["projects"]
    assert [project["name"] for project in projects] == ["work"], "no project was made by the way"
    assert note(computer, where, token(computer, where, "--name", "bob", "--project", "parser")) == 200
    assert computer.limpet("note", "list", where=where).count("Casts") == 0, "the notes are those of parser"


@pytest.mark.parametrize("name", ["*", "work"])
def test_a_token_for_every_project_or_that_of_the_folder_works_there(computer: Computer, name: str) -> None:
    where = computer.repository("work")
    computer.limpet("note", "add", "here before", where=where)
    secret = token(computer, where, "--name", "ci", "--project", name)
    with computer.served(where, "--team", token=secret) as client:
        headers = {"Limpet-Project": "default"}
        answer = client.post("/api/v1/operations/add_note", json={"content": "Casts break LL(1)"}, headers=headers)
        assert answer.status_code == 200, answer.text
    assert "Casts" in computer.limpet("note", "list", where=where)
    projects = json.loads(computer.limpet("project", "list", "--json", where=where))["projects"]
    assert [project["name"] for project in projects] == ["work"]


def test_a_mistyped_project_is_refused_with_the_nearest_names(computer: Computer) -> None:
    where = computer.repository("work")
    other = computer.repository("parser")
    computer.limpet("note", "add", "here before", where=other)
    for words in (("--project", "parzer"), ("--project", "parser", "--also", "wrok")):
        computer.limpet("note", "add", "here", where=where)
        line = ("token", "create", "--name", "alice", "--scope", "write", *words)
        refused = computer.refused(*line, where=where, exit_code=3)
        assert "Did you mean" in refused
    secret = token(computer, where, "--name", "alice", "--project", "parser")
    assert note(computer, where, secret, "--project", "parser") == 200
