"""Commands that show: sessions, history, the window, tasks, kept outputs, savings, the sandbox and the demo."""

from __future__ import annotations

from limpet.doors.cli.command import (
    ACTIVE,
    ARGUMENT,
    BY_ID,
    CONFIRM,
    FILE,
    LIMIT,
    LINE,
    NUMBER,
    REST,
    Command,
    Group,
    argument,
    flag,
    number,
    option,
    optional,
    repeated,
)

OWN = "limpet.doors.cli.plain"
TOKEN_LIMIT = number("--token-limit", "N", "Tokens it may use.")
MODEL = option("--model", "NAME", "The model it is for.")

# One paragraph per command, laid out by hand: a formatter would need twice the lines.
# fmt: off
SESSIONS = (
    Group("session", "Pieces of work, each with its notes and its notepad."),
    Command("session list", "limpet session list --all",
        params=(flag("--all", "Archived sessions too.", to="include_archived"), LIMIT)),
    Command("session show", "limpet session show parser", params=(argument("id"),)),
    Command("session begin", "limpet session begin parser --task 'Port the parser to Rust'",
        params=(argument("id"), option("--task", "TEXT", "What it works on.")), calls_for=BY_ID),
    Command("session archive", "limpet session archive parser", params=(argument("id"),)),
    Command("session spawn", "limpet session spawn 'Read the old grammar' --session parser --note note_1",
        params=(argument("task"), flag("--copy-notepad", "Start it with a copy of the notepad."),
            repeated("--note", "ID", "A note it gets; may be repeated.", to="notes"),
            repeated("--reference", "ID", "An output it gets; may be repeated.", to="references"), TOKEN_LIMIT, MODEL),
        session=True),
    Command("session fork", "limpet session fork 'Try it with a table' --session parser",
        params=(argument("task"), TOKEN_LIMIT, MODEL), session=True),
    Command("session wait", "limpet session wait sub_0a1b2c --seconds 30",
        params=(argument("ids", REST), number("--seconds", "N", "How long to wait at most."))),
    Command("session report", "limpet session report 'Nothing depends on it' --session sub_0a1b2c",
        params=(argument("result"),), session=True),
    Command("session end", "limpet session end sub_0a1b2c cancelled --result 'No longer needed'",
        params=(argument("id"), argument("outcome"),
            option("--result", "TEXT", "The last it said, or what went wrong."))),
    Command("history", "limpet history --kind note --limit 10",
        params=(option("--kind", "KIND", "note, notepad, memory, handoff, session, fold, task, pin, journal …"),
            option("--key", "KEY", "Only this note, memory key or session."),
            number("--before", "SEQ", "Only changes before this one.", to="before_seq"), LIMIT)),
    Command("undo", "limpet undo\nlimpet undo 42", params=(optional("seq", NUMBER),)),
)

WINDOW = (
    Group("window", "What fills a session's window, what is folded, and what is pinned.", default="show"),
    Command("window show", "limpet window show\nlimpet window", session=True, calls_for=ACTIVE),
    Command("window folds", "limpet window folds --session parser", session=True, calls_for=ACTIVE),
    Command("window restore", "limpet window restore 120 130",
        params=(argument("first", NUMBER), optional("last", NUMBER)), session=True, calls_for=ACTIVE),
    Command("window pin", "limpet window pin 'Never touch the production database.'",
        params=(optional("content", LINE, metavar="[TEXT]"),), session=True, calls_for=ACTIVE),
    Command("window unpin", "limpet window unpin pin_1772539200000", params=(argument("id"),), session=True,
        calls_for=ACTIVE),
    Command("window pins", "limpet window pins", session=True, calls_for=ACTIVE),
    Group("task", "Stretches of work that become one line when they end."),
    Command("task begin", "limpet task begin 'Find out why casts fail'", params=(argument("description"),),
        session=True),
    Command("task end", "limpet task end 'LL(1) cannot tell casts from calls; using two tokens'",
        params=(argument("summary"),), session=True),
    Command("task cancel", "limpet task cancel 'the grammar is generated, not written'", params=(argument("reason"),),
        session=True),
    Command("task list", "limpet task list", params=(LIMIT,), session=True, calls_for=ACTIVE),
)

OUTPUTS = (
    Group("output", "Big tool results kept whole outside the window."),
    Command("output keep", "pytest | limpet output keep pytest",
        "Keep what standard input says, if it is big, and print the preview and the reference an agent would see.",
        (argument("tool"), option("--call", "", "How it was made, for whoever needs it again.", default="")),
        session=True, run=f"{OWN}:keep_output"),
    Command("output list", "limpet output list --limit 5", params=(LIMIT,)),
    Command("output read", "limpet output read 3f9a1c2b77e0 --query 'which test failed'",
        params=(argument("id"), repeated("--column", "", "Only this column; may be repeated.", to="columns"),
            number("--context", "N", "Lines around a match."), number("--tokens", "N", "The most to show."),
            flag("--regex", "Take the text of --match for a regular expression."),
            option("--query", "", "A plain question; the lines that answer it."),
            option("--lines", "", "100-150, 40- or -50 for the tail."), option("--match", "", "Lines with this text."),
            option("--path", "", "A JSON pointer or JSONPath."),
            option("--rows", "", "Rows of a table or list, as 1-20."), option("--chars", "", "A range of characters."),
            option("--bytes", "", "A range of bytes."), option("--cursor", "", "Where the last answer ended."))),
    Command("output delete", "limpet output delete 3f9a1c2b77e0", params=(argument("id"),)),
    Command("output prune", "limpet output prune"),
    Command("output clear", "limpet output clear --yes",
        params=(flag("--yes", "Delete every kept output of this project?", CONFIRM),)),
    Command("savings", "limpet savings\nlimpet savings --session port-the-parser --json",
        "Less than zero means that reading back cost more than keeping it out.", session=True, calls_for=ARGUMENT),
)

COMMANDS = (
    *SESSIONS,
    *WINDOW,
    *OUTPUTS,
    Group("sandbox", "Python over kept outputs and the notepad, where it can do no harm."),
    Command("sandbox run",
        'limpet sandbox run count.py --inputs \'{"id": "3f9a1c2b77e0"}\'\n'
        "echo 'len(outputs.list())' | limpet sandbox run -",
        params=(argument("file", FILE), option("--inputs", "JSON", "Variables for the code, as a JSON object.")),
        session=True, run=f"{OWN}:run_code"),
    Command("demo", "limpet demo", "Play a short story that shows what survives when an agent's context is wiped.",
        run="limpet.doors.cli.demo:demo"),
)
