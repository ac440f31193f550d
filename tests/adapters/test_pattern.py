"""What holds for every adapter: nothing imports it by the way, and without its extra it says what to install."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ADAPTERS = {  # the extra and the framework's packages
    "anthropic": ("anthropic", ("anthropic",)),
    "anthropic_memory": ("anthropic", ("anthropic",)),
    "claude_agent": ("claude-agent", ("claude_agent_sdk",)),
    "google_adk": ("google-adk", ("google.adk",)),
    "langchain": ("langchain", ("langchain", "langgraph")),
    "langgraph_store": ("langchain", ("langgraph",)),
    "pydantic_ai": ("pydantic-ai", ("pydantic_ai",)),
    "openai_agents": ("openai-agents", ("agents",)),
}
PACKAGES = sorted({package for _, packages in ADAPTERS.values() for package in packages})


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_every_adapter_is_listed_here() -> None:
    found = {path.stem for path in (ROOT / "src" / "limpet" / "adapters").glob("*.py")}
    assert found - {"__init__", "bridge"} == set(ADAPTERS)


def test_limpet_imports_no_framework(tmp_path: Path) -> None:
    code = (
        "import sys, limpet, limpet.adapters.bridge\n"
        "with limpet.open('x.db') as hold: hold.session('a').window.next([])\n"
        f"print([name for name in {PACKAGES} if name in sys.modules])"
    )
    assert python(code, tmp_path).stdout == "[]\n"


@pytest.mark.parametrize("name", ADAPTERS)
def test_without_its_extra_an_adapter_says_what_to_install(name: str, tmp_path: Path) -> None:
    extra, packages = ADAPTERS[name]
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({packages}))\n"  # as if they were not there
        "from limpet.errors import LimpetError\n"
        "try:\n"
        f"    import limpet.adapters.{name}\n"
        "except LimpetError as problem:\n"
        "    print(problem.code, problem.message)\n"
    )
    said = python(code, tmp_path).stdout
    assert said.startswith("not_installed the adapter for ")
    assert said.endswith(f"Run `pip install 'limpet[{extra}]'`, or `pip install '.[{extra}]'` in a checkout.\n")


def run(example: str, folder: Path) -> str:
    path = ROOT / "examples" / f"{example}.py"
    done = subprocess.run([sys.executable, path], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_loop_without_a_framework(tmp_path: Path) -> None:
    assert len((ROOT / "examples" / "plain.py").read_text(encoding="utf-8").splitlines()) <= 40
    assert "- 13:00: disk full" in run("plain", tmp_path)


@pytest.mark.parametrize("name", ["langchain_agent", "pydantic_ai_agent", "openai_agents_agent"])
def test_the_examples_do_what_they_say(name: str, tmp_path: Path) -> None:
    said = run(name, tmp_path)
    assert "Job 13 failed: the disk was full." in said
    assert "I go on with Tuesday." in said
    assert "['Job 13 failed on Monday: disk full']" in said
    assert ("reads Monday's handoff in its prompt\nThe answer on tuesday" in said) or name == "langchain_agent"
    assert all(" " in line for line in said.splitlines()), "in words"


def test_every_example_is_run() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == {
        *("plain", "langchain_agent", "pydantic_ai_agent", "openai_agents_agent"),
        *("anthropic_agent", "claude_agent", "google_adk_agent"),  # by test_more_examples.py
    }


OUTLINE = ["Install", "Three lines", "What you get", "How it maps", "Limits"]


def test_every_framework_has_a_page_of_the_same_outline() -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "adapters").glob("*.md")}
    assert set(pages) == {extra for extra, _ in ADAPTERS.values()}
    for name, page in pages.items():
        assert re.findall(r"^## (.+)$", page, re.MULTILINE) == OUTLINE, name
        assert f"pip install 'limpet[{name}]'" in page
        for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            compile(block, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
