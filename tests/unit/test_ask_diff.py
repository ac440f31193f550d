"""A question to a diff or a history: the answer is what was changed together, and where."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.recall.ask import ask
from limpet.text.tokens import count


def shown(text: str, question: str, budget: int = 300) -> str:
    part = ask(text, question, budget, count)
    assert count(part.content) <= budget
    return part.content


def hunk(place: int, section: str, *lines: str) -> str:
    return "\n".join([f"@@ -{place},9 +{place},9 @@ {section}", *lines])


def of_file(name: str, *hunks: str) -> str:
    return "\n".join(
        [f"diff --git a/{name} b/{name}", "index 1b2c3d4..5e6f7a8 100644", f"--- a/{name}", f"+++ b/{name}", *hunks]
    )


OTHER = [
    of_file(
        f"shop/part{n}.py",
        hunk(n, f"def part{n}(self):", " the gate is closed", f"-    step {n}", f"+    step {n + 1}"),
    )
    for n in range(40)
]
GATE = of_file(
    "shop/gate.py",
    hunk(
        12,
        "def opened(gate):",
        " # Whoever comes first opens it.",
        " def wait_for_gate(gate):",
        "-    patience = 5",
        "-    return gate.poll(patience)",
        "+    patience = 30",
        "+    return gate.poll(patience, quiet=True)",
        " ",
        " def closed(gate):",
    ),
    hunk(90, "def closed(gate):", "-    log('shut')", "+    log('closed for the night')"),
)
DIFF = "\n".join([*OTHER[:20], GATE, *OTHER[20:]])


def test_a_line_of_a_hunk_comes_with_the_change_beside_it_and_its_file() -> None:
    answer = shown(DIFF, "what does wait_for_gate do")
    assert "diff --git a/shop/gate.py" in answer
    assert "-    patience = 5" in answer
    assert "+    return gate.poll(patience, quiet=True)" in answer
    assert "+++ b/" not in answer, "the file is named once"


def test_a_file_of_a_diff_is_answered_by_what_changed_in_it() -> None:
    answer = shown(DIFF, "what changed in shop/gate.py")
    assert "+    patience = 30" in answer
    assert "+    log('closed for the night')" in answer


def test_the_declaration_of_a_name_goes_before_mentions_of_it() -> None:
    mentions = [f"+    return load_levels({n})  # {'abcdefghij'[n % 10]}" for n in range(30)]
    declared = "+def load_levels(n: int) -> Levels:"
    text = of_file("a.py", hunk(1, "class Levels:", *mentions), hunk(80, "", declared, "+    read()"))
    assert declared in shown(text, "what does load_levels return", 80)


def test_a_commit_that_is_found_by_its_message_is_answered_by_what_it_changed() -> None:
    message = "commit {:040x}\nAuthor: A. Writer\n\n    {}\n"
    gate = message.format(7, "Let late guests in: give wait_for_gate more patience")
    before = [f"{message.format(n, f'Step {n} of the tidying')}\n{diff}" for n, diff in enumerate(OTHER, 100)]
    answer = shown("\n".join([*before[:20], gate, GATE, *before[20:]]), "how are late guests let in")
    assert "give wait_for_gate more patience" in answer
    assert "+    patience = 30" in answer


def test_the_last_heading_of_a_text_is_answered_though_nothing_is_below_it() -> None:
    message = "commit {:040x}\nAuthor: A. Writer\n\n    {}\n"
    history = [message.format(n, f"Step {n} of the tidying") for n in range(150)]
    assert "Let late guests in" in shown("\n".join([*history, message.format(7, "Let late guests in")]), "late guests")
    renamed = "diff --git a/gate.png b/door.png\nsimilarity index 100%\nrename from gate.png\nrename to door.png"
    assert "rename from gate.png" in shown("\n".join([*OTHER, renamed]), "what became of gate.png")
    added = "diff --git a/door.png b/door.png\nnew file mode 100644\nBinary files /dev/null and b/door.png differ"
    assert "Binary files" in shown("\n".join([*OTHER, added]), "what changed in door.png")


def test_the_file_with_most_changes_is_found_in_a_table_of_them() -> None:
    lines = [f" shop/part{n}.py   |  {n + 3} +{'-' * (n % 7)}" for n in range(200)]
    lines[77] = " shop/gate.py   | 914 ++++++-------"
    text = "\n".join([*lines, " 200 files changed, 9000 insertions(+), 400 deletions(-)"])
    assert "shop/gate.py" in shown(text, "which file changed most", 120)


def test_of_a_change_of_very_many_lines_the_first_are_shown() -> None:
    text = of_file("all.sql", hunk(1, "", *(f"+insert into gate values ({n})" for n in range(60_000))))
    assert "+insert into gate values (0)\n+insert into gate values (1)" in shown(text, "what changed in all.sql")


FRAGMENTS = (
    "commit 0123456789abcdef0123456789abcdef01234567",
    "Author: A. Writer",
    "",
    "    Mend the gate",
    "diff --git a/gate.py b/gate.py",
    "index 123abc4..5e6f7a8 100644",
    "--- a/gate.py",
    "+++ b/gate.py",
    "@@ -1,3 +1,4 @@ def gate():",
    "@@",
    "+    gate = 5",
    "-    gate = 4",
    "     gate",
    "+",
    "\\ No newline at end of file",
    "2026-11-19T10:00:01Z INFO order ORD-123 gate opened",
    "2026-11-19T10:00:02Z ERROR order ORD-123 failed: TimeoutError",
    "gate.py | 12 +++---",
    "gate " * 200,
    '{"gate": ' * 90,
)


@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=40),
    st.sampled_from(("what changed in gate.py", "why did ORD-123 fail", "mend the gate", "gate", "last commit")),
    st.sampled_from((30, 120, 600)),
)
def test_pieces_of_diffs_and_logs_in_any_order_are_answered_with_true_numbers(
    lines: list[str], question: str, budget: int
) -> None:
    for line in shown("\n".join(lines), question, budget).split("\n"):
        number, sign, text = line.partition(": ")
        if sign and number.isdigit():
            shown_first = text.removeprefix("… ").split(" … ")[0].removesuffix(" …")
            assert shown_first.strip() in lines[int(number) - 1]
