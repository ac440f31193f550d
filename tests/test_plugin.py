"""The plugin for Claude Code is what `limpet install` writes, in the form of a plugin."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from doors.hook_kit import Place, context, started
from limpet import __version__, clients
from limpet.clients.claude_code import EVENTS
from limpet.clients.edits import InstallTarget

TOP = Path(__file__).parent.parent
PLUGIN = TOP / "plugins" / "limpet"


def loaded(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_it_was_written_from_what_is_installed() -> None:
    found = importlib.util.spec_from_file_location("make_plugin", TOP / "docs" / "make_plugin.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    for name, text in module.files().items():
        assert (TOP / name).read_text(encoding="utf-8") == text, f"{name}: run `make docs`"


def test_it_has_the_same_events_tools_and_version_as_an_installation(tmp_path: Path) -> None:
    files = clients.find("claude-code").files(InstallTarget("shared", str(tmp_path), ("limpet",)))
    events = {edit.path[-1] for edits in files.values() for edit in edits if edit.path[0] == "hooks"}  # type: ignore[union-attr]
    assert set(loaded(PLUGIN / "hooks" / "hooks.json")["hooks"]) == events == set(EVENTS)
    (server,) = (edit for edits in files.values() for edit in edits if edit.path[0] == "mcpServers")  # type: ignore[union-attr]
    assert loaded(PLUGIN / ".mcp.json")["mcpServers"]["limpet"].items() <= server.value.items()  # type: ignore[union-attr]
    assert loaded(PLUGIN / ".claude-plugin" / "plugin.json")["version"] == __version__
    (listed,) = loaded(TOP / ".claude-plugin" / "marketplace.json")["plugins"]
    assert (TOP / listed["source"]).resolve() == PLUGIN


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def ran(place: Place, event: str, payload: dict[str, Any], **env: str) -> str:
    """A hook of the plugin, run as the client runs it: by a shell."""
    (group,) = loaded(PLUGIN / "hooks" / "hooks.json")["hooks"][event]
    (hook,) = group["hooks"]
    environment = place.environment(CLAUDE_PLUGIN_ROOT=str(PLUGIN), CLAUDE_PROJECT_DIR=str(place.project)) | env
    done = subprocess.run(
        ["/bin/sh", "-c", hook["command"]],
        input=json.dumps({"cwd": str(place.project), **payload}),
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def path_with_limpet() -> str:
    import sys

    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def test_its_hooks_step_back_where_hooks_are_installed(place: Place) -> None:
    with place.open() as hold:
        hold.session("s1").notepad.write("- [ ] casts")
    event = started("claude-code", "s1", "compact")  # then the notepad is given every time
    told = json.loads(ran(place, "SessionStart", event, PATH=path_with_limpet()))
    assert "- [ ] casts" in context(told)
    for root in (place.project, place.home):
        config = root / ".claude" / "settings.json"
        config.parent.mkdir()
        line = "limpet hook --client claude-code session-start"
        config.write_text(json.dumps({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": line}]}]}}))
        assert json.loads(ran(place, "SessionStart", event, PATH=path_with_limpet())) == {}
        # The installed one answers, although the client's environment may be the same.
        assert "- [ ] casts" in context(place.hook("claude-code", "session-start", event, CLAUDE_PLUGIN_ROOT="/x"))
        config.unlink()
    assert "- [ ] casts" in ran(place, "SessionStart", event, PATH=path_with_limpet())


def test_without_the_program_one_event_says_so_and_none_fails(place: Place, tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    for event in EVENTS:
        said = ran(place, event, {"session_id": "s1", "hook_event_name": event}, PATH=str(tmp_path))
        assert ("Install it first" in said) == (event == "SessionStart")
        assert not said or json.loads(said)["systemMessage"]
