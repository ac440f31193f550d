"""Every way to get Limpet, tried from an empty home with the wheel that this checkout builds: `make test-ways`.

What cannot run here (a container, a registry) is held to its schema or to the tool that packs it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from clients.install import installed
from limpet import __version__

pytestmark = [pytest.mark.ways, pytest.mark.timeout(600)]
TOP = Path(__file__).parents[2]
MCPB = "2.1.2"
NETWORK = ("PIP_", "UV_", "NPM_CONFIG_", "SSL_", "HTTP_", "HTTPS_", "NO_PROXY", "NODE_EXTRA_CA")  # how it is reached
Run = Callable[..., str]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(TOP)]
    subprocess.run([sys.executable, *words], check=True, stdin=subprocess.DEVNULL)
    (built,) = folder.glob("limpet-*.whl")
    return built


@pytest.fixture
def run(tmp_path: Path, wheel: Path) -> Run:
    """Runs a command in an empty home, where `limpet` of this version can be had from the wheel alone."""
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    reached = {name: value for name, value in os.environ.items() if name.upper().startswith(NETWORK)}
    environment = reached | {
        "PATH": f"{home}/.local/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PIP_FIND_LINKS": str(wheel.parent),
        "UV_FIND_LINKS": str(wheel.parent),
        "UV_PYTHON": sys.executable,
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }

    def ran(*command: str, variables: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=project,
            env=environment | dict(variables or {}),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}"
        return done.stdout

    return ran


def use(run: Run, *limpet: str) -> None:
    """The first useful answer, and this very version gives it."""
    assert run(*limpet, "--version").strip().endswith(__version__)
    run(*limpet, "note", "add", "The tide table is in the blue folder.")
    assert "blue folder" in run(*limpet, "recall", "where is the tide table")


def test_pip(run: Run, tmp_path: Path, wheel: Path) -> None:
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    run(str(tmp_path / "venv/bin/pip"), "install", "--quiet", str(wheel))
    use(run, str(tmp_path / "venv/bin/limpet"))


def test_uv_tool(run: Run, tmp_path: Path) -> None:
    run(sys.executable, "-m", "uv", "tool", "install", "--quiet", f"limpet=={__version__}")
    use(run, str(tmp_path / "home/.local/bin/limpet"))
    run(sys.executable, "-m", "uv", "tool", "uninstall", "limpet")
    assert not (tmp_path / "home/.local/bin/limpet").exists()


def test_uvx(run: Run) -> None:
    use(run, sys.executable, "-m", "uv", "tool", "run", "--quiet", "--from", f"limpet=={__version__}", "limpet")


def test_pipx(run: Run, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", str(tmp_path / "pipx"))
    run(str(tmp_path / "pipx/bin/pip"), "install", "--quiet", "pipx")
    run(str(tmp_path / "pipx/bin/pipx"), "install", "--quiet", f"limpet=={__version__}")
    use(run, str(tmp_path / "home/.local/bin/limpet"))


def test_npx(run: Run, tmp_path: Path) -> None:
    """The launcher as npm would install it: packed, then installed into an empty folder."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not there")
    packed = run(npm, "pack", "--silent", str(TOP / "deploy" / "npm")).strip()
    place = tmp_path / "node"
    run(npm, "install", "--silent", "--prefix", str(place), str(tmp_path / "project" / packed))
    launcher = str(place / "node_modules" / ".bin" / "limpet")
    use(run, launcher)


def test_the_launcher_says_what_is_missing() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not there")
    nothing = {"PATH": "/nowhere"}
    script = str(TOP / "deploy" / "npm" / "limpet.js")
    done = subprocess.run([node, script, "--version"], env=nothing, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert f"pip install limpet=={__version__}" in done.stderr


def test_the_bundle_is_valid_and_can_be_packed(run: Run, tmp_path: Path) -> None:
    tool = installed("@anthropic-ai/mcpb", MCPB, "@anthropic-ai/mcpb/dist/cli/cli.js")
    node = shutil.which("node") or "node"
    run(node, str(tool), "validate", str(TOP / "deploy" / "mcpb" / "manifest.json"))
    run(node, str(tool), "pack", str(TOP / "deploy" / "mcpb"), str(tmp_path / "limpet.mcpb"))
    assert (tmp_path / "limpet.mcpb").stat().st_size > 0


def test_the_command_of_the_bundle_serves(run: Run, tmp_path: Path) -> None:
    """The line that a desktop host starts: it answers a handshake, and ends with its input."""
    config = json.loads((TOP / "deploy/mcpb/manifest.json").read_text(encoding="utf-8"))["server"]["mcp_config"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    assert config["command"] == "uvx"
    script = f"{shlex.quote(sys.executable)} -m uv tool run {shlex.join(config['args'])} <<'EOF'\n{request}\nEOF\n"
    answer = json.loads(run("/bin/sh", "-c", script).splitlines()[0])
    assert answer["result"]["serverInfo"]["name"] == "limpet"


SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "dependabot": ".github/dependabot.yml",
    "compose-spec": "deploy/docker/compose*.yaml",
}


def test_files_for_hosts_that_are_not_here_follow_their_schemas(run: Run, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", str(tmp_path / "lint"))
    run(str(tmp_path / "lint/bin/pip"), "install", "--quiet", "check-jsonschema==0.39.0")
    for schema, pattern in SCHEMAS.items():
        files = [str(path) for path in TOP.glob(pattern)]
        assert files, pattern
        run(str(tmp_path / "lint/bin/check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *files)
