"""Commands that find: one question to everything, tags, and what a new session begins with."""

from __future__ import annotations

from limpet.doors.cli.commands import READING, Command, argument, flag, number, option, repeated

# One paragraph per command, laid out by hand: a formatter would need twice the lines.
# fmt: off
COMMANDS = (
    Command("recall", "limpet recall 'why did we drop the old lexer'\nlimpet recall lexer --kind notes --since 7d",
        params=(argument("query"), repeated("--kind", "KIND", "Only this kind; may be repeated.", to="kinds"),
            repeated("--tag", "TAG", "With this tag; may be repeated.", to="tags"),
            option("--of", "SESSION", "Only what this session wrote.", to="session"),
            option("--since", "WHEN", "A day (2026-03-02), a time, or an age (12h, 7d, 2w)."),
            option("--until", "WHEN", "Before this moment."),
            option("--key-prefix", "TEXT", "Only ids and keys that begin so."),
            flag("--done", "Finished notes too.", to="include_done"),
            number("--limit", "N", "At most so many, from 1 to 50."),
            number("--tokens", "N", "The most the answer may take."))),
    Command("tags", "limpet tags", session=True, calls_for=READING),
    Command("context", "limpet context",
        "Print what a new session would start with: handoff, notepad and memory. Nothing is used up by looking.",
        (option("--line", "NAME", "The line of work whose handoff is shown.", default="main"),), session=True,
        run="limpet.doors.cli.own_logic:context"),
)
