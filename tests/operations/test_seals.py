"""Seals: a tool of another server that changes is noticed, and stays noticed until a person approves it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet import errors
from limpet.api import Limpet
from limpet.upkeep.tool_pins import ToolPin, fingerprint, server_name

READ: dict[str, Any] = {
    "name": "read",
    "title": "Read",
    "description": "Reads a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string", "enum": ["a"], "default": "a"}}},
    "annotations": {"readOnlyHint": True},
}
SEALED = (ToolPin("read", "sealed"),)


def changed(**parts: Any) -> dict[str, dict[str, Any]]:
    return {"read": {**READ, **parts}}


def test_a_server_is_sealed_when_it_is_first_seen(hold: Limpet) -> None:
    assert hold.see_tools("files", {"read": READ}) == SEALED
    assert hold.see_tools("files", {"read": dict(reversed(READ.items()))}) == SEALED
    assert hold.see_tools("files", changed(description="Reads and sends a file.")) == (
        ToolPin("read", "changed", ("description",)),
    )
    assert hold.see_tools("other", changed(description="Reads and sends a file.")) == SEALED
    assert hold.see_tools("files", {"read": READ}) == SEALED
    assert len(hold.history(kind="seals", key="files")) == 3  # what was seen already writes nothing


@pytest.mark.parametrize(
    ("part", "value", "name"),
    [
        ("title", "Read!", "title"),
        ("annotations", {"readOnlyHint": False}, "annotations"),
        ("inputSchema", {"type": "object", "properties": {"path": {"enum": ["a"], "default": "b"}}}, "inputSchema"),
        ("outputSchema", {}, "outputSchema"),
        ("_meta", {"x": 1}, "other"),
        ("icons", [], "other"),
    ],
)
def test_every_part_counts(hold: Limpet, part: str, value: object, name: str) -> None:
    hold.see_tools("files", {"read": READ})
    assert hold.see_tools("files", changed(**{part: value})) == (ToolPin("read", "changed", (name,)),)


def test_a_new_tool_is_new_until_it_is_approved(hold: Limpet) -> None:
    hold.see_tools("files", {"read": READ})
    more = {"read": {**READ, "title": "x"}, "write": {"name": "write"}}
    assert hold.see_tools("files", more) == (ToolPin("read", "changed", ("title",)), ToolPin("write", "new"))
    assert hold.call("approve_seals", {"server": "files", "tool": "write"})["approved"] == ["write"]
    assert hold.see_tools("files", more)[1] == ToolPin("write", "sealed")
    assert hold.call("approve_seals", {"server": "file"}) == {"server": "files", "approved": ["read"]}
    assert {seal.state for seal in hold.see_tools("files", more)} == {"sealed"}
    assert hold.call("approve_seals", {"server": "files"})["approved"] == []
    assert hold.see_tools("files", {"read": READ}) == (ToolPin("read", "changed", ("title",)),)


def test_a_list_that_is_not_complete_seals_nothing(hold: Limpet) -> None:
    assert hold.see_tools("files", {"read": READ}, complete=False) == SEALED
    assert hold.call("list_seals", {})["servers"] == []
    assert hold.see_tools("files", {"read": READ, "b": {"name": "b"}}) == (*SEALED, ToolPin("b", "sealed"))
    assert hold.see_tools("files", changed(title="x"), complete=False)[0].state == "changed"


def test_lists_and_mistakes(hold: Limpet) -> None:
    hold.see_tools("files", {"read": READ})
    hold.see_tools("file server", changed(title="x"))
    hold.see_tools("files", changed(title="x"))
    listed = {one["server"]: one["tools"] for one in hold.call("list_seals", {})["servers"]}
    assert listed == {
        "files": [{"tool": "read", "state": "changed", "parts": ["title"]}],
        "file server": [{"tool": "read", "state": "sealed"}],
    }
    assert len(hold.call("list_seals", {"server": "server"})["servers"]) == 1
    for server in ("nothing", "file"):
        with pytest.raises(errors.NotFound, match="Servers whose tools are sealed: "):
            hold.call("approve_seals", {"server": server})
    with pytest.raises(errors.NotFound, match="there is no tool 'write'"):
        hold.call("approve_seals", {"server": "files", "tool": "write"})


def test_what_is_sealed_in_passing_is_not_the_last_change(hold: Limpet) -> None:
    hold.session().notes.add("mine")
    hold.see_tools("files", {"read": READ})
    assert hold.undo().kind == "note"
    hold.see_tools("files", changed(title="x"))
    hold.call("approve_seals", {"server": "files"})
    assert hold.undo().operation == "approve_seals"
    assert hold.see_tools("files", changed(title="x"))[0].state == "changed"


def test_a_command_line_makes_a_name_without_secrets() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    name = server_name(f"npx server --token {secret}\n--more")
    assert secret not in name
    assert "\n" not in name
    assert server_name(name) == name
    long = server_name("x" * 1_000)
    assert len(long) <= 200
    assert long != server_name("x" * 1_001)
    assert server_name(long) == long


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.text() | st.integers(), st.lists), max_size=5))
def test_fingerprints_tell_definitions_apart(definition: dict[str, Any]) -> None:
    assert fingerprint(definition) == fingerprint(dict(reversed(definition.items())))
    assert fingerprint(definition)["sha256"] != fingerprint({**definition, "description": "\0 another"})["sha256"]
