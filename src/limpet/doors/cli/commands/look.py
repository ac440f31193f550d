"""Commands that show: sessions, history, the window, tasks, kept outputs, savings, the sandbox and the demo."""

from __future__ import annotations

from limpet.doors.cli.commands import (
    ACTIVE,
    BY_ID,
    CONFIRM,
    FILE,
    NUMBER,
    Command,
    Group,
    argument,
    flag,
    number,
    option,
    optional,
)

OWN = "limpet.doors.cli.own_logic"
ENTRIES = "limpet.doors.cli.entries"

# One paragraph per command, laid out by hand: a formatter would need twice the lines.
# fmt: off
SESSIONS = (
    Group("session", "Pieces of work, each with its notes and its notepad."),
    Command("session list", "limpet session list --all"),
    Command("session show", "limpet session show parser"),
    Command("session begin", "limpet session begin parser --task 'Port the parser to Rust'",
        params=(argument("id"), option("--task", "TEXT", "What it works on.")), session=False,
        calls_for=BY_ID),
    Command("messages", "limpet messages\nlimpet messages --session parser --last 50",
        "Read the conversation of a session, as it was kept: the last messages, or those from a position on.",
        (number("--first", "N", "From this message on; the first is 1."),
            number("--last", "N", "Only so many, the newest. [default: 20]")), session=True, run=f"{ENTRIES}:messages"),
    Command("session archive", "limpet session archive parser"),
    Command("session spawn", "limpet session spawn 'Read the old grammar' --session parser --note note_1"),
    Command("session fork", "limpet session fork 'Try it with a table' --session parser"),
    Command("session wait", "limpet session wait sub_0a1b2c --seconds 30"),
    Command("session report", "limpet session report 'Nothing depends on it' --session sub_0a1b2c"),
    Command("session end", "limpet session end sub_0a1b2c cancelled --result 'No longer needed'"),
    Command("history", "limpet history --kind note --limit 10"),
    Command("undo", "limpet undo\nlimpet undo 42",
        "On a terminal your last change is named first, and you are asked. `limpet history` lists the numbers.",
        (optional("seq", NUMBER), flag("--dry-run", "Only say which it would be."), flag("--yes", "Do not ask."),
            option("--layer", "LAYER", "person: a change of what is kept for you.")),
        run=f"{OWN}:undo"),
)

WINDOW = (
    Group("window", "What fills a session's window, what is folded, and what is pinned.", default="show"),
    Command("window show", "limpet window show\nlimpet window", calls_for=ACTIVE),
    Command("window folds", "limpet window folds --session parser", calls_for=ACTIVE),
    Command("window compact", "limpet window compact --session parser", calls_for=ACTIVE),
    Command("window restore", "limpet window restore 120 130", params=("first", optional("last", NUMBER)),
        calls_for=ACTIVE),
    Command("window pin", "limpet window pin 'Never touch the production database.'", calls_for=ACTIVE),
    Command("window unpin", "limpet window unpin pin_1772539200000", calls_for=ACTIVE),
    Command("window pins", "limpet window pins", calls_for=ACTIVE),
    Group("task", "Stretches of work that become one line when they end."),
    Command("task begin", "limpet task begin 'Find out why casts fail'"),
    Command("task end", "limpet task end 'LL(1) cannot tell casts from calls; using two tokens'"),
    Command("task cancel", "limpet task cancel 'the grammar is generated, not written'"),
    Command("task list", "limpet task list"),
)

OUTPUTS = (
    Group("output", "Big tool results kept whole outside the window."),
    Command("output keep", "pytest | limpet output keep pytest",
        "Keep what standard input says, if it is big, and print the preview and the reference an agent would see.",
        (argument("tool"), option("--call", "", "How it was made, for whoever needs it again.", default="")),
        session=True, run=f"{OWN}:keep_output"),
    Command("output list", "limpet output list --limit 5"),
    Command("output read", "limpet output read 3f9a1c2b77e0 --query 'which test failed'"),
    Command("output delete", "limpet output delete 3f9a1c2b77e0"),
    Command("output prune", "limpet output prune"),
    Command("output clear", "limpet output clear --yes",
        params=(flag("--yes", "Delete every kept output of this project?", CONFIRM),)),
    Command("savings", "limpet savings\nlimpet savings --session port-the-parser --json",
        "Less than zero means that reading back cost more than keeping it out."),
)

COMMANDS = (
    *SESSIONS,
    *WINDOW,
    *OUTPUTS,
    Group("sandbox", "Python over kept outputs and the notepad, where it can do no harm."),
    Command("sandbox run",
        'limpet sandbox run count.py --inputs \'{"id": "3f9a1c2b77e0"}\'\n'
        "echo 'len(outputs.list())' | limpet sandbox run -",
        params=(optional("file", FILE), option("--inputs", "JSON", "Variables for the code, as a JSON object."),
            option("--name", "NAME", "Stores the code for later; without a file, runs what was stored.")),
        session=True, run=f"{OWN}:run_code"),
    Command("demo", "limpet demo\nlimpet demo --keep",
        "Play a short story that shows what survives when an agent's context is wiped.",
        (flag("--keep", "Make a sample project to look at in the dashboard, in a folder of its own."),),
        run="limpet.doors.cli.demo:demo"),
)
