"""Rules and decisions stay in the window in any language, and the rest is there or one recall away."""

from __future__ import annotations

from pathlib import Path

import pytest

import limpet
from journeys.story import IN_WINDOW, STORIES, Telling, load
from limpet import Compact, assistant, user

SLOW = [(language, "held_out") for language in ("de", "ar", "ja", "en")] + [("de", "main"), ("ar", "main")]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [("zh", "main"), ("hi", "held_out"), *(pytest.param(*told, marks=pytest.mark.slow) for told in SLOW)],
)
def test_what_matters_survives_in_other_languages(tmp_path: Path, language: str, sentences: str) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="told") as hold:
        telling = Telling(hold.session(), load(STORIES / f"{language}.toml", sentences), limit=32_000)
        telling.tell(least_tokens=60_000, least_compactions=3)
        counts = telling.counts()
        for kind in IN_WINDOW:
            assert counts[kind].in_window == counts[kind].planted, kind
        kept = sum(count.kept * count.planted for count in counts.values())
        assert kept >= 0.95 * sum(count.planted for count in counts.values()), telling.lost()
        assert telling.compactions[-1].score is not None


@pytest.mark.parametrize(
    ("language", "sentences"),
    [("de", "plain"), *(pytest.param(*told, marks=pytest.mark.slow) for told in (("zh", "plain"), ("en", "held_out")))],
)
def test_rules_and_decisions_without_a_cue_stay_among_sentences_that_differ_in_a_word(
    tmp_path: Path, language: str, sentences: str
) -> None:
    """What stands around them has an invented word in each sentence, and says otherwise what many others say."""
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="told") as hold:
        telling = Telling(hold.session(), load(STORIES / f"{language}.toml", sentences, varied=True), limit=32_000)
        telling.tell(least_tokens=60_000, least_compactions=3)
        counts = telling.counts()
        for kind in IN_WINDOW:
            assert counts[kind].in_window == counts[kind].planted, kind


NAMES = (
    *("Amsel", "Biber", "Condor", "Dachs", "Elster", "Falke", "Ganter", "Habicht", "Igel", "Jaguar", "Kranich"),
    *("Luchs", "Marder", "Natter", "Otter", "Puma", "Qualle", "Rabe", "Storch", "Tapir"),
)


@pytest.mark.parametrize(
    "sentence",
    [
        "By the way, the box for {0} things stands in the {0} room.",
        "Übrigens steht die Kiste für {0}-Sachen im Raum {0}.",
        "ちなみに、{0}の箱は{0}室にあります。",
        "顺便说一下，{0}的箱子在{0}房间里。",  # noqa: RUF001
    ],
)
def test_plain_sentences_of_the_user_stay_while_the_model_talks_on(tmp_path: Path, sentence: str) -> None:
    spoken = [sentence.format(name) for name in NAMES]
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="plain") as hold:
        window = hold.session().window
        talk = [user("Rebuild the parser.")]
        for line in spoken:
            talk += [assistant("Understood."), user(line)]
        compactions = 0
        for number in range(100):
            talk += [
                assistant(f"Answer {number}: " + "lorem ipsum dolor sit amet " * 20),
                user(f"Next question number {number}, please."),
            ]
            step = window.next(talk, limit=8_000)
            window.sent()
            compactions += isinstance(step, Compact)
        shown = "\n".join(message.text() for message in window.next(talk, limit=8_000).messages)
        assert compactions >= 2
        assert [line for line in spoken if line not in shown] == []
