"""Commands that write down: notes, memory, notepad, prompt, scratchpad, handoff, state, skills and the journal."""

from __future__ import annotations

from limpet.doors.cli.commands import (
    ACTIVE,
    CONFIRM,
    LINE,
    LINES,
    SWITCH,
    WRITING,
    Command,
    Group,
    argument,
    flag,
    number,
    option,
    optional,
    repeated,
)

OWN = "limpet.doors.cli.own_logic"
ENTRIES = "limpet.doors.cli.entries"
FROM_INPUT = "Without a text, or with -, it is read from standard input."

# One paragraph per command, laid out by hand: a formatter would need twice the lines.
# fmt: off
UPDATED = (
    argument("id"), optional("text"),
    repeated("--tag", "TAG", "Replaces all its tags; may be repeated.", to="tags"),
    flag("--no-tags", "Take all its tags away."),
    flag("--done/--open", "Mark it done (hidden, not lost), or open again.", SWITCH),
    option("--expires", "WHEN", "When it stops being true: 30d, a day, or never."),
    repeated("--anchor", "PLACE", "What it cites, in place of what it cited; may be repeated.", to="anchors"),
    number("--if-version", "N", "Only if this is still its version.", to="expected_version"),
)
NOTES = (
    Group("note", "Short tagged texts that agents write down and find again."),
    Command("note add",
        "limpet note add 'Casts break LL(1)' --tag grammar --tag parser\ngit log -3 | limpet note add -", FROM_INPUT),
    Command("note update", "limpet note update note_1772445300000 --done", "Give - as the text to read it.", UPDATED,
        run=f"{OWN}:update_note"),
    Command("note show", "limpet note show note_1772445300000", "Print one note in full, and where it is from.",
        (argument("id"),), run=f"{ENTRIES}:show_note"),
    Command("note edit", "limpet note edit note_1772445300000 'Casts need two tokens'",
        "The same as `note update`. Without a text your editor opens.", UPDATED, run=f"{ENTRIES}:edit_note"),
    Command("note delete", "limpet note delete note_1772445300000",
        "Delete a note that was wrong. `limpet note edit ID --done` hides one that is dealt with. "
        "`limpet undo` brings it back.", own_words=True, session=False),
    Command("note list", "limpet note list --tag grammar --limit 50"),
    Command("note search", "limpet note search 'LL(1)' --tag grammar",
        params=(argument("query", default=""), "tags", "tags_any", "include_done", "include_replaced", "limit")),
)

MEMORY = (
    Group("memory", "What a project keeps under keys."),
    Command("memory list", "limpet memory list --limit 50"),
    Command("memory search", "limpet memory search 'release steps' --limit 3"),
    Command("memory show", "limpet memory show release"),
    Command("memory write",
        "limpet memory write release 'Tag, then make dist'\nlimpet memory write release - --append < steps.txt",
        FROM_INPUT,
        ("key", "content",
            flag("--append", "Add to what is there instead of replacing it.", to="mode", value="append"),
            "replaces", "expires", "anchors", "expected_version", "layer")),
    Command("memory edit", "limpet memory edit release",
        "Your editor opens; if it was changed meanwhile, nothing is overwritten.", (argument("key"),), session=True,
        run=f"{ENTRIES}:edit_memory"),
    Command("memory delete", "limpet memory delete release", "`limpet undo` brings it back."),
    Command("memory pin", "limpet memory pin release", session=False, fixed={"pinned": True}),
    Command("memory unpin", "limpet memory unpin release", session=False, fixed={"pinned": False}),
    Group("review", "What waits for you: texts that agents propose for your own memory.",
        default="list"),
    Command("review list", "limpet review\nlimpet review list --json"),
    Command("review accept", "limpet review accept proposal_1772445300000",
        params=("id", flag("--yes", "Let this text count from now on?", CONFIRM))),
    Command("review reject", "limpet review reject proposal_1772445300000"),
    Group("handoff", "What one session leaves for the next."),
    Command("handoff write", "limpet handoff write 'Parser done. Next: casts, see the notepad of session parser.'",
        FROM_INPUT),
    Command("handoff show", "limpet handoff show"),
    Command("handoff list", "limpet handoff list", "List the handoffs, used or not, the newest first.",
        run=f"{ENTRIES}:list_handoffs"),
)

