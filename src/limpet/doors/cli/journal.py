"""`limpet journal …`: the project's NOTES.md, which people and agents share."""

from __future__ import annotations

from typing import Any

import click

from limpet.doors.cli.build import NUMBER, Group, command, group, pass_state
from limpet.doors.cli.context import State, line_from
from limpet.doors.cli.render import Screen

Json = dict[str, Any]
ABOUT = """The project's NOTES.md: where the work stands, what was decided and why, what is open.

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
NOUNS = {
    "question": ("What is open until somebody answers.", "May a rate be corrected?"),
    "goal": ("What is being worked towards.", "Totals that add up"),
    "debt": ("What was found on the way, to be mended later.", "The list asks for each rate on its own"),
    "blocker": ("What the work waits for.", "the bank's key for the test system"),
}


def add_to(root: Group) -> None:
    noun = group(root, "journal", ABOUT)
    noun.short_help = "The project's NOTES.md: where the work stands, what was decided and why."
    _add_reading(noun)
    _add_care(noun)
    _add_decisions(noun)
    for name, (words, example) in NOUNS.items():
        _add_items(noun, name, words, example)
    _add_places(noun)
    _add_checkpoint(noun)


def _add_reading(noun: Group) -> None:
    @command(
        noun,
        "recover",
        "limpet journal recover\nlimpet journal recover --level 2 --query 'why one bank'",
        "Hooks run this at the start of a session: it needs no store.",
    )
    @click.option("--level", type=NUMBER, metavar="N", help="1, 2 or 3. 1 when not given.")
    @click.option("--query", metavar="TEXT", help="For level 2: what you need to know.")
    @pass_state
    def recover(state: State, level: int | None, query: str | None) -> None:
        reply = state.call("recover_notes", {"level": level, "query": query})
        state.answer(reply, lambda screen: screen.block(reply["text"]))

    @command(noun, "lint", "limpet journal lint --fix", "The exit code is 2 when something is left to mend.")
    @click.option("--fix", is_flag=True, help="Add missing sections; write paths from the project's root.")
    @click.pass_context
    @pass_state
    def lint(state: State, ctx: click.Context, fix: bool) -> None:
        reply = state.call("lint_notes", {"fix": fix})
        rows = [(one["line"], one["rule"], one["message"]) for one in reply["findings"]]
        state.answer(reply, lambda screen: screen.table(("line", "rule", "message"), rows))
        _left(ctx, state, reply["ok"], "nothing to mend.")

    @command(noun, "verify", "limpet journal verify --check", "The exit code is 2 when evidence no longer stands.")
    @click.option("--check", is_flag=True, help="Only look; write nothing into the journal.")
    @click.option("--fix", is_flag=True, help="Write where things that moved are now.")
    @click.pass_context
    @pass_state
    def verify(state: State, ctx: click.Context, check: bool, fix: bool) -> None:
        reply = state.call("verify_notes", {"check": check, "fix": fix})
        columns = ("state", "place", "now", "what", "detail")
        rows = [[one.get(name, "") for name in columns] for one in reply["checked"]]
        state.answer(reply, lambda screen: screen.table(columns, rows))
        _left(ctx, state, not reply["drifted"] + reply["gone"], "all evidence stands.")


def _left(ctx: click.Context, state: State, good: bool, words: str) -> None:
    """Say that all is well, or end with the exit code that hooks and CI look at."""
    if good and not state.json:
        state.notice(words)
    if not good:
        ctx.exit(2)


def _add_care(noun: Group) -> None:
    @command(noun, "init", "limpet journal init")
    @pass_state
    def init(state: State) -> None:
        reply = state.call("init_notes", {})
        file = state.settings.bounds.journal.file
        words = f"{file} made" if reply["created"] else f"{file} is there already; `limpet journal lint` looks at it"
        state.answer(reply, lambda screen: screen.line(words))

    @command(noun, "heal", "limpet journal heal --check")
    @click.option("--check", is_flag=True, help="Only say what would be done.")
    @pass_state
    def heal(state: State, check: bool) -> None:
        reply = state.call("heal_notes", {"check": check})
        did = "brought back" if reply["written"] else "would be brought back"
        words = reply["state"] if not reply["source"] else f"{reply['state']}; {did} from: {reply['source']}"
        state.answer(reply, lambda screen: screen.line(f"{reply['file']}: {words}"))

    @command(noun, "rotate", "limpet journal rotate --force")
    @click.option("--force", is_flag=True, help="Also when the journal is not long yet.")
    @pass_state
    def rotate(state: State, force: bool) -> None:
        reply = state.call("rotate_notes", {"force": force})
        words = f"{reply['decisions']} decisions and {reply['rows']} log rows moved to {reply['archive']}"
        state.answer(reply, lambda screen: screen.line(words))


def _add_decisions(noun: Group) -> None:
    inner = group(noun, "decision", "What was decided, with reason, evidence and test scenarios.")

    @command(
        inner,
        "add",
        "limpet journal decision add 'Rates belong to the invoice' --decision 'Copy the rate' "
        "--rationale 'Reports show what was paid'\\\n    --evidence src/rates.py:7 "
        "--scenario 'kept' --scenario 'home currency' --scenario 'no rate: refused'",
        session=True,
    )
    @click.argument("title")
    @click.option("--decision", metavar="TEXT", help="What was decided.")
    @click.option("--rationale", metavar="TEXT", help="Why.")
    @click.option("--evidence", multiple=True, metavar="PLACE", help="path:line or path:first-last; may be repeated.")
    @click.option("--scenario", "scenarios", multiple=True, metavar="TEXT", help="A test scenario; give three.")
    @pass_state
    def add(state: State, /, title: str, **given: Any) -> None:
        given |= {"evidence": list(given["evidence"]), "scenarios": list(given["scenarios"])}
        _answer(state, state.call("log_decision", {"title": title, **given}, state.writing()))


def _add_items(noun: Group, name: str, words: str, example: str) -> None:
    inner = group(noun, name, words)

    def add(state: State, /, text: str | None, **given: Any) -> None:
        given = {key: value for key, value in given.items() if value}
        arguments = {"section": name, "text": line_from(text, state), **given}
        _answer(state, state.call("update_notes", arguments, state.writing()))

    adding = pass_state(add)
    if name == "goal":
        adding = click.option("--note", metavar="TEXT", help="What it waits for.")(adding)
    if name == "blocker":
        adding = click.option("--eta", metavar="DATE", help="When it should resolve.")(adding)
    if name == "debt":
        adding = click.option("--severity", metavar="LEVEL", help="LOW, MEDIUM, HIGH or CRITICAL.")(adding)
        adding = click.option("--sprint", metavar="NAME", help="When it was found.")(adding)
        adding = click.option("--track", is_flag=True, help="Make it an issue with bd.")(adding)
    adding = click.argument("text", required=False)(adding)
    command(inner, "add", f"limpet journal {name} add {_quoted(example)}", session=True)(adding)

    @command(inner, "done", f"limpet journal {name} done {_quoted(example.split()[1])}", session=True)
    @click.argument("text")
    @pass_state
    def done(state: State, text: str) -> None:
        arguments = {"section": name, "text": text, "done": True}
        _answer(state, state.call("update_notes", arguments, state.writing()))


def _add_places(noun: Group) -> None:
    inner = group(noun, "identifier", "Places in files that are worth finding again.")

    @command(inner, "add", "limpet journal identifier add src/rates.py:7-20 --note 'Rate of the day'", session=True)
    @click.argument("text")
    @click.option("--note", metavar="TEXT", help="What is there.")
    @pass_state
    def add(state: State, text: str, note: str | None) -> None:
        arguments = {"section": "identifier", "text": text, "note": note}
        _answer(state, state.call("update_notes", arguments, state.writing()))

    setting = group(noun, "set", "The work at hand, and where it stands.")
    for name in ("task", "state"):
        _add_setting(setting, name)


def _add_setting(setting: Group, name: str) -> None:
    @command(setting, name, f"limpet journal set {name} 'Rounding of totals is next'", session=True)
    @click.argument("text", required=False)
    @pass_state
    def put(state: State, text: str | None) -> None:
        arguments = {"section": name, "text": line_from(text, state)}
        _answer(state, state.call("update_notes", arguments, state.writing()))


def _add_checkpoint(noun: Group) -> None:
    @command(
        noun,
        "checkpoint",
        "limpet journal checkpoint 'Rates are stored' --state 'Rounding of totals is next'",
        session=True,
    )
    @click.argument("summary", required=False)
    @click.option("--state", "standing", metavar="TEXT", help="Where it stands and what is next.")
    @click.option("--task", metavar="TEXT", help="The work at hand, if it changed.")
    @click.option("--agent", metavar="NAME", help="Who did it. The session when not given.")
    @click.option("--line", metavar="NAME", help="The line of work, if there are several.")
    @pass_state
    def checkpoint(state: State, /, summary: str | None, standing: str | None, **given: Any) -> None:
        arguments = {"summary": line_from(summary, state), "state": standing, **given}
        reply = state.call("checkpoint_session", arguments, state.writing())

        def draw(screen: Screen) -> None:
            screen.line(f"checkpoint {reply['at']}, {reply['file']}:{reply['line']}; handoff written")
            for title in ("blockers", "incomplete", "questions"):
                for one in reply[title]:
                    screen.line(f"{title}: {one}")

        state.answer(reply, draw)
        _notices(state, reply)


def _answer(state: State, reply: Json) -> None:
    words = f"{reply['file']}:{reply['line']}" if reply["line"] else reply["file"]
    state.answer(reply, lambda screen: screen.line(f"{words} {reply.get('id', '')}".strip()))
    _notices(state, reply)


def _notices(state: State, reply: Json) -> None:
    if state.json:
        return
    for place in reply.get("moved", ()):
        state.notice(f"the quote stands at {place}; that is what was written.")
    if reply.get("conflicts"):
        state.notice("people changed the same entries meanwhile; both versions are in the file: see `journal lint`.")
    if reply.get("hint"):
        state.notice(reply["hint"])


def _quoted(words: str) -> str:
    return f'"{words}"' if "'" in words else f"'{words}'"
