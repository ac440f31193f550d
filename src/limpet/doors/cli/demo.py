"""`limpet demo`: a short story with a scripted model, played on a real store that is deleted afterwards.

The model follows a script, but a turn names the words it relies on. If they are not in its window at that moment the
story stops, so what the demo shows to survive has survived.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from typing import Any

from limpet import wiring
from limpet.api import Limpet, wall_clock
from limpet.doors.cli.render import Screen
from limpet.doors.cli.run import Invocation
from limpet.importers import sample
from limpet.record import NamedTuple
from limpet.text import tokens

BEGIN_MS = 1_772_445_600_000  # 2026-03-02 10:00 UTC; a clock of its own makes the story the same every time
STEP_MS = 1_000
NEXT = (
    ("limpet install", "finds the coding agents on this machine and asks which to connect"),
    ("limpet demo --keep", "a sample project with conversations, a compaction, big outputs and a journal"),
    ("limpet dashboard", "shows it in a browser, and then your own"),
)
REQUEST = "Port the parser. Keep the old tests green."
PLAN = "# Port the parser\n- [x] read the grammar\n- [ ] casts, see grammar.y line 212\n- [ ] error messages\n"
REASON = "Casts make the grammar ambiguous at line 212 of grammar.y; two tokens of lookahead solve it."
TESTING = "`make parser-test` takes 40 seconds; `make test` takes 20 minutes."
HANDOFF = "Casts are done. Next: error messages, beginning with line numbers. The reasons are in notes tagged grammar."


class Turn(NamedTuple):
    """What the model says, the tool it calls, and the words in its window that it relies on."""

    says: str
    tool: str
    arguments: dict[str, Any]
    relies_on: tuple[str, ...] = ()


class Act(NamedTuple):
    title: str
    session: str
    turns: tuple[Turn, ...]


STORY = (
    Act(
        "Monday: the agent works and writes down what matters",
        "monday",
        (
            Turn(
                "The grammar is ambiguous where casts begin. I keep why, and what solves it.",
                "add_note",
                {"content": REASON, "tags": ["grammar", "decision"]},
                ("Port the parser",),
            ),
            Turn("Now the plan.", "write_notepad", {"content": PLAN}),
            Turn("Later sessions will want to know this too.", "write_memory", {"key": "testing", "content": TESTING}),
        ),
    ),
    Act(
        "The window is full and gets wiped; the same session goes on",
        "monday",
        (
            Turn(
                "My notepad says that casts come next. Why were they a problem?",
                "search_notes",
                {"query": "ambiguous"},
                ("- [ ] casts, see grammar.y line 212",),
            ),
            Turn(
                "Two tokens of lookahead, right. Done, and ticked off.",
                "update_notepad",
                {"operation": "find_replace", "find": "- [ ] casts", "replace": "- [x] casts"},
                ("two tokens of lookahead",),
            ),
            Turn("That is all for today.", "write_session_handoff", {"content": HANDOFF}),
        ),
    ),
    Act(
        "Tuesday: a new process, a new session, an empty window",
        "tuesday",
        (
            Turn(
                "Error messages are next. Before I touch the parser: what about casts?",
                "search_notes",
                {"query": "casts lookahead", "tags": ["grammar"]},
                ("Next: error messages", "tagged grammar"),
            ),
            Turn(
                "I know why it is as it is, and that 40 seconds are enough to test it. On with the work.",
                "update_notepad",
                {"operation": "append", "content": "- [ ] error messages: line numbers first\n"},
                ("two tokens of lookahead", "make parser-test"),
            ),
        ),
    ),
)


class Lost(Exception):
    """Words that the story relies on are not in the window."""


class ScriptedModel:
    """Follows the script as long as the window holds the words it relies on."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._turns = iter(turns)

    def reply(self, window: list[str]) -> Turn | None:
        turn = next(self._turns, None)
        for words in turn.relies_on if turn else ():
            if not any(words in message for message in window):
                raise Lost(words)
        return turn


