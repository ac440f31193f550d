"""Writes docs/settings.md from limpet/settings.py. `make docs` runs it; a test checks that it was run.

The unit and the reason of a key are the comment of its field, `unit: reason`, so that they are written once.
"""

from __future__ import annotations

import ast
import io
import pathlib
import tokenize
from typing import Any

from limpet import settings
from limpet.home import trust

HERE = pathlib.Path(__file__).parent
HEAD = """# Settings

Generated from `src/limpet/settings.py` by `make docs`. A value comes from, in this order:

1. an argument of `limpet.open` or an option of the command line (`--store`, `--project`, …),
2. a variable of the environment (below), or a key in `LIMPET_SET`,
3. your settings file: `~/.config/limpet/config.toml` (`$XDG_CONFIG_HOME` moves it), on macOS
   `~/Library/Application Support/limpet/config.toml`, on Windows `%APPDATA%\\limpet\\config.toml`,
4. `.limpet/config.toml` in the repository, as far as it counts,
5. the default.

In a file a key is written `note_max_chars = 2000`, the keys of a table below `[outputs]`. `LIMPET_SET` takes the
same keys with a dot: `LIMPET_SET="outputs.max_age=30d;outputs.enabled=off;hooks.off_tools=Read,Grep"`. Switches take
`true` or `false` (also `on`, `off`, `yes`, `no`, `1`, `0`), lists of names are separated by commas, and durations (keys
in seconds) take a unit: `90s`, `15m`, `12h`, `30d`. A value that cannot be used, or an unknown key in `LIMPET_SET`
or your settings file, is refused at the start with the rule it breaks.

A table `[projects."/path/of/a/project"]` in your settings file has keys for that project alone; its id does
as well (`limpet project list`). Relative paths are relative to the file that has them.

A repository's file comes with every clone, so these are the keys that count in it as they are:

{harmless}

Other keys, and skills in `.limpet/skills`, count after `limpet trust`, which shows them and asks. After a change they
do not count until you trust them again.

## Variables of the environment

| variable | sets |
|---|---|
"""
TOOLS = """
### Exceptions for tools

A table `[outputs.tools."pattern"]` for each tool or pattern, or `outputs.tools.PATTERN.KEY` in `LIMPET_SET`.
"""


def comments() -> dict[tuple[str, str], tuple[str, str]]:
    """The unit and the reason of each field, by class and field."""
    source = pathlib.Path(settings.__file__).read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {token.start[0]: token.string[1:].strip() for token in tokens if token.type == tokenize.COMMENT}
    fields: dict[tuple[str, str], tuple[str, str]] = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.end_lineno in lines:
                unit, _, reason = lines[field.end_lineno].partition(": ")
                fields[node.name, field.target.id] = (unit, reason)
    return fields


def document() -> str:
    fields, tables = comments(), settings.Bounds()._asdict()
    harmless = "\n".join(f"- `{key}`: {reason}" for key, (_, reason) in trust.HARMLESS.items())
    variables = "\n".join(f"| `{name}` | {purpose} |" for name, purpose in settings.VARIABLES.items())
    lines = [HEAD.replace("{harmless}", harmless) + variables]
    lines += [
        "",
        "## Top-level keys",
        "",
        "In a file, in `LIMPET_SET`, or where a variable is named, also there.",
        "",
    ]
    lines += ["| key | unit | default | why | variable |", "|---|---|---|---|---|"]
    for name in settings.TOP_KEYS:
        default = settings.Settings._field_defaults.get(name)
        variable = f"LIMPET_{name.upper()}"
        named = f" `{variable}` |" if variable in settings.VARIABLES else " |"
        lines.append(_row(name, *fields["Settings", name], default) + named)
    single = {name: value for name, value in tables.items() if not hasattr(value, "_fields")}
    lines += [f"{_row(name, *fields['Bounds', name], value)} |" for name, value in single.items()]
    for table, rules in tables.items():
        if table not in single:
            lines += [
                "",
                f"## [{table}]",
                "",
                f"{type(rules).__doc__} In the file or as `{table}.KEY` in `LIMPET_SET`.",
            ]
            lines += _table(type(rules), fields)
        if table == "outputs":
            lines += [TOOLS, *_table(settings.ToolRule, fields)[1:]]
    return "\n".join(lines) + "\n"


def _table(kind: Any, fields: dict[tuple[str, str], tuple[str, str]]) -> list[str]:
    lines = ["", "| key | unit | default | why |", "|---|---|---|---|"]
    for name, default in kind._field_defaults.items():
        if name != "tools":
            lines.append(_row(name, *fields[kind.__name__, name], default))
    return lines


def _row(name: str, unit: str, reason: str, default: Any) -> str:
    return f"| `{name}` | {unit} | {_default(default)} | {reason} |"


def _default(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    return f"`{value}`" if value else "none"


if __name__ == "__main__":
    (HERE / "settings.md").write_text(document(), encoding="utf-8")
