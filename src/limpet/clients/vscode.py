"""VS Code, with the agents in its chat. Its hooks are not used, so it has the server alone."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from limpet.clients.base import CodingAgent

if TYPE_CHECKING:
    from limpet.clients.edits import Edit, InstallTarget

# Where it keeps a person's settings, below the home folder.
_FOLDERS = {
    "darwin": os.path.join("Library", "Application Support", "Code"),
    "win32": os.path.join("AppData", "Roaming", "Code"),
}


class VSCode(CodingAgent):
    name = "vscode"
    title = "VS Code"

    has_hooks = False

    home_folder = _FOLDERS.get(sys.platform, os.path.join(".config", "Code"))
    programs = ("code",)
    advice = "Open the project in VS Code, and start and trust the server of limpet when it asks."
    project_guidance = ("AGENTS.md",)

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        config = target.path(self.home_folder, "User") if target.scope == "user" else target.path(".vscode")
        entry = target.entry(("servers",), {"type": "stdio", **target.server(hooks=False)})
        return {os.path.join(config, "mcp.json"): (entry,)}


CLIENT = VSCode()