EXPECTED = number("--if-version", "N", "Only if this is still its version.", to="expected_version")
WHOLE_LINES = optional("content", LINES, metavar="[TEXT]")


def _sheet(word: str, title: str, *, in_session: bool) -> tuple[Command, ...]:
    """The commands for a text that is edited in place: a session's notepad, a project's system prompt."""
    calls_for = ACTIVE if in_session else WRITING
    history = (number("--diff", "N", "Show what changed since version N.", to="version"), "limit")
    edit = (
        option("--find", "TEXT", "The text to replace, once."),
        option("--replace", "TEXT", "What to put in its place."),
        option("--delete", "TEXT", "The text to delete, once."),
        flag("--all", "Wherever it occurs.", to="everywhere"),
        EXPECTED,
    )
    return (
        Command(f"{word} show", f"limpet {word} show", calls_for=calls_for),
        Command(f"{word} history", f"limpet {word} history --diff 3", params=history, calls_for=calls_for),
        Command(f"{word} restore", f"limpet {word} restore 3", calls_for=calls_for),
        Command(f"{word} write", f"limpet {word} write '# Plan'\nlimpet {word} write - < plan.md",
            "Standard input is taken exactly as it is; an argument is made a whole line.",
            (WHOLE_LINES, "expected_version"), calls_for=calls_for),
        *(
            Command(f"{word} {name}", f"limpet {word} {name} '- [ ] casts'", f"This adds text {where}.",
                (WHOLE_LINES, "expected_version"), calls_for=calls_for, fixed={"operation": name})
            for name, where in (("append", "at the end"), ("prepend", "at the beginning"))
        ),
        Command(f"{word} edit", f"limpet {word} edit --find '- [ ] casts' --replace '- [x] casts'\nlimpet {word} edit",
            f"Without options your editor opens; if the {title} changed meanwhile, nothing is overwritten.", edit,
            session=True, run=f"{OWN}:edit_{word}"),
    )


SHEETS = (
    Group("pad", "The notepad of a session: its plan and progress, in every model call."),
    *_sheet("pad", "notepad", in_session=True),
    Group("prompt", "The system prompt of a project: what its agents are always told."),
    *_sheet("prompt", "system prompt", in_session=False),
    Command("scratch", "limpet scratch --mode append 'tried tabs, no luck'",
        params=(optional("text"),
            option("--mode", "MODE", "read, replace, append or clear. Read when there is no text.")), session=True,
        run=f"{OWN}:scratch"),
)

STATE = (
    Group("state", "JSON values that agents keep by key, for the whole project."),
    Command("state get", "limpet state get build", "Print a value.", (argument("key"),), session=False,
        fixed={"action": "get"}, own_words=True),
    Command("state keys", "limpet state keys build.", "List the keys, or those that begin so.", (optional("prefix"),),
        session=False, fixed={"action": "keys"}, own_words=True),
    Command("state set", "limpet state set build '{\"number\": 7}'\nlimpet state set owner Ada --text",
        "Without a value, or with -, it is read from standard input.",
        (argument("key"), optional("value"), flag("--text", "The value is a text as it stands, not JSON."),
            number("--if-version", "N", "Only if this is its version.", to="expected_version")), session=True,
        run=f"{OWN}:set_state"),
    Command("state delete", "limpet state delete build", "Delete a value; `limpet undo` brings it back.",
        (argument("key"),), fixed={"action": "delete"}, own_words=True),
)

SKILLS = (
    Group("skill", "Know-how in SKILL.md folders that every session finds."),
    Command("skill list", "limpet skill list"),
    Command("skill show", "limpet skill show deploy"),
    Command("skill promote",
        "limpet skill promote deploy --section 'Deploy steps' --description 'How to deploy, when a release is due.'",
        params=("name",
            option("--section", "HEADING", "The heading of the section of the notepad.", required=True),
            option("--description", "TEXT", "What it is for and when to use it.", required=True), "replace"),
        calls_for=ACTIVE),
)

