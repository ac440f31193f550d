"""The page of figures: it holds what runs found, keeps what they did not measure again, and says what was missed."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import choices, tasks
from bench.figures import MORE, Figure, Found, alone, compare, plot, remark, taken
from bench.measure import OUT, ROOT, table, verdict
from bench.page import HEADS, MISSED, PEERS, kept, page, rows, write
from bench.peers import roll
from bench.peers.environment import installed
from bench.peers.sides import InProcess, Peer
from bench.recall import multihop
from bench.recall.__main__ import signals, spread
from bench.recall.sets import Query, Set, Unit
from limpet.catalogue.table import profile

PAGE = ROOT / "docs" / "benchmarks.md"
ORDER = ("start", "notes", "stdio")
PLACES = ("library", "bakery", "museum", "harbour", "gate_of_the_mill")
# Cells are what benchmarks print: one line, whatever else is in it.
CELLS = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=30).map(
    lambda text: " ".join(text.split()).strip("\\-") or "x"
)


def found(*floors: Figure, peers: tuple[Figure, ...] = (), words: tuple[str, ...] = ()) -> Found:
    return Found(list(floors), list(peers), [], list(words), [])


def put(path: Path, subject: str, what: Found, where: str = "2026-01-01, load 1") -> str:
    write(path, subject, f"About {subject}.", what, where, ORDER)
    return path.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _nothing_before() -> None:
    taken()


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_figure_says_ratio_goal_and_verdict() -> None:
    compare("add", 3e-3, "by hand", 1e-3, verdict(3.0, 2.0, "≤ 2x"))
    compare("read", 1e-3, "by hand", 1e-3, verdict(1.0, 2.0, "≤ 2x"))
    compare("load", 5.0, "by hand", 1.0)
    assert taken().floors == [
        Figure("add", "3 ms", "by hand", "1 ms", "3.00x", "≤ 2x", "MISSED"),
        Figure("read", "1 ms", "by hand", "1 ms", "1.00x", "≤ 2x", "met"),
        Figure("load", "5.00 s", "by hand", "1.00 s", "5.00x", "", ""),
    ]


def test_beside_a_peer_somebody_is_ahead() -> None:
    for ours, theirs, better in ((1.0, 2.0, ""), (2.0, 1.0, ""), (1.0, 1.01, ""), (2.0, 1.0, MORE), (0.0, 1.0, MORE)):
        compare("x", ours, "them", theirs, peer=True, better=better)
    assert [one.verdict for one in taken().peers] == ["ahead", "behind", "even", "ahead", "behind"]


def test_nothing_to_divide_by_is_no_ratio() -> None:
    compare("kept", 1.0, "them", 0.0, show="{:.0%}".format, better=MORE, peer=True)
    (one,) = taken().peers
    assert (one.theirs, one.ratio, one.verdict) == ("0%", "-", "ahead")


def test_what_was_taken_is_taken_once(capsys: pytest.CaptureFixture[str]) -> None:
    alone("lost", "0", verdict(0, 0, "0"))
    remark("npm is not there.")
    plot("Growth", "docs/growth.svg")
    table("T", ("a",), [["1"]])
    first, second = taken(), taken()
    assert len(first.floors) == len(first.words) == len(first.plots) == len(first.tables) == 1
    assert not any(second)
    assert "npm is not there." in capsys.readouterr().out


# --- the page ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(*[CELLS] * len(HEADS)), min_size=1, max_size=4))
def test_rows_come_back_as_they_were_written(cells: list[tuple[str, ...]]) -> None:
    figures = [Figure(*one) for one in cells if one != HEADS]
    text = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in one) + " |" for one in figures)
    assert [row.figure for row in rows({"start": text})] == figures


def test_other_subjects_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    put(path, "notes", found(Figure("add", "1 ms", "by hand", "2 ms", "0.50x")), "2026-01-01, load 9")
    before = kept(path.read_text(encoding="utf-8"))
    text = put(path, "start", found(Figure("open", "1 ms")), "2026-01-02, load 1")
    after = kept(text)
    assert after["notes"] == before["notes"]
    assert "2026-01-01, load 9" in after["notes"]
    assert "2026-01-02, load 1" in after["start"]
    assert text.index("## start") < text.index("## notes"), "the order is that of the subjects"


def test_a_subject_that_is_run_again_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    put(path, "notes", found(Figure("old", "1 ms"), Figure("gone", "2 ms")))
    text = put(path, "notes", found(Figure("old", "3 ms")))
    assert [row.figure.ours for row in rows(kept(text))] == ["3 ms"]
    assert "gone" not in text


def test_a_run_without_peers_leaves_those_of_the_last_one_with_their_date(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    peer = Figure("call", "1 ms", "them", "2 ms", "0.50x", "", "ahead")
    put(path, "stdio", found(Figure("call", "1 ms"), peers=(peer,)), "2026-01-01, load 9")
    parts = kept(put(path, "stdio", found(Figure("call", "4 ms")), "2026-01-02, load 1"))
    assert "2026-01-01, load 9" in parts[f"stdio{PEERS}"]
    assert "2026-01-02, load 1" in parts["stdio"]
    assert [row.figure.ours for row in rows(parts)] == ["4 ms", "1 ms"]


def test_a_subject_that_is_all_about_peers_has_one_section(tmp_path: Path) -> None:
    peer = Figure("call", "1 ms", "them", "2 ms", "0.50x", "", "ahead")
    text = put(tmp_path / "page.md", "stdio", found(peers=(peer,), words=("No npm.",)))
    assert "## stdio\n" in text
    assert "beside peers" not in text
    assert all(words in kept(text)[f"stdio{PEERS}"] for words in ("About stdio.", "No npm."))


def test_what_was_not_run_is_not_there_and_what_measured_nothing_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    text = put(path, "notes", found(Figure("add", "1 ms")))
    assert "start" not in kept(text)
    assert put(path, "start", found()) == text
    said = put(path, "start", found(words=("Not measured: no Chromium.",)))
    assert "Not measured: no Chromium." in kept(said)["start"]
    assert not rows({"start": kept(said)["start"]})
    again = put(path, "notes", found(words=("Not measured: no disk.",)))
    assert kept(again)["notes"] == kept(text)["notes"], "a reason does not take the place of figures"


def test_misses_are_marked_counted_and_listed(tmp_path: Path) -> None:
    missed = Figure("add", "9 ms", "by hand", "1 ms", "9.00x", "≤ 2x", "MISSED")
    behind = Figure("find", "9 ms", "them", "1 ms", "9.00x", "", "behind")
    met = Figure("read", "1 ms", "by hand", "1 ms", "1.00x", "≤ 2x", "met")
    when = "2026-01-01 10:00 UTC, 3 s, load 1.5 before and 2.0 after; a machine."
    text = put(tmp_path / "page.md", "notes", found(missed, met, peers=(behind,)), when)
    assert f"| add | 9 ms | by hand | 1 ms | 9.00x | ≤ 2x | {MISSED} |" in text
    assert "| [notes](#notes) | 3 | 1 | 1 | 0 | 0 | 1 | 2026-01-01 10:00, load 1.5 |" in text
    short = text[text.index("### Missed") : text.index("## notes")]
    assert "- notes: add: 9 ms, 9.00x of by hand (1 ms); goal ≤ 2x" in short
    assert "- notes: find: 9 ms, 9.00x of them (1 ms)" in short
    assert "read" not in short


def test_a_subject_without_records_shows_its_tables_and_its_plot(tmp_path: Path) -> None:
    table("Ten and a hundred", ("notes", "time"), [["10", "1 ms"], ["100", "2 ms"]])
    plot("Growth", "docs/growth.svg")
    path = tmp_path / "page.md"
    part = kept(put(path, "growth", taken()))["growth"]
    assert "### Ten and a hundred" in part
    assert "| 100 | 2 ms |" in part
    picture = re.search(r"!\[Growth\]\((.*)\)", part)
    assert picture
    assert (tmp_path / picture[1]).resolve() == ROOT / "docs" / "growth.svg"


# --- through the door -------------------------------------------------------------------------------------------------


def test_a_run_puts_its_subject_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    put(path, "notes", found(Figure("add", "1 ms")))
    before = kept(path.read_text(encoding="utf-8"))["notes"]
    command = [sys.executable, "-m", "bench", "start", "--quick", "--write", str(path)]
    env = os.environ | {"BENCH_OUT": str(tmp_path / "out")}  # a run clears its folder, and another may be under way
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    parts = kept(path.read_text(encoding="utf-8"))
    assert parts["notes"] == before
    shown = {row.figure.what: row.figure for row in rows({"start": parts["start"]})}
    assert f"| {shown['import limpet'].ours} " in done.stdout, "the page has what was printed"
    assert "Quick: few entries, few rounds." in parts["start"]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, \d+ s, load [\d.]+ before", parts["start"])


# --- peers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", [roll.library, roll.server])
def test_a_side_keeps_what_it_is_given_and_finds_it(peer: Callable[[], Peer], tmp_path: Path) -> None:
    """Ours in both ways: what stands beside it is driven by the same two classes."""
    OUT.mkdir(parents=True, exist_ok=True)
    side = peer().start(tmp_path, ())
    texts = [f"[{number:06}] A word that is here alone: zebra{number}x." for number in range(12)]
    side.load(texts[:6])
    side.load(texts[6:])
    assert all(seconds > 0 for seconds in side.add(["[000012] Another one: quagga."]))
    found = side.search(["zebra7x", "quagga", "heron"])
    side.close()
    shown = [re.findall(r"\[\d{6}\]", said) for _, said in found]
    assert shown[0][0] == "[000007]"
    assert shown[1][0] == "[000012]"
    assert not shown[2]


def test_a_library_keeps_a_big_text_and_shows_a_part_of_it(tmp_path: Path) -> None:
    side = roll.library().start(tmp_path, ())
    assert isinstance(side, InProcess)
    text = "\n".join(f"line {number} of a long output" for number in range(1, 5_001))
    seconds, name, shown = side.ask(do="keep", text=text)
    _, part = side.ask(do="part", name=name, line=2_500)
    side.close()
    assert seconds > 0
    assert len(shown) < len(text) / 10
    assert part.startswith("line 2500 ")
    assert len(part.rstrip("\n").split("\n")) == 50


def test_a_peer_that_cannot_be_installed_is_skipped_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed("no-such-peer") is None
    assert taken().words == ["no-such-peer: skipped, npm or node is not there."]


# --- the one in docs --------------------------------------------------------------------------------------------------


def test_the_page_in_docs_is_made_of_its_parts_alone() -> None:
    text = PAGE.read_text(encoding="utf-8")
    parts = kept(text)
    assert rows(parts)
    assert page(parts, list(parts)) == text, "docs/benchmarks.md was edited by hand; make bench writes it"
    for name, body in parts.items():
        assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, \d+ s, load ", body), name
        assert "Quick" not in body, f"{name} was measured with --quick, which is only for a look"


def test_every_way_to_run_it_again_that_the_page_names_is_there() -> None:
    target = re.search(r"^bench:.*\n(\t.*\n)+", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert target
    named = set(
        re.findall(r"\b([A-Z]+)=", re.sub(r"BENCH_DATA", "", PAGE.read_text(encoding="utf-8").split("## In")[0]))
    )
    assert named == {"NAMES", "PEERS", "QUICK", "WRITE"}
    for name in named:
        assert f"$({name})" in target[0] or f"$(if $({name})" in target[0], name
    assert "benchmarks.md" in (ROOT / "README.md").read_text(encoding="utf-8")


# --- situations of a small model --------------------------------------------------------------------------------------


def test_each_situation_has_a_right_tool_in_the_smallest_profile_that_coding_agents_get() -> None:
    found = choices.situations()
    names = {operation.name for operation in profile("coding")}
    arguments = {param.name for operation in profile("coding") for param in operation.params}
    assert len(found) == 100
    assert {one.need for one in found} == choices.RIGHT.keys()
    for one in found:
        assert names.intersection(choices.RIGHT[one.need]), one
        assert {name for name, *_ in one.arguments} <= arguments, one
        assert "|" not in one.text
    odd, even = ({one.need for one in found if one.number % 2 == half} for half in (1, 0))
    assert odd == even, "what is judged has no need that wordings could not be tried on"


def test_a_choice_is_right_by_its_tool_and_by_what_it_gives_it() -> None:
    one = choices.situations()[28]
    assert choices.Choice(one, "update_note", {"id": "N2", "done": True}).right
    assert choices.Choice(one, "update_note", {"id": "n2"}).right_tool
    assert not choices.Choice(one, "update_note", {"id": "n2"}).right
    assert not choices.Choice(one, "delete_note", {"id": "n2", "done": True}).right_tool


def test_no_task_is_solved_by_what_stands_before_the_model() -> None:
    """Neither the question nor the part of a cut result that is shown without a memory says what is wanted."""
    found = tasks.tasks()
    assert len(found) == 20
    bare = tasks.Nothing(OUT)
    for task in found:
        assert not task.is_solved_by(task.then), task.then
        if task.command:
            shown = bare.printed(task.command, task.output)
            assert len(shown) < len(task.output)
            assert not task.is_solved_by(shown), task.command
            assert task.is_solved_by(task.output)


def test_an_agent_with_limpet_finds_after_the_wipe_what_it_noted_before(tmp_path: Path) -> None:
    memory = tasks.Limpet(tmp_path / "project")
    memory.begin("monday")
    memory.call("add_note", {"content": "The importer crashes on empty lines; SKIP_BLANK=1 helps."})
    memory.end()
    memory.begin("tuesday")
    assert "SKIP_BLANK" in memory.call("recall", {"query": "why does the importer crash"})
    memory.end()


# --- signals of recall ------------------------------------------------------------------------------------------------


def test_what_a_signal_is_worth_is_counted_in_questions() -> None:
    units = [
        Unit(str(number), f"the {name} opens at nine and is closed on Mondays") for number, name in enumerate(PLACES)
    ]
    asked = [Query("when does the gate_of_the_mill open", frozenset(("4",)))]
    worth = signals("signals", [Set("tiny", units, asked)], ["literals", "speaker"])
    assert list(worth) == ["nothing", "literals", "speaker", "any"]
    assert [len(one.scores) for one in worth.values()] == [1, 1, 1, 1]
    assert (worth["speaker"].brought, worth["speaker"].lost) == (0, 0)
    assert worth["nothing"].scores[0].recall[2] == 1.0


def test_a_part_of_the_questions_is_taken_from_everywhere() -> None:
    asked = [Query(str(number), frozenset()) for number in range(100)]
    assert [one.query for one in spread(Set("many", [], asked), 4).queries] == ["0", "25", "50", "75"]
    assert spread(Set("many", [], asked), 0).queries == asked


def test_questions_to_two_documents_are_the_same_in_every_run() -> None:
    """Of equally rare words those that come first in the alphabet are taken, not those that a set gives first."""
    first = "The Vesuvio engine writes every invoice into monthly folders behind another locked door."
    second = "Vesuvio handles pears quinces apples damsons cherries plums grapes."
    asked = multihop._question("Vesuvio", first, second, Counter(), random.Random(1))
    assert asked.split()[-2:] == ["cherries", "damsons"]
