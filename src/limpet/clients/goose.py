"""Goose. Its hooks can neither add to the conversation nor replace a result, so it has the server alone."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from limpet.clients.base import CodingAgent

if TYPE_CHECKING:
    from limpet.clients.edits import Edit, InstallTarget

SECONDS = 60  # for a call of a tool


class Goose(CodingAgent):
    name = "goose"
    title = "Goose"

    has_hooks = False

    home_folder = os.path.join(".config", "goose")
    programs = ("goose",)
    scopes = ("user",)
    advice = "Start goose in the project."
    user_guidance = (".config", "goose", ".goosehints")

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        if target.scope != "user":
            return {}
        program, *arguments = target.server_command(hooks=False)
        lines = (
            "enabled: true",
            "type: stdio",
            "name: limpet",
            "description: Working memory",
            f"cmd: {json.dumps(program)}",
            f"args: {json.dumps(arguments)}",
            f"timeout: {SECONDS}",
        )
        return {target.path(".config", "goose", "config.yaml"): (target.yaml_entry("extensions", lines),)}


CLIENT = Goose()