ABOUT_JOURNAL = """The project's NOTES.md: where the work stands, what was decided and why, what is open.

\b
A session, from start to end:
  limpet journal recover                        where the work stands, in about 100 tokens
  limpet journal decision add TITLE …           what was decided, with evidence from the code
  limpet journal debt add 'found on the way'    also: question, goal, blocker
  limpet journal checkpoint 'what was done'     the log, where it stands, and the handoff

\b
Now and then:
  limpet journal verify                         does the evidence still stand?
  limpet journal lint --fix                     is the file as it should be?
  limpet journal heal                           bring an empty or missing file back
"""
JOURNAL_TEXT = optional("text", LINE)
JOURNAL_ITEMS = {
    "question": ("What is open until somebody answers.", "May a rate be corrected?", ()),
    "goal": (
        "What is being worked towards.",
        "Totals that add up",
        (option("--note", "TEXT", "What it waits for."),),
    ),
    "debt": (
        "What was found on the way, to be mended later.",
        "The list asks for each rate on its own",
        (
            flag("--track", "Make it an issue with bd."),
            option("--sprint", "NAME", "When it was found."),
            option("--severity", "LEVEL", "LOW, MEDIUM, HIGH or CRITICAL."),
        ),
    ),
    "blocker": (
        "What the work waits for.",
        "the bank's key for the test system",
        (option("--eta", "DATE", "When it should resolve."),),
    ),
}


def _items() -> tuple[Group | Command, ...]:
    """`add` and `done` for each section of the journal that has items."""
    commands: list[Group | Command] = []
    for name, (help_text, text, options) in JOURNAL_ITEMS.items():
        path = f"journal {name}"
        commands += [
            Group(path, help_text),
            Command(f"{path} add", f"limpet {path} add {_quoted(text)}", f"Add a {name} to the journal.",
                (JOURNAL_TEXT, *options), fixed={"section": name}, own_words=True),
            Command(f"{path} done", f"limpet {path} done {_quoted(' '.join(text.split()[-2:]))}",
                f"Mark the one open {name} that holds this text as done.", ("text",),
                fixed={"section": name, "done": True}, own_words=True),
        ]
    return tuple(commands)


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"


JOURNAL = (
    Group("journal", ABOUT_JOURNAL, "The project's NOTES.md: where the work stands, what was decided and why."),
    Command("journal recover", "limpet journal recover\nlimpet journal recover --level 2 --query 'why one bank'",
        "Hooks run this at the start of a session: it needs no store.",
        (number("--level", "N", "1, 2 or 3. 1 when not given."),
            option("--query", "TEXT", "For level 2: what you need to know.")), run=f"{OWN}:show_recovered"),
    Command("journal lint", "limpet journal lint --fix", "The exit code is 2 when something is left to mend."),
    Command("journal verify", "limpet journal verify --check", "The exit code is 2 when evidence no longer stands."),
    Command("journal init", "limpet journal init"),
    Command("journal heal", "limpet journal heal --check"),
    Command("journal rotate", "limpet journal rotate --force"),
    Group("journal decision", "What was decided, with reason, evidence and test scenarios."),
    Command("journal decision add",
        "limpet journal decision add 'Rates belong to the invoice' --decision 'Copy the rate' "
        "--rationale 'Reports show what was paid'\\\n    --evidence src/rates.py:7 "
        "--scenario 'kept' --scenario 'home currency' --scenario 'no rate: refused'",
        params=("title", option("--decision", "TEXT", "What was decided."),
            option("--rationale", "TEXT", "Why."),
            repeated("--evidence", "PLACE", "path:line or path:first-last; may be repeated."),
            repeated("--scenario", "TEXT", "A test scenario; give three.", to="scenarios"))),
    *_items(),
    Group("journal identifier", "Places in files that are worth finding again."),
    Command("journal identifier add", "limpet journal identifier add src/rates.py:7-20 --note 'Rate of the day'",
        "Add a place in a file to the journal.", own_words=True,
        params=("text", option("--note", "TEXT", "What is there.")), fixed={"section": "identifier"}),
    Group("journal set", "The work at hand, and where it stands."),
    *(
        Command(f"journal set {name}", f"limpet journal set {name} 'Rounding of totals is next'", help_text,
            (JOURNAL_TEXT,), fixed={"section": name}, own_words=True)
        for name, help_text in (("task", "Say what the work at hand is."), ("state", "Say where the work stands."))
    ),
    Command("journal checkpoint", "limpet journal checkpoint 'Rates are stored' --state 'Rounding of totals is next'",
        params=(optional("summary", LINE), "state", "task",
            option("--agent", "NAME", "Who did it. The session when not given."), "line")),
)

COMMANDS = (*NOTES, *MEMORY, *SHEETS, *STATE, *SKILLS, *JOURNAL)
