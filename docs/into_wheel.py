"""Puts the pages of `docs/`, which the dashboard shows, into the wheel. Hatch calls it for every build of one."""

from __future__ import annotations

import pathlib
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KINDS = ("**/*.md", "plots/*.svg", "pages.toml")


class PagesIntoWheel(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # a checkout has them where they are
            return
        docs = pathlib.Path(self.root, "docs")
        for kind in KINDS:
            for page in sorted(docs.glob(kind)):
                inside = f"limpet/docs/{page.relative_to(docs).as_posix()}"
                build_data["force_include"][str(page)] = inside
