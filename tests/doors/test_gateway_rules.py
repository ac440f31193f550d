"""How many servers look like one: names, lists put together, and the file that names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet import errors
from limpet.doors.proxy import gateway_rules, gateway_servers
from limpet.doors.proxy.gateway_servers import Address, Command

NAMES = st.from_regex(gateway_servers.NAME, fullmatch=True)
OWN = st.from_regex(r"[A-Za-z0-9_.-]{1,60}", fullmatch=True)


@given(NAMES, OWN)
def test_a_name_tells_its_server(server: str, own: str) -> None:
    assert gateway_rules.parted(gateway_rules.joined(server, own)) == (server, own)


@given(st.dictionaries(NAMES, st.lists(OWN | st.text(), max_size=5), max_size=4))
def test_every_item_is_listed_once_or_refused(servers: dict[str, list[str]]) -> None:
    lists: dict[str, Any] = {server: [{"name": own, "x": 1} for own in owns] for server, owns in servers.items()}
    found = gateway_rules.merged(gateway_rules.TOOLS, lists)
    names = [item["name"] for item in found.items]
    assert len(names) == len(set(names))
    assert len(names) + len(found.refused) == sum(map(len, servers.values()))
    for name in names:
        server, own = gateway_rules.parted(str(name))
        assert found.owners[str(name)] == server
        assert own in servers[server]
        assert gateway_rules.LEGAL.fullmatch(str(name))


def test_addresses_stay_and_belong_to_the_first() -> None:
    found = gateway_rules.merged(gateway_rules.RESOURCES, {"a": [{"uri": "x:1"}], "b": [{"uri": "x:1"}, {"n": 5}]})
    assert found.items == [{"uri": "x:1"}]
    assert [server for server, _ in found.refused] == ["b", "b"]


@pytest.mark.parametrize(
    ("uri", "server"), [("x:1", "a"), ("f:///a/b", "c"), ("f:///z", "b"), ("g:1", None), ("x:2", None)]
)
def test_whose_address(uri: str, server: str | None) -> None:
    assert gateway_rules.owner_of(uri, {"x:1": "a"}, {"f:///{p}": "b", "f:///a/{p}": "c"}) == server


@given(st.recursive(st.integers() | st.text(), lambda inner: st.dictionaries(st.text("ab"), inner), max_leaves=6))
def test_only_the_places_named_change(value: Any) -> None:
    text = json.dumps({"id": 1, "params": {"name": "x", "v": value, "_meta": {"t": 1}}}, indent=1)
    new = gateway_rules.replaced(text, [(("id",), "é"), (("params", "_meta", "t"), 5), (("params", "no"), 1)])
    assert json.loads(new) == {"id": "é", "params": {"name": "x", "v": value, "_meta": {"t": 5}}}
    assert gateway_rules.replaced(text, []) == text


# --- the file ---------------------------------------------------------------------------------------------------------


def written(folder: Path, text: str, name: str = "servers.json") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_both_forms_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", "k")
    monkeypatch.setenv("UNRELATED", "u")
    servers = {
        "files": {
            "command": "npx",
            "args": ["-y", "x"],
            "env": {"A": "${THEIR_KEY}"},
            "cwd": "/usr",
            "alwaysAllow": [],
        },
        "web-1": {"type": "http", "url": "https://a.test/mcp", "headers": {"Authorization": "Bearer ${THEIR_KEY}"}},
        "off": {"command": "x", "disabled": True},
    }
    toml = """
    [mcpServers.files]
    command = "npx"
    args = ["-y", "x"]
    cwd = "/usr"
    env = {A = "${THEIR_KEY}"}
    [mcpServers.web-1]
    url = "https://a.test/mcp"
    headers = {Authorization = "Bearer ${THEIR_KEY}"}
    """
    files, web = gateway_servers.load(written(tmp_path, json.dumps({"mcpServers": servers})))
    assert isinstance(files, Command)
    assert isinstance(web, Address)
    assert (files.argv, files.folder, files.env["A"]) == (("npx", "-y", "x"), "/usr", "k")
    assert "UNRELATED" not in files.env
    assert web.headers == {"Authorization": "Bearer k"}
    assert gateway_servers.load(written(tmp_path, toml, "servers.toml")) == (files, web)


@pytest.mark.parametrize(
    ("servers", "word"),
    [
        ({}, "mcpServers"),
        ({"a__b": {"command": "x"}}, "a__b"),
        ({"a_": {"command": "x"}}, "letters"),
        ({"ä": {"command": "x"}}, "letters"),
        ({"a" * 41: {"command": "x"}}, "40"),
        ({"a": 5}, "command or a url"),
        ({"a": {}}, "command or a url"),
        ({"a": {"command": "x", "url": "http://a"}}, "either"),
        ({"a": {"command": "x", "args": "y"}}, "list of texts"),
        ({"a": {"command": "x", "args": [1]}}, "text"),
        ({"a": {"command": "x", "env": ["A=b"]}}, "table"),
        ({"a": {"command": "x", "env": {"A": "${NO_SUCH_VARIABLE_HERE}"}}}, "NO_SUCH_VARIABLE_HERE"),
        ({"a": {"command": "x", "env": {"A": "${LIMPET_TOKEN}"}}}, "no other server"),
        ({"a": {"url": "ftp://x"}}, "http://"),
        ({"a": {"url": "http://x", "headers": {"Host": "y"}}}, "belongs to the protocol"),
    ],
)
def test_entries_that_cannot_be_right(servers: Any, word: str, tmp_path: Path) -> None:
    with pytest.raises(errors.BadInput, match=word):
        gateway_servers.load(written(tmp_path, json.dumps({"mcpServers": servers})))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "\udcff"]
)
def test_files_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(errors.BadInput, match=r"servers\.json"):
        gateway_servers.load(str(path))
    with pytest.raises(errors.BadInput, match="No such file"):
        gateway_servers.load(str(tmp_path / "nothing.json"))


def test_a_file_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"a": {"command": "x"}}}')
    Path(path).chmod(0o666)
    with pytest.raises(errors.BadInput, match="only you"):
        gateway_servers.load(path)