def demo(cli: Invocation, keep: bool = False) -> int:
    if keep:
        return _keep(cli)
    with tempfile.TemporaryDirectory(prefix="limpet-demo-") as folder:
        story = _Story(os.path.join(folder, "limpet.db"))
        try:
            story.play()
        except Lost as problem:
            lost = str(problem)
            cli.answer({"ok": False, "lost": lost}, lambda screen: screen.line(f"Lost: {lost}", "red"))
            return 1
        cli.answer({"ok": True, "turns": story.turns, "survived": dict(story.survived)}, story.show)
    return 0


def _keep(cli: Invocation) -> int:
    """Fill the sample project."""
    folder = sample.make(wall_clock())
    store = os.path.join(folder, sample.STORE)
    look = f"limpet session list --store {store} --project {sample.PROJECT}"

    def show(screen: Screen) -> None:
        screen.line(f"The sample project is in {folder}", "bold")
        screen.line("Look at it: `limpet dashboard`, then Start, Open the sample project. The same page deletes it.")
        screen.line(f"In the terminal: {look}")

    cli.answer({"ok": True, "folder": folder, "store": store, "project": sample.PROJECT}, show)
    return 0


class _Story:
    """Plays the story and collects its lines, which are printed together at the end."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._now = BEGIN_MS
        self._lines: list[tuple[str, str]] = []
        self.turns = 0
        self.survived: list[tuple[str, str]] = []

    def play(self) -> None:
        for act in STORY:
            # Each act opens the store again, as another process would.
            with wiring.open(self._store, project="demo", clock=self._clock) as hold:
                self._act(hold, act)
        with wiring.open(self._store, project="demo", clock=self._clock) as hold:
            self._look_back(hold)

    def show(self, screen: Screen) -> None:
        for style, text in self._lines:
            screen.line(text, style)
        screen.line("")
        screen.line("What survived", "bold")
        screen.table(("what", "how it came back"), self.survived)
        screen.line("")
        screen.line("What next", "bold")
        screen.table(("command", "does"), NEXT)

    def _clock(self) -> int:
        self._now += STEP_MS
        return self._now

    def _act(self, hold: Limpet, act: Act) -> None:
        session = hold.session(act.session)
        tools = {tool.name: tool for tool in hold.tools("core", session=act.session)}
        context = session.context()
        # The first act begins with the request, the later ones with what Limpet brings back.
        window = [hold.guidance("core"), REQUEST if act is STORY[0] else context]
        if self._lines:
            self._say("", "")
        self._say("bold", act.title)
        if act is STORY[0]:
            self._say("green", f"  person: {REQUEST}")
        else:
            self._say("", f"  window: rebuilt from the store, about {tokens.count(context):,} tokens:")
            for line in context.splitlines():
                self._say("dim", f"  | {line}")
        model = ScriptedModel(act.turns)
        while turn := model.reply(window):
            session.used()  # the window has served a model call, and with it the handoff
            answer = str(tools[turn.tool].handler(turn.arguments))
            window += [turn.says, answer]
            self.turns += 1
            self._say("green", f"  agent: {turn.says}")
            text = " / ".join(answer.splitlines())
            self._say("cyan", f"    calls {turn.tool} -> {text if len(text) < 150 else text[:149] + '…'}")

    def _look_back(self, hold: Limpet) -> None:
        """Read what is in the store after two sessions, by the same calls as any program."""
        later = hold.session("wednesday")
        notes = later.notes.search("two tokens of lookahead").notes
        plan = hold.session("monday").notepad
        for name, survived, how in (
            (
                "the reason, in a note",
                any(note.content == REASON for note in notes),
                "found by its words from any session",
            ),
            ("the plan, in the notepad", "- [x] casts" in plan.read(), "in full in every window of its session"),
            ("its earlier version", len(plan.history()) == 2, "each write is a version: pad history, pad restore"),
            ("how to test, in memory", TESTING in later.context(), "in the first window of every session"),
            ("what comes next, in the handoff", later.handoff.read().used_by == "tuesday", "read first, and used once"),
            ("every change", len(hold.history()) > 7, "history and undo"),
        ):
            if not survived:
                raise Lost(name)
            self.survived.append((name, how))

    def _say(self, style: str, text: str) -> None:
        self._lines.append((style, text))
