"""Makes docs/llms.txt, and the source of the site below build/. `make docs` and `make docs-site` run it.

The site has the README as its first page and then the pages of pages.toml. Links that lead to files of the repository,
which are no pages, are shown as the name of the file.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import sys
import tomllib
from posixpath import dirname, join, normpath, relpath

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
LINK = re.compile(r"(?<!\\)(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
ABOUT = "Working memory for AI agents: notes, notepad, outputs, journal, memory and handoffs that outlive the window."


def pages() -> dict[str, dict[str, str]]:
    listed: dict[str, dict[str, str]] = tomllib.loads((HERE / "pages.toml").read_text(encoding="utf-8"))
    return listed


def llms() -> str:
    """The pages for models, each with its first sentences (llmstxt.org)."""
    lines = ["# Limpet", "", f"> {ABOUT}", ""]
    for group, listed in pages().items():
        lines += [f"## {group}", ""]
        for name, title in listed.items():
            lines.append(f"- [{title}]({name}.md): {first_words((HERE / f'{name}.md').read_text(encoding='utf-8'))}")
        lines.append("")
    return "\n".join(lines)


def first_words(text: str) -> str:
    """The first paragraph of a page, as far as it is one."""
    paragraphs = re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n")[1:]
    plain = [part.strip() for part in paragraphs if part.strip() and not re.match(r"\s*[#|>\-*!\d<]", part)]
    words = LINK.sub(r"\2", " ".join(plain[0].split())) if plain else ""
    cut = re.match(r".{40,}?[.:](?= |$)", words)
    return cut[0].rstrip(":") if cut else words


def site(build: pathlib.Path) -> None:
    """The Markdown of the site with its settings, in a folder made anew."""
    shutil.rmtree(build, ignore_errors=True)
    names = {f"docs/{name}.md": f"{name}.md" for listed in pages().values() for name in listed}
    names["README.md"] = "index.md"
    for source, target in names.items():
        place = build / "docs" / target
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(moved((ROOT / source).read_text(encoding="utf-8"), source, names), encoding="utf-8")
    shutil.copytree(HERE / "plots", build / "docs" / "plots")
    shutil.copy(HERE / "llms.txt", build / "docs" / "llms.txt")
    navigation: list[dict[str, object]] = [{"Home": "index.md"}]
    navigation += [{group: [{t: f"{n}.md"} for n, t in listed.items()]} for group, listed in pages().items()]
    (build / "zensical.toml").write_text(settings(navigation), encoding="utf-8")


def settings(navigation: object) -> str:
    # A list of tables is written the same in JSON and in TOML but for the sign between name and value.
    nav = re.sub(r'("(?:[^"\\]|\\.)*"): ', r"\1 = ", json.dumps(navigation))
    return f"""[project]
site_name = "Limpet"
site_description = {json.dumps(ABOUT)}
docs_dir = "docs"
site_dir = "site"
use_directory_urls = false
nav = {nav}

[project.theme]
font = false
features = ["navigation.sections", "navigation.footer", "toc.follow", "content.code.copy", "search.highlight"]

[project.markdown_extensions.toc]
permalink = true
[project.markdown_extensions.tables]
[project.markdown_extensions.pymdownx.superfences]
[project.markdown_extensions.pymdownx.highlight]
"""


def moved(text: str, source: str, names: dict[str, str]) -> str:
    """A page with its links as the site has them. What stands in code is left alone."""

    def changed(match: re.Match[str]) -> str:
        picture, words, link = match.groups()
        path, mark, heading = link.partition("#")
        if "://" in link or not path:
            return match[0]
        target = normpath(join(dirname(source), path))
        if target in names:
            here = dirname(names[source])
            return f"{picture}[{words}]({relpath(names[target], here or '.')}{mark}{heading})"
        if target.startswith("docs/plots/"):
            return f"{picture}[{words}]({relpath(target.removeprefix('docs/'), dirname(names[source]) or '.')})"
        return f"{words} (`{target}`)"

    pieces = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    return "".join(piece if at % 2 else LINK.sub(changed, piece) for at, piece in enumerate(pieces))


if __name__ == "__main__":
    (HERE / "llms.txt").write_text(llms(), encoding="utf-8")
    if len(sys.argv) > 1:
        site(pathlib.Path(sys.argv[1]))
