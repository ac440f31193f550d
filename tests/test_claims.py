"""What the pages claim is held by something that exists: tests, goals, seeded bugs, and headings that links lead to."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from life.kinds import KINDS
from torture.goals import GOALS
from torture.seeded import BUGS

ROOT = Path(__file__).parent.parent
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@cache
def anchors(path: Path) -> frozenset[str]:
    """What a link into this page can name: its headings as GitHub writes them, and anchors set by hand."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = (re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()) for line in re.findall(r"^#+ .*", text, re.M))
    return frozenset([*(heading.replace(" ", "-") for heading in headings), *re.findall(r'<a id="([^"]+)">', text)])


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_page_and_a_heading_that_are_there(page: str) -> None:
    problems = []
    for target in LINK.findall(FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            problems.append(target)
    assert problems == []


@cache
def known_tests() -> frozenset[str]:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(name for text in texts for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE))


def rows(page: str, heading: str) -> list[tuple[str, str]]:
    """The first table after a heading of a page, without its head."""
    part = (ROOT / page).read_text(encoding="utf-8").partition(heading)[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]
    return [(first, second) for first, second in lines]


def proofs(text: str) -> int:
    """How many tests, goals, kinds and bugs a text names. All of them must exist."""
    named = {
        "test": (set(re.findall(r"`(test_\w+)`", text)), known_tests()),
        "goal": (set(re.findall(r"`([\w-]+)`", " ".join(re.findall(r"goals? ([^;]+)", text)))), set(GOALS)),
        "kind": (set(re.findall(r"`(\w+)`", " ".join(re.findall(r"kinds? ([^;]+)", text)))), set(KINDS)),
        "bug": ({bug.strip() for bug in re.findall(r"seeded: ([^;|]+)", text)}, {bug.name for bug in BUGS}),
    }
    for what, (names, there) in named.items():
        assert names <= there, f"there is no {what} called {names - there}"
    return sum(len(names) for names, _ in named.values())


@pytest.mark.parametrize(("fault", "guard"), rows("docs/reliability.md", "## What was wrong in 0.1.0"))
def test_every_fault_of_the_first_release_has_a_guard_that_exists(fault: str, guard: str) -> None:
    assert proofs(guard), f"nothing guards against: {fault}"


@pytest.mark.parametrize(("claim", "shown"), rows("docs/claims.md", "# Claims"))
def test_every_claim_of_the_readme_has_something_that_shows_it(claim: str, shown: str) -> None:
    assert proofs(shown), f"nothing shows: {claim}"


def test_every_claim_of_the_readme_has_a_link_to_what_shows_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    parts = (
        readme.partition("\n## ")[0],
        *re.findall(r"^## (?:Measured|Trust)$(.*?)(?=^## )", readme, re.M | re.DOTALL),
    )
    claims = [claim for part in parts for claim in re.split(r"^- ", part, flags=re.MULTILINE)[1:]]
    # What it is for whom: each paragraph that begins with bold words, and what follows it.
    doors = readme.partition("\n## For other clients")[2].partition("\n## ")[0]
    claims += re.split(r"^(?=\*\*)", doors, flags=re.MULTILINE)[1:]
    claims.append(readme.partition("\n## For a coding agent")[2].partition("\n## ")[0])
    claims.append(readme.partition("\n## For Python")[2].partition("\n## ")[0])
    assert len(claims) > 20
    for claim in claims:
        assert re.search(r"\]\(docs/(claims|benchmarks|reliability|scale|scoreboard|clients)\.md#", claim), claim
