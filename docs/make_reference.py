"""Writes docs/reference.md from the catalogue of operations. `make docs` runs it; a test checks that it was run."""

from __future__ import annotations

import pathlib

from limpet.catalogue.operation import Operation
from limpet.catalogue.table import OPERATIONS, PROFILES, profile
from limpet.prompts import tool

HERE = pathlib.Path(__file__).parent
TYPES = {"strings": "list of strings"}


def reference() -> str:
    lines = [
        "# Reference",
        "",
        "Generated from the catalogue of operations by `make docs`. The same operation gives the same answer and the",
        "same error sentence through the library (`hold.call(name, arguments)`), the command line and MCP.",
        "",
    ]
    for name in PROFILES:
        tools = ", ".join(f"`{operation.name}`" for operation in profile(name))
        lines += [f"**Profile `{name}`**: {tools}.", ""]
    lines += ["Operations in neither profile are for people: library and command line only.", ""]
    for operation in OPERATIONS.values():
        lines += section(operation)
    return "\n".join(lines)


def section(operation: Operation) -> list[str]:
    text = tool(operation.name)
    lines = [f"## {operation.name}", "", text.description, ""]
    if params := operation.all_params():
        lines += ["| argument | type | | |", "|---|---|---|---|"]
        for param in params:
            kind = " \\| ".join(f"`{choice}`" for choice in param.choices) or TYPES.get(param.type, param.type)
            bounds = f"{param.low:,} to {param.high:,}" if param.high else ""
            words = text.params.get(param.name, bounds)
            lines.append(f"| `{param.name}` | {kind} | {'required' if param.required else ''} | {words} |")
        lines.append("")
    keys = ", ".join(f"`{name}`" + ("?" if kind.endswith("?") else "") for name, kind in operation.result.items())
    lines += [f"Answers {keys}.", ""]
    return lines


if __name__ == "__main__":
    (HERE / "reference.md").write_text(reference(), encoding="utf-8")
