"""The window over real stores: following a conversation, clearing, warning, compacting, and bringing messages back."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from types import FrameType

import pytest

from limpet import errors
from limpet.api import Limpet, Session
from limpet.model import FOLD, MESSAGE, Entry
from limpet.session.notepad import EMPTY_HINT
from limpet.settings import Bounds, OutputRules, WindowRules
from limpet.store import Listing, Words
from limpet.text import tokens
from limpet.window.messages import SYSTEM, Call, Message, Text, assistant, result, system, user
from limpet.window.plan.context import MARK, WARNING_BEGINS, is_injected
from limpet.window.plan.controller import Clear, Compact, Proceed, Step, TooBig, Warn
from limpet.window.plan.counts import exact
from limpet.window.plan.rules import unpaired
from limpet.window.sections import CallerSections
from limpet.window.transcript import FoldRecord
from operations.conftest import Opener

LIMIT = 6_000


def turn(number: int, lines: int = 60) -> list[Message]:
    """One call with a result of some 250 tokens."""
    said = f"Step {number}: reading on."
    call = Call(f"c{number}", "shell", json.dumps({"command": f"cat part{number}.txt"}))
    return [assistant(said, call), result(f"c{number}", f"row {number} of the table\n" * lines)]


def chat(number: int) -> list[Message]:
    return [user(f"Question {number}? " + "why " * 60), assistant(f"Answer {number}. " + "because " * 60)]


def kinds(steps: Sequence[Step]) -> list[str]:
    return [type(step).__name__ for step in steps]


def grow(session: Session, talk: list[Message], until: type, *, limit: int = LIMIT) -> tuple[list[Message], Step]:
    """Chat on until the window answers so."""
    for number in range(500):
        step = session.window.next(talk, limit=limit)
        if isinstance(step, until):
            return talk, step
        talk = [*talk, *chat(number)]
    raise AssertionError(f"no {until.__name__} after 500 turns")


def folds(hold: Limpet, session: str = "one") -> list[Entry]:
    return list(hold.store.entries.list(hold.scope, Listing((FOLD,), session, include_done=True)).entries)


def late(step: Step) -> str:
    (found,) = [message.text() for message in step.messages if message.text().startswith(MARK)]
    return found


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_a_request_holds_everything_in_its_place(hold: Limpet) -> None:
    before = hold.session("before")
    before.handoff.write("Casts are next.")
    before.memory.write("goal", "A parser.")
    work = hold.session("work")
    work.scratch("tried two tokens", "replace")
    work.pin("Never push to main.")
    given = CallerSections("Be brief.", "skill: release", "tools: shell", "Active: casts")
    step = work.window.next([system("You are careful."), user("go on")], given=given)
    assert isinstance(step, Proceed)
    texts = [message.text() for message in step.messages]
    assert texts[0] == "## Handoff from the last session\nCasts are next."
    assert texts[1] == "You are careful."
    order = ["Be brief.", "skill: release", "tools: shell", "## Memory of this project", "Active: casts"]
    places = [texts[2].index(text) for text in order]
    assert places == sorted(places)
    assert texts[3] == "go on"
    assert texts[4].startswith(f"{MARK}\n\n## Session Notepad\n{EMPTY_HINT}\n\n## Scratchpad of the present task\n")
    assert texts[4].endswith("## Pinned\n\nNever push to main.")
    assert step.gauge.sections.keys() >= {"handoff", "system prompt", "memory", "journal", "notepad", "pins", "user"}
    assert step.gauge.used == sum(step.gauge.sections.values()) + 4


def test_the_notepad_is_as_it_is_now_in_every_request_and_nothing_before_it_changes(hold: Limpet) -> None:
    work, talk = hold.session("one"), [user("port it")]
    first = work.window.next(talk)
    assert work.window.next(talk).messages == first.messages
    work.notepad.write("- [ ] casts")
    work.memory.write("late", "Written while the window is in use.")
    talk += turn(1)
    second = work.window.next(talk)
    assert "## Session Notepad\n- [ ] casts" in late(second)
    assert second.messages[: len(first.messages) - 1] == first.messages[:-1]
    assert second.gauge.reused == sum(size for name, size in first.gauge.sections.items() if name != "notepad")


def test_what_is_corrected_while_a_window_is_in_use_is_said_in_every_request(hold: Limpet) -> None:
    before = hold.session("before")
    before.memory.write("db", "We use Postgres 14")
    before.memory.write("port", "The port is 8080")
    work, talk = hold.session("one"), [user("port it")]
    first = work.window.next(talk)
    assert "Corrected in memory" not in late(first)
    hold.session("other").memory.write("database", "Correction: we use Postgres 16, not 14", replaces="db")
    for number, prompt in enumerate(("which Postgres do we use?", "which one again?")):
        talk += [*turn(number), user(prompt)]
        step = work.window.next(talk)
        assert step.messages[: len(first.messages) - 1] == first.messages[:-1], "the cache of the provider stays"
        correction = "- memory database: Correction: we use Postgres 16, not 14 (in place of memory db)"
        assert late(step).count(correction) == 1
        assert late(step).count("Postgres 16") == 1, "it is not recalled besides"
    hold.session("other").memory.write("port", "The port is 9090")
    talk += [*turn(3), user("go on")]
    assert "- memory port: The port is 9090 (in place of what it said before)" in late(work.window.next(talk))
    hold.session("other").memory.write("late", "Something new")
    assert "Something new" not in late(work.window.next(talk)), "no section has another text of it"
    later = hold.session("later").window.next([user("hello")])
    assert "Corrected in memory" not in late(later)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("The port is 8080", "The port is 80", True),  # the beginning of the old text
        (
            f"The shop is in {'the old ' * 20}town. Port 8080.",
            f"The shop is in {'the old ' * 20}town. Port 9090.",
            True,
        ),
        ("The port is 80\n\nThe host is db", "The port is 80", True),
        ("The port is 80", "The port is 80\nThe host is db", False),  # more, and nothing else
        ("The port is 80", "The port is 80", False),
    ],
)
def test_a_text_that_says_something_else_is_told_from_one_that_says_more(
    hold: Limpet, old: str, new: str, said: bool
) -> None:
    before = hold.session("before")
    before.memory.write("net", old)
    before.memory.write("style", "Tabs")
    work, talk = hold.session("one"), [user("port it")]
    work.window.next(talk)
    hold.session("other").memory.write("net", new)
    hold.session("other").memory.pin("net")
    talk += [*turn(1), user("go on")]
    assert ("in place of what it said before" in late(work.window.next(talk))) is said


def test_a_handoff_is_used_up_when_the_request_was_answered(hold: Limpet) -> None:
    hold.session("before").handoff.write("Casts are next.")
    work = hold.session("work")
    work.window.next([user("hello")])
    assert hold.session("other").context().startswith("## Handoff")
    work.window.sent(used=40)
    assert not hold.session("other").context().startswith("## Handoff")
    assert work.window.next([user("hello")]).messages[0].text().startswith("## Handoff")


def test_the_providers_count_moves_the_estimate(hold: Limpet) -> None:
    work, talk = hold.session("one"), [user("port it"), *chat(1)]
    plain = work.window.next(talk).gauge.used
    work.window.sent(used=plain * 2)
    assert work.window.next(talk).gauge.used == plain * 2
    assert work.window.next(talk, used=plain).gauge.used == plain
    assert work.window.next(talk, used=plain * 100).gauge.used == round(plain * 2.5)


# --- following --------------------------------------------------------------------------------------------------------


def test_messages_are_counted_exactly_where_the_extra_is_installed(hold: Limpet) -> None:
    tokenizer = exact()
    assert tokenizer is not None
    text = "Prüfe zqvx-0911: Lorem wibblefrotz, quonk!\n" * 40
    step = hold.session("one").window.next([user(text)])
    assert step.gauge.sections["user"] == tokenizer.count(text) + 4 != tokens.count(text) + 4


def test_messages_are_kept_once_and_searchable(hold: Limpet) -> None:
    work, talk = hold.session("one"), [system("prompt"), user("Where are the casts?")]
    for number in range(3):
        work.window.next(talk)
        talk += turn(number)
    work.window.next(talk)
    page = hold.store.entries.list(hold.scope, Listing((MESSAGE,), "one"))
    assert page.total == 7
    assert hold.store.entries.containing(hold.scope, Listing((MESSAGE,)), "where are THE casts").total == 1
    assert len(hold.store.entries.matching(hold.scope, Listing((MESSAGE,)), Words((("cast",),)))) == 1
    assert {event.kind for event in hold.history()} == {"session"}


@pytest.mark.parametrize("own_list", [True, False])
def test_the_caller_may_go_on_with_its_own_list_or_with_ours(hold: Limpet, own_list: bool) -> None:
    work, talk = hold.session("one"), [system("prompt"), user("port it")]
    steps: list[Step] = []
    for number in range(90):
        step = work.window.next(talk, limit=LIMIT)
        steps.append(step)
        talk = [*(talk if own_list else step.messages), *chat(number)]
    names = kinds(steps)
    assert names.count("Compact") >= 3
    assert [name for name in names if name != "Proceed"] == ["Warn", "Compact"] * names.count("Compact") + (
        ["Warn"] if names.count("Warn") > names.count("Compact") else []
    )
    assert hold.store.entries.tally(hold.scope, MESSAGE, "one").total == 1 + 89 * 2
    for step in steps:
        assert unpaired(step.messages) == frozenset()
        assert sum(is_injected(message) and message.text().startswith(MARK) for message in step.messages) == 1
        assert step.messages[0] == system("prompt")


def test_another_process_takes_a_session_up_where_it_stands(opened: Opener) -> None:
    one = opened()
    talk, compacted = grow(one.session(), [user("port it")], Compact)
    two = opened().session()
    assert two.window.next([], limit=LIMIT).messages == compacted.messages
    assert two.window.next(talk, limit=LIMIT).messages == compacted.messages
    assert two.window.messages() == [m for m in compacted.messages if not is_injected(m) and m.role != SYSTEM]
    fresh = opened().session().window.next([*compacted.messages, *chat(900)], limit=LIMIT)
    assert fresh.messages[: len(compacted.messages) - 1] == compacted.messages[:-1]


def test_a_conversation_that_goes_another_way_is_followed_and_nothing_is_lost(hold: Limpet) -> None:
    work = hold.session("one")
    work.window.next([user("port it"), *turn(1), assistant("done, badly")])
    step = work.window.next([user("port it"), *turn(1), assistant("done, well"), user("thanks")])
    texts = [message.text() for message in step.messages]
    assert "done, well" in texts
    assert "done, badly" not in texts
    assert hold.store.entries.containing(hold.scope, Listing((MESSAGE,)), "done, badly").total == 1
    begun_anew = work.window.next([user("something else")])
    assert [message.text() for message in begun_anew.messages][:-1] == ["something else"]
    assert work.window.uncompact(4).content == "done, badly"


def test_what_a_caller_rewrites_under_a_fold_is_there_when_the_messages_come_back(hold: Limpet) -> None:
    work = hold.session("one")
    talk = [user("port it"), *turn(1)]
    talk, compacted = grow(work, talk, Compact)
    rewritten = [*talk[:2], result("c1", "another result"), *talk[3:]]
    step = work.window.next(rewritten, limit=200_000)
    assert step.messages == compacted.messages  # the fold stands, and nothing is stored again
    assert hold.store.entries.tally(hold.scope, MESSAGE, "one").total == len(talk)
    work.window.uncompact(1, len(talk))
    assert work.window.messages() == rewritten
    cut = rewritten[:1]
    assert [m for m in work.window.next(cut, limit=200_000).messages if not is_injected(m)] == cut


def test_a_caller_that_drops_what_a_fold_shows_goes_on_with_it_all_the_same(hold: Limpet) -> None:
    work = hold.session("one")
    talk, compacted = grow(work, [user("port it")], Compact)
    window = [message for message in compacted.messages if not is_injected(message)]
    step = work.window.next([window[0], *window[-2:], user("new")], limit=LIMIT)
    assert [message for message in step.messages if not is_injected(message)] == [*window, user("new")]
    assert hold.store.entries.tally(hold.scope, MESSAGE, "one").total == len(talk) + 1


def test_two_loops_in_one_session_are_told_apart(opened: Opener) -> None:
    one, two = opened().session(), opened().session()
    one.window.next([user("a")])
    two.window.next([user("a")])
    one.window.next([user("a"), assistant("b")])
    assert [m.text() for m in two.window.next([user("a"), assistant("c")]).messages[:-1]] == ["a", "c"]


def test_what_cannot_be_stored_as_text_comes_back_all_the_same(opened: Opener) -> None:
    talk = [user("nul \0 and half \udc80"), Message("assistant", (Text("ü" * 50_000, {"cache": True}),))]
    opened().session().window.next(talk)
    assert opened().session().window.messages() == talk


def test_secrets_in_results_are_masked_in_the_store_and_not_in_the_window(opened: Opener) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    talk = [user("who am I?"), assistant("", Call("1", "shell", "{}")), result("1", f"token: {secret}")]
    one = opened()
    assert one.session().window.next(talk).messages[2] == talk[2]
    assert secret not in "\n".join(one.export_lines())
    again = opened().session()
    assert again.window.next([*talk, assistant("you")]).messages[2] == talk[2]  # the caller still has it
    (kept,) = opened().session().window.messages()[2].results()
    assert isinstance(kept.parts[0], Text)
    assert "[redacted:github-token" in kept.parts[0].text


# --- warning and compacting -------------------------------------------------------------------------------------------


def test_a_compaction_in_which_nothing_could_be_looked_for_has_no_score(hold: Limpet) -> None:
    talk = [user("…"), *(assistant(". . . " * 120) for _ in range(60))]
    step = hold.session("one").window.next(talk, limit=LIMIT)
    assert isinstance(step, Compact)
    assert step.score is None
    assert hold.call("list_folds", {}, session="one")["folds"][-1]["score"] is None


def test_warn_then_one_turn_then_compact(hold: Limpet) -> None:
    work = hold.session("one")
    work.pin("Never push to main.")
    talk, warned = grow(work, [user("port it")], Warn)
    last = warned.messages[-1].text()
    assert last.startswith(WARNING_BEGINS)
    assert last.endswith("is kept in full.")
    assert isinstance(work.window.next(talk, limit=LIMIT), Warn)  # not answered: sent again, and not counted twice
    work.notepad.append("- the API stays\n")  # what the agent does in its turn
    talk += [assistant("Notepad is up to date.")]
    step = work.window.next(talk, limit=LIMIT)
    assert isinstance(step, Compact)
    assert step.warned
    assert step.score is not None
    assert step.score > 0.9
    assert step.gauge.used <= LIMIT * 45 // 100
    assert "- the API stays" in late(step)
    assert "Never push to main." in late(step)
    summary = step.messages[0].text()
    assert summary.startswith(f"[Folded: messages 1 to {step.folded} of this session.")
    asked = [message for message in talk if message.role == "user"][-1]
    assert asked in step.messages
    assert isinstance(work.window.next(talk, limit=LIMIT), Proceed)
    assert sum(entry.extra["how"] == "warn" for entry in folds(hold)) == 1


def test_of_similar_reports_the_one_that_failed_is_in_the_window_after_it_was_compacted(hold: Limpet) -> None:
    """Reports of one form that differ in a number and an outcome: none stands for another, folded or dropped."""
    work = hold.session("one")
    talk = [user("Watch the backups of tonight.")]
    for number in range(4700, 4720):
        end = "failed: disk full" if number == 4711 else "passed"
        talk += [user("And the next?"), assistant(f"Backup job {number} of the customer database {end}.")]
    talk, step = grow(work, talk, Compact)
    summary = step.messages[0].text()
    assert summary.startswith("[Folded: ")
    assert "Backup job 4711 of the customer database failed: disk full." in summary
    for number, end in ((4711, "failed: disk full"), (4712, "passed")):
        found = hold.recall(f"how did backup job {number} end?").hits[0]
        assert f"{number}" in found.snippet
        assert end in found.snippet
        assert (found.same, found.replaces) == ((), ())


def test_the_last_request_stays_when_only_tools_spoke_since(hold: Limpet) -> None:
    work = hold.session("one")
    asked = user("Fix the casts in src/casts.py, and only those. " + "Mind the details. " * 30)
    talk = [user("hello"), assistant("hi"), asked]
    seen: list[Step] = []
    for number in range(200):
        step = work.window.next(talk, limit=LIMIT)
        seen.append(step)
        assert asked in step.messages
        assert unpaired(step.messages) == frozenset()
        talk = [*talk, *turn(number)]
    assert kinds(seen).count("Compact") >= 2
    last = kinds(seen)[-1] == "Warn"  # whose compaction would be the next step
    assert kinds(seen).count("Warn") == kinds(seen).count("Compact") + last
    assert "Clear" in kinds(seen)


def test_a_model_may_summarise_and_its_failure_does_no_harm(opened: Opener) -> None:
    talk, _ = grow(opened().session(), [user("port PAR-118")], Warn)
    talk = [*talk, assistant("ok")]
    seen: list[int] = []

    def model(messages: list[Message]) -> str:
        seen.append(len(messages))
        return "They talked."

    one = opened().session("one").window.next(talk, limit=LIMIT, summarise=model)
    assert isinstance(one, Compact)
    assert seen
    assert "They talked." in one.messages[0].text()
    assert "PAR-118" in one.messages[0].text()  # a probe found it missing


@pytest.mark.parametrize("answer", [ValueError("no model today"), "   "])
def test_a_summariser_that_fails_is_replaced(opened: Opener, answer: object) -> None:
    talk, _ = grow(opened().session(), [user("port PAR-118")], Warn)

    def model(messages: list[Message]) -> str:
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    step = opened().session().window.next([*talk, assistant("ok")], limit=LIMIT, summarise=model)
    assert isinstance(step, Compact)
    assert "Asked for:\n- port PAR-118" in step.messages[0].text()


def test_a_compaction_that_cannot_pass_is_not_made(hold: Limpet) -> None:
    work = hold.session("one")
    for number in range(5):
        work.pin(f"Rule {number}. " + "It matters. " * 300)
    talk = [user("port it")]
    step = work.window.next(talk, limit=LIMIT)
    for number in range(8):
        talk += chat(number)
        step = work.window.next(talk, limit=LIMIT)
    assert isinstance(step, Proceed)
    assert "must have 2,700 or fewer" in step.problems[0]
    assert all(entry.extra["how"] == "warn" for entry in folds(hold))
    assert [message for message in step.messages if message in talk] == talk


def test_a_window_that_is_too_full_to_be_sent_is_made_smaller_at_once(hold: Limpet) -> None:
    work = hold.session("one")
    talk = [user("read it all"), assistant("", Call("1", "shell", '{"command": "cat big"}'))]
    talk.append(result("1", "a long line of the log\n" * 3_000))
    step = work.window.next(talk, limit=LIMIT)
    assert isinstance(step, Clear)
    assert step.gauge.used < LIMIT * 60 // 100
    shown = step.messages[2].results()[0].parts[0]
    assert isinstance(shown, Text)
    assert shown.text.startswith("📁 Output cached: ")
    id = shown.text.split()[3]
    assert hold.session("one").outputs.read_content(id) == "a long line of the log\n" * 3_000
    huge = [user("q " * 4_000), assistant("a " * 4_000), user("and now?")]
    other = hold.session("two").window.next(huge, limit=LIMIT)
    assert isinstance(other, Compact)
    assert not other.warned
    assert huge[-1] in other.messages


def test_room_made_by_the_agent_voids_the_warning(hold: Limpet) -> None:
    work = hold.session("one")
    work.window.next([user("port it")], limit=LIMIT)
    hold.call("begin_task", {"description": "read everything"}, session="one")
    talk, _ = grow(work, [user("port it"), assistant("", Call("b", "begin_task", "{}")), result("b", "{}")], Warn)
    hold.call("end_task", {"summary": "read it"}, session="one")
    talk += [assistant("", Call("e", "end_task", "{}")), result("e", '{"ok": true}')]
    step = work.window.next(talk, limit=LIMIT)
    assert isinstance(step, Proceed)
    assert step.gauge.used < LIMIT // 4
    assert not [entry for entry in folds(hold) if entry.extra["how"] == "compact"]
    _, again = grow(work, talk, Warn)
    assert isinstance(again, Warn)


# --- clearing ---------------------------------------------------------------------------------------------------------


def test_old_results_become_a_line_with_a_reference_that_brings_them_back(hold: Limpet) -> None:
    work, talk = hold.session("one"), [user("read the parts")]
    step: Step = work.window.next(talk, limit=LIMIT)
    number = 0
    while not isinstance(step, Clear):
        talk += turn(number)
        number += 1
        step = work.window.next(talk, limit=LIMIT)
    assert step.cleared == number - 4
    assert step.freed > LIMIT // 10
    parts = [message.results()[0].parts[0] for message in step.messages if message.results()]
    lines = [part.text for part in parts if isinstance(part, Text)]
    assert all(line.startswith("[Cleared shell(cat part") for line in lines[:-4])
    assert not any(line.startswith("[Cleared") for line in lines[-4:])
    uri = lines[0].rpartition(" ")[2].rstrip("]")
    assert work.outputs.expand(uri) == "row 0 of the table\n" * 60
    assert work.window.next(talk, limit=LIMIT).messages == step.messages


def test_nothing_is_cleared_where_outputs_are_not_kept(hold: Limpet) -> None:
    hold._bounds = Bounds(outputs=OutputRules(enabled=False))
    work, talk, seen = hold.session("one"), [user("read")], []
    for number in range(40):
        talk += turn(number)
        seen.append(work.window.next(talk, limit=LIMIT))
    assert "Clear" not in kinds(seen)
    assert "Compact" in kinds(seen)


def test_thresholds_are_settings(hold: Limpet) -> None:
    hold._bounds = Bounds(window=WindowRules(limit=3_000, warn_percent=10))
    work = hold.session("one")
    assert isinstance(work.window.next([user("hello")]), Proceed)
    warned = work.window.next([user("hello"), *chat(1), *chat(2), *chat(3)])
    assert isinstance(warned, Warn)
    assert warned.gauge.limit == 3_000


# --- bringing back ----------------------------------------------------------------------------------------------------


def test_uncompact_brings_messages_back_with_their_pairs(hold: Limpet) -> None:
    work = hold.session("one")
    talk = [user("port it"), *turn(1), assistant("half done")]
    talk, compacted = grow(work, talk, Compact)
    assert talk[2] not in compacted.messages
    restored = work.window.uncompact(3)
    assert (restored.first, restored.last) == (2, 3)
    assert restored.content.startswith("Step 1: reading on.")
    step = work.window.next(talk, limit=LIMIT)
    at = step.messages.index(talk[1])
    assert step.messages[at + 1] == talk[2]
    assert unpaired(step.messages) == frozenset()
    whole = work.window.uncompact(1, len(talk))
    assert (whole.first, whole.last) == (1, len(talk))
    assert work.window.messages() == talk
    with pytest.raises(errors.NotFound, match="no fold covers the messages 2 to 3"):
        work.window.uncompact(2, 3)
    with pytest.raises(errors.NotFound, match="no fold covers"):
        work.window.uncompact(0, 1)


def test_a_fold_is_read_once_however_many_follow_it(hold: Limpet) -> None:
    window, talk, read = hold.session("one").window, [user("go on")], 0
    code = FoldRecord.from_json.__func__.__code__  # type: ignore[attr-defined]

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal read
        read += event == "call" and frame.f_code is code

    sys.setprofile(count)
    try:
        for number in range(60):
            talk = [message for message in window.next(talk, limit=3_000).messages if not is_injected(message)]
            talk += turn(number)
    finally:
        sys.setprofile(None)
    stored = len(folds(hold))
    assert stored > 20
    assert stored <= read < 5 * stored  # a fold is read as a warning or a compaction too, by what looks for the newest


def test_a_fold_can_be_undone_by_its_number_and_is_never_what_undo_means(hold: Limpet) -> None:
    work = hold.session("one")
    work.notepad.write("mine")
    talk, step = grow(work, [user("port it")], Compact)
    assert isinstance(step, Compact)
    (event,) = [event for event in hold.history(kind=FOLD) if event.operation == "compact"]
    assert hold.undo().kind == "notepad"
    assert hold.undo(event.seq).key == step.fold
    assert work.window.messages() == talk


def test_folds_are_listed_with_their_scores_and_travel_with_an_export(opened: Opener) -> None:
    one = opened()
    talk, step = grow(one.session(), [user("port it")], Compact)
    assert isinstance(step, Compact)
    (fold,) = one.call("list_folds", {})["folds"]
    assert (fold["how"], fold["first"], fold["last"]) == ("compact", 1, step.folded)
    assert fold["score"] == pytest.approx(step.score, abs=1e-4)
    assert fold["before"] > fold["after"]
    copy = opened(project="copy")
    copy.import_lines(one.export_lines())
    assert copy.session().window.next(talk, limit=LIMIT).messages == step.messages
    copy.session().window.uncompact(1, 2)
    assert copy.session("one").window.messages()[1] == talk[0]


def test_the_gauge_is_the_same_for_those_who_only_look(opened: Opener) -> None:
    one = opened()
    _, step = grow(one.session(), [user("port it")], Compact)
    shown = opened().call("show_window", {})
    assert shown["limit"] == LIMIT
    assert shown["sections"] == step.gauge.sections
    assert shown["used"] == step.gauge.used
    assert opened("nobody").call("show_window", {})["limit"] == 200_000


# --- what cannot fit --------------------------------------------------------------------------------------------------


def test_a_request_that_cannot_fit_is_an_outcome_of_its_own(hold: Limpet) -> None:
    huge = user("one more line of the log, as it was\n" * 3_000)
    step = hold.session("one").window.next([user("hello"), assistant("hi"), huge], limit=LIMIT)
    assert isinstance(step, TooBig)
    assert step.gauge.used > LIMIT
    assert "the window 6,000; the largest part is user with" in step.advice
    assert "shorten=True" in step.advice


def test_a_message_that_is_too_long_is_kept_and_its_preview_sent_if_the_caller_allows(opened: Opener) -> None:
    hold = opened()
    work, text = hold.session("one"), "one more line of the log, as it was\n" * 3_000
    talk = [user("hello"), assistant("hi"), user(text)]
    step = work.window.next(talk, limit=LIMIT, shorten=True)
    assert not isinstance(step, TooBig)
    assert step.gauge.used <= LIMIT * 60 // 100
    shown = step.messages[2].text()
    assert shown.startswith("[This message is longer than the window.")
    id = shown.split("Output cached: ")[1].split()[0]
    assert work.outputs.read_content(id) == text
    for held in (talk, [message for message in step.messages if not is_injected(message)]):
        again = opened().session().window.next([*held, assistant("read")], limit=LIMIT, shorten=True)
        assert again.messages[2].text() == shown
    assert hold.store.entries.tally(hold.scope, MESSAGE, "one").total == 4
    work.window.uncompact(3)
    assert work.window.messages()[2] == talk[2]


def test_a_window_that_is_half_full_of_pins_is_compacted_rather_than_too_big(hold: Limpet) -> None:
    """No compaction gets below its target then. One that makes the request fit is better than none."""
    session, pins = hold.session("one"), ["Never delete a measurement. " * 80, "Never survey a closed track. " * 80]
    for text in pins:
        session.pin(text.strip())
    talk: list[Message] = []
    compacted = 0
    for number in range(40):
        talk.append(user(f"Question {number}: " + "what about the next junction? " * 5))
        step = session.window.next(talk, limit=2_000)
        assert not isinstance(step, TooBig)
        assert step.gauge.used <= 2_000
        assert all(text.strip() in step.messages[-2].text() + step.messages[-1].text() for text in pins)
        compacted += isinstance(step, Compact)
        talk.append(assistant(f"Answer {number}: " + "it was surveyed again. " * 5))
    assert 1 <= compacted <= 10


def test_what_stands_in_every_request_may_be_too_big_itself(hold: Limpet) -> None:
    step = hold.session("one").window.next([system("Rule. " * 9_000), user("hello")], limit=LIMIT, shorten=True)
    assert isinstance(step, TooBig)
    assert "the largest part is system prompt" in step.advice
    assert "shorten=True" not in step.advice, "which would not help"
