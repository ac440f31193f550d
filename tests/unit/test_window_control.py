"""What is sent, in which order; what is folded and when that may be; and what the controller decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.settings import WindowRules
from limpet.text import tokens
from limpet.window.messages import SYSTEM, TOOL, Call, Message, assistant, result, system, user
from limpet.window.plan import compaction
from limpet.window.plan.context import (
    HANDOFF,
    HEAD_MARK,
    MARK,
    MEMORY,
    NOTEPAD,
    PINS,
    PROMPT,
    WARNING_BEGINS,
    PromptSection,
    assemble,
    is_injected,
    request,
    shared,
    split,
)
from limpet.window.plan.controller import CLEAR, COMPACT, PROCEED, WARN, State, decide, void
from limpet.window.plan.facts import words
from limpet.window.plan.folding import view
from limpet.window.plan.rules import unpaired
from talks import histories

RULES = WindowRules()


def size(message: Message) -> int:
    return tokens.count(words([message])) + 4


# --- assembly ---------------------------------------------------------------------------------------------------------

SECTIONS = {
    PINS: PromptSection("## Pinned\n\nNever push."),
    HANDOFF: PromptSection("## Handoff\nCasts are next."),
    PROMPT: PromptSection("You are careful."),
    MEMORY: PromptSection("## Memory\nA parser."),
    NOTEPAD: PromptSection("## Session Notepad\n- [ ] casts"),
}
TALK = [user("go on"), assistant("", Call("1", "shell", "{}")), result("1", "ok")]


def test_the_stable_part_comes_first_and_what_changes_comes_last() -> None:
    sent = request(assemble(SECTIONS), [system("The caller's own prompt.")], TALK, "")
    assert [message.role for message in sent] == [SYSTEM, SYSTEM, SYSTEM, "user", "assistant", TOOL, "user"]
    assert sent[0].text() == "## Handoff\nCasts are next."
    assert sent[2].text() == f"{HEAD_MARK}\n\nYou are careful.\n\n## Memory\nA parser."
    assert sent[-1].text() == f"{MARK}\n\n## Session Notepad\n- [ ] casts\n\n## Pinned\n\nNever push."
    assert request(assemble(SECTIONS), [], TALK, "beware")[-1] == user("beware")


def test_an_edit_of_the_notepad_changes_nothing_before_it() -> None:
    before = request(assemble(SECTIONS), [], TALK, "")
    edited = SECTIONS | {NOTEPAD: PromptSection("## Session Notepad\n- [x] casts")}
    after = request(assemble(edited), [], [*TALK, assistant("next")], "")
    assert shared(before, after) == len(before) - 1
    assert shared(before, request(assemble(SECTIONS), [], TALK, "")) == len(before)


def test_a_section_that_is_cut_says_so() -> None:
    long = PromptSection("word " * 500, 50, "read_handoff shows all of it")
    made = assemble(SECTIONS | {HANDOFF: long})
    (left,) = made.left_out
    assert left.startswith("handoff: 4")
    assert left.endswith("tokens left out; read_handoff shows all of it")
    assert made.first.endswith(f"[{left}]")
    assert made.sizes[HANDOFF] < 50 + 30


def test_what_we_put_into_a_request_is_known_when_it_comes_back() -> None:
    warning = user(f"{WARNING_BEGINS} and so on")
    sent = request(assemble(SECTIONS), [system("own")], TALK, warning.text())
    prompt, talk = split([*sent, assistant("noted")])
    assert talk == [*TALK, assistant("noted")]
    assert all(message.role == SYSTEM for message in prompt)
    assert is_injected(warning)
    assert not is_injected(assistant(warning.text()))


# --- compaction -------------------------------------------------------------------------------------------------------


@given(histories(most=20), st.integers(0, 400))
def test_a_plan_splits_no_pair_and_keeps_the_last_request_and_the_tail(talk: list[Message], tail: int) -> None:
    items = view(talk, [])
    sizes = [size(message) for message in talk]
    plan = compaction.plan(items, sizes, tail=tail)
    if plan is None:
        return
    after = view(talk, [plan.fold("f", "summary")])
    rest = [item.message for item in after]
    assert rest[0] == user("summary")
    assert unpaired(rest) <= unpaired(talk)
    kept = [item.first for item in after if not item.fold]
    assert kept == sorted(set(kept))
    assert kept[-1] == len(talk) - 1
    asked = compaction.last_request(items)
    if asked is not None:
        assert any(message is talk[asked] for message in rest)
    in_tail = [at for at in kept if at > plan.last]
    assert in_tail == list(range(plan.last + 1, len(talk)))


def test_there_is_nothing_to_fold_in_a_short_talk_or_behind_a_fold() -> None:
    assert compaction.plan(view(TALK[:1], []), [9], tail=100) is None
    items = view(TALK, [])
    plan = compaction.plan(items, [9, 9, 9], tail=0)
    assert plan is not None
    assert (plan.first, plan.last, plan.shown) == (0, 0, ((0, 0),))
    folded = view(TALK, [plan._replace(shown=()).fold("f", "summary")])
    assert compaction.plan(folded, [9, 9, 9], tail=0) is None


def verified(sent: list[Message], *, asked: Message | None = None, tokens: int = 10) -> tuple[str, ...]:
    return compaction.verify(
        sent,
        pins=[compaction.pin("Never push.")],
        request=asked,
        unpaired_before=frozenset(),
        tokens=tokens,
        most=100,
    )


def test_a_request_without_a_pin_or_the_last_request_or_a_pair_or_room_does_not_pass() -> None:
    good = [user("fix it"), *TALK[1:], user("## Pinned\n\nNever push.")]
    assert verified(good, asked=user("fix it")) == ()
    assert "the pinned text 'Never push.'" in verified(good[:-1])[0]
    assert "the pinned text" in verified([*good[:-1], result("1", "Never push.")])[0]  # said by a tool is not pinned
    assert "the last request" in verified(good, asked=user("fix it!"))[0]
    assert "1 calls or results" in verified([good[0], good[1], good[3]])[0]
    assert "must have 100 or fewer" in verified(good, tokens=101)[0]
    changed = compaction.Pin("Never push.", compaction.pin("Never push!").digest)
    problems = compaction.verify(good, pins=[changed], request=None, unpaired_before=frozenset(), tokens=1, most=2)
    assert "as it was pinned" in problems[0]


# --- the controller ---------------------------------------------------------------------------------------------------


def choice(used: int, *, clearable: int = 0, warned: bool = False, answered: bool = False, able: bool = True) -> str:
    return decide(State(used, 1_000, clearable, warned, answered, able), RULES)


def test_every_threshold() -> None:
    assert choice(599, clearable=500) == PROCEED
    assert choice(600, clearable=99) == PROCEED
    assert choice(600, clearable=100) == CLEAR
    assert choice(799) == PROCEED
    assert choice(800) == WARN
    assert choice(800, warned=True) == WARN  # the warning was not answered: it is sent again
    assert choice(800, warned=True, answered=True) == COMPACT
    assert choice(500, warned=True, answered=True) == COMPACT
    assert choice(800, warned=True, answered=True, clearable=500) == COMPACT
    assert choice(950) == COMPACT
    assert choice(950, clearable=1) == CLEAR
    assert choice(990, able=False) == WARN
    assert choice(990, warned=True, answered=True, able=False) == PROCEED


def test_a_warning_is_void_when_the_agent_made_room_itself() -> None:
    assert void(State(449, 1_000, 0, True, True), RULES)
    assert not void(State(450, 1_000, 0, True, True), RULES)
    assert not void(State(10, 1_000, 0, True, False), RULES)
    assert not void(State(10, 1_000, 0, False, False), RULES)


@given(st.lists(st.integers(1, 140), min_size=1, max_size=200), st.integers(50, 440))
def test_exactly_one_warning_before_every_compaction(steps: list[int], after: int) -> None:
    """A window that grows by any steps small enough to be sent: warn, one turn, compact, and so on."""
    used, warned, answered = 0, False, False
    seen: list[str] = []
    for step in steps:
        used += step
        if used >= 950:
            used = 940  # what is too full to be sent is another test's matter
        what = decide(State(used, 1_000, 0, warned, answered), RULES)
        seen.append(what)
        if what == WARN:
            warned, answered = True, True
        elif what == COMPACT:
            used, warned, answered = after, False, False
    told = [what for what in seen if what != PROCEED]
    assert told == [WARN, COMPACT] * (len(told) // 2) + [WARN] * (len(told) % 2)
    for at, what in enumerate(seen[1:], 1):
        assert what != COMPACT or seen[at - 1] == WARN
