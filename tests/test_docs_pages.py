"""The documentation as pages: all are listed, what is generated is up to date, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import make_commands, make_python, make_site
from limpet.doors.dashboard import documentation

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FILES = ["README.md", *sorted(page.relative_to(ROOT).as_posix() for page in DOCS.rglob("*.md"))]


def links(text: str) -> list[str]:
    """Outside of code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [match[3] for match in make_site.LINK.finditer(prose) if "://" not in match[3]]


def headings(path: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = set(re.findall(r'<a id="([\w-]+)">', text))
    return named | {documentation.anchor(line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_every_page_is_listed_once_and_exists() -> None:
    listed = [name for names in make_site.pages().values() for name in names]
    there = {page.relative_to(DOCS).as_posix().removesuffix(".md") for page in DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(there), "docs/pages.toml lists the pages"
    assert documentation.manuals().keys() == there


@pytest.mark.parametrize(
    ("file", "made"),
    [("commands.md", make_commands.page), ("python.md", make_python.page), ("llms.txt", make_site.llms)],
)
def test_what_is_generated_is_up_to_date(file: str, made: object) -> None:
    assert callable(made)
    assert (DOCS / file).read_text(encoding="utf-8") == made(), f"docs/{file} is out of date: run `make docs`"


@pytest.mark.parametrize("name", FILES)
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    for link in links(page.read_text(encoding="utf-8")):
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name} links to {link}"
        if heading and target.suffix == ".md":
            assert heading in headings(target), f"{name} links to {link}, and there is no such heading"


def test_no_command_speaks_of_tools() -> None:
    """At a terminal people type commands; the name of a tool tells them nothing."""
    said = re.sub(r"```.*?```|`[^`]*`", "", make_commands.page(), flags=re.DOTALL)
    assert set(re.findall(r"\b[a-z]+_[a-z_]+\b", said)) <= {"system_prompt", "server__tool", "pass_env"}


def test_the_site_leads_nowhere_outside_of_itself(tmp_path: Path) -> None:
    make_site.site(tmp_path)
    pages = sorted((tmp_path / "docs").rglob("*.md"))
    assert len(pages) == len(FILES)
    for page in pages:
        for link in links(page.read_text(encoding="utf-8")):
            path = link.partition("#")[0]
            assert not path or (page.parent / path).is_file(), f"{page.relative_to(tmp_path)} links to {link}"


def test_a_page_of_the_dashboard_has_links_to_its_siblings_and_pictures() -> None:
    assert 'href="/p/x/docs?page=memory#corrections"' in documentation.drawn("faq", "/p/x").markup
    assert 'href="/docs?page=recall"' in documentation.drawn("architecture/window", "").markup
    assert 'src="/static/growth-sqlite.svg"' in documentation.drawn("scale", "").markup
    assert "&lt;a id=" not in documentation.drawn("claims", "").markup
    assert documentation.picture("compaction.svg")
    assert documentation.picture("../pages.toml") is None
    assert documentation.picture("nothing.svg") is None
