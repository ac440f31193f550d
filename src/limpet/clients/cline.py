"""Cline's command line. Its hooks can replace no result and are not run at a start, so it has the server alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limpet.clients.base import CodingAgent

if TYPE_CHECKING:
    from limpet.clients.edits import Edit, InstallTarget


class Cline(CodingAgent):
    name = "cline"
    title = "Cline"

    has_hooks = False

    home_folder = ".cline"
    programs = ("cline",)
    scopes = ("user",)
    advice = "Start cline in the project."

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        if target.scope != "user":
            return {}
        entry = target.entry(("mcpServers",), {"transport": {"type": "stdio", **target.server(hooks=False)}})
        return {target.path(".cline", "data", "settings", "cline_mcp_settings.json"): (entry,)}


CLIENT = Cline()
