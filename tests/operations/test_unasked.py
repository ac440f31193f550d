"""Unasked recall: what clearly fits a prompt and still holds, within a budget, and mostly nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import limpet
from limpet.api import Limpet
from limpet.recall import unasked
from limpet.settings import Bounds, RecallRules
from limpet.text import tokens
from limpet.window.messages import user
from operations.conftest import DAY_MS, Clock, Opener

FACT = "Migrations of the orders table need a lock timeout of five seconds"
PROMPT = "Write a migration that adds an index to the orders table"


def shown(hold: Limpet, prompt: str, session: str = "new") -> list[str]:
    answer = unasked.unasked(hold.context(session), prompt)
    unasked.record_shown(hold.context(session), answer)
    return [entry.content for entry in answer.entries]


@pytest.fixture
def known(hold: Limpet) -> Limpet:
    hold.session("old").notes.add(FACT)
    hold.session("old").memory.write("staging-db", "The staging database password rotates on Fridays")
    for number in range(40):
        hold.session("old").notes.add(f"Ticket {number}: the page of the settings was slow and is better")
    return hold


def test_what_fits_is_shown_once_in_a_session(known: Limpet, opened: Opener) -> None:
    assert shown(known, PROMPT) == [FACT]
    assert shown(known, PROMPT) == []
    assert shown(opened(), PROMPT) == [], "also in another process"
    assert shown(known, PROMPT, "third") == [FACT]
    assert shown(known, PROMPT, "old") == [], "whoever wrote it knows it"


@pytest.mark.parametrize(
    "prompt", ["continue", "yes, go on", "", "Add a dark mode toggle to the settings page", "Fix the typo in README.md"]
)
def test_silence_is_the_rule(known: Limpet, prompt: str) -> None:
    assert shown(known, prompt) == []


def test_what_no_longer_holds_is_not_shown(hold: Limpet, clock: Clock, tmp_path: Path) -> None:
    notes = hold.session("old").notes
    done = notes.add(FACT)
    notes.update(done.id, done=True)
    assert shown(hold, PROMPT) == []
    notes.add(FACT.replace("five", "six"), expires="1d")
    clock.pass_by(DAY_MS)
    assert shown(hold, PROMPT) == []
    (tmp_path / "orders.sql").write_text("SET lock_timeout = 7;\n")
    notes.add(FACT.replace("five", "seven"), anchors=["orders.sql:1"])
    assert shown(hold, PROMPT, "before") == [FACT.replace("five", "seven")]
    (tmp_path / "orders.sql").write_text("SET lock_timeout = 8;\n")
    assert shown(hold, PROMPT, "after") == []


def test_text_from_outside_is_not_shown(hold: Limpet) -> None:
    hold.call("add_note", {"content": FACT}, session="old", by="tool/web")
    assert shown(hold, PROMPT) == []


def test_it_keeps_to_three_entries_and_its_budget(hold: Limpet) -> None:
    for number in range(6):
        text = f"{FACT}, as the review of part {number} said: " + f"see {number} words more " * 60
        hold.session("old").notes.add(text)
    answer = unasked.unasked(hold.context("new"), PROMPT)
    assert len(answer.entries) <= 3
    assert tokens.count(answer.text) <= 200


def test_the_window_has_it_until_the_next_prompt_and_one_setting_switches_it_off(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    with limpet.open(store, folder=str(tmp_path)) as hold:
        hold.session("old").notes.add(FACT)
        window = hold.session("new").window
        talk = [user(PROMPT)]
        assert FACT in window.next(talk, limit=50_000).messages[-1].text()
        assert FACT in window.next(talk, limit=50_000).messages[-1].text(), "it stays for the same prompt"
        talk = [*talk, user("Now fix the typo in the title")]
        assert FACT not in window.next(talk, limit=50_000).messages[-1].text()
        off = hold.context("another")._replace(bounds=Bounds(recall=RecallRules(unasked=False)))
        assert unasked.unasked(off, PROMPT).entries == ()


# --- names ------------------------------------------------------------------------------------------------------------

FREEZE = "Nothing is released between the 15th of December and the 7th of January"


@pytest.fixture
def called(known: Limpet) -> Limpet:
    """Texts that have names: tags, a key, what stands before a colon."""
    known.session("old").notes.add(FREEZE, tags=["code freeze", "QA"])
    known.session("old").notes.add("Service charts: every service has its own one in ops", tags=["helm", "chart"])
    known.session("old").memory.write("feature-flags", "They live in Unleash and are removed after a month")
    known.session("old").notes.add("Jobs run on version 1.29 in three zones", tags=["kubernetes"])
    known.session("old").notes.add("We left Prometheus for its price and send figures to Mimir", tags=["promethius"])
    known.session("old").notes.add("Two people on call swap on Wednesday at noon", tags=["pager"])
    for number in range(5):
        known.session("old").notes.add(f"Decided {number}: blue, and why", tags=["decision"])
    return known


@pytest.mark.parametrize(
    ("prompt", "begins"),
    [
        ("Can I merge this during the code freeze?", "Nothing is released"),
        ("Ask QA whether they saw it", "Nothing is released"),
        ("Add a volume to the helm template of search", "Service charts"),
        ("Draw two charts with bars", "Service charts"),  # a plural
        ("Which service charts are old?", "Service charts"),  # before the colon
        ("Remove all feature flags that nobody uses", "They live in Unleash"),  # a key
        ("Write a kuberentes liveness probe", "Jobs run"),  # two letters changed places
        ("Write a kubernets liveness probe", "Jobs run"),  # one is missing
        ("Is Prometheus slow?", "We left"),  # the slip is in the tag, and the text has the word as it should be
    ],
)
def test_a_text_comes_when_the_prompt_says_its_name(called: Limpet, prompt: str, begins: str) -> None:
    assert [text[: len(begins)] for text in shown(called, prompt)] == [begins]


@pytest.mark.parametrize(
    "prompt",
    [
        "Chartered flights need an invoice",  # another word of the family
        "Freezing paths in winter",
        "Which decision comes next?",  # a tag of many says of what kind they are
        "The sunken ship is over there",
        "I want a qa list",  # so short a name is one only in capitals
        "How many people wanted the soup on Wednesday?",  # the tag says that it is about something else
    ],
)
def test_what_only_looks_like_a_name_stays_silent(called: Limpet, prompt: str) -> None:
    assert shown(called, prompt) == []


def test_a_name_brings_nothing_that_does_not_hold(hold: Limpet, clock: Clock) -> None:
    notes = hold.session("old").notes
    done = notes.add("Jobs run on Nomad", tags=["scheduler"])
    notes.update(done.id, done=True)
    notes.add("Jobs run on Mesos", tags=["scheduler"], expires="1d")
    hold.call("add_note", {"content": "Jobs run on ours", "tags": ["scheduler"]}, session="old", by="tool/web")
    clock.pass_by(DAY_MS)
    assert shown(hold, "Restart the scheduler") == []
    assert shown(hold, "Restart the schedulr") == []


def test_of_similar_reports_the_prompt_brings_the_one_whose_number_it_says(hold: Limpet) -> None:
    for number in range(4700, 4730):
        end = "failed: disk full" if number == 4711 else "passed"
        hold.session("old").notes.add(f"Backup job {number} of the customer database to the second site {end}")
    assert shown(hold, "Find out what went wrong in backup job 4711 and start it again")[:1] == [
        "Backup job 4711 of the customer database to the second site failed: disk full"
    ]
