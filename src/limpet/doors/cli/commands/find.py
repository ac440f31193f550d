"""Commands that find: one question to everything, tags, and what a new session begins with."""

from __future__ import annotations

from limpet.doors.cli.commands import Command, flag, option

# One paragraph per command, laid out by hand: a formatter would need twice the lines.
# fmt: off
COMMANDS = (
    Command("recall", "limpet recall 'why did we drop the old lexer'\nlimpet recall lexer --kind notes --since 7d",
        params=("query", "kinds", "tags", "tags_any",
            "since", "until", option("--key-prefix", "TEXT", "Only ids and keys that begin so."),
            flag("--done", "Finished notes too.", to="include_done"), "include_replaced", "limit", "tokens",
            flag("--more", "Weak matches too, when nothing fits.", to="more"))),
    Command("tags", "limpet tags"),
    Command("context", "limpet context",
        "Print what a model would read at the start of a new session, names of tools included: handoff, notepad and "
        "memory. Nothing is used up by looking.",
        (option("--line", "NAME", "Whose handoffs are shown; otherwise the line of this folder."),), session=True,
        run="limpet.doors.cli.own_logic:context"),
)
