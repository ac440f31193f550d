"""Recall: one question over every kind, the same answer on both stores, and no question that is an error."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limpet import limits
from limpet.api import Limpet
from limpet.errors import BadInput
from operations.conftest import NOON, Clock, Opener

DAY = 86_400_000


def keys(hold: Limpet, query: str, **options: object) -> list[str]:
    return [hit.key for hit in hold.recall(query, **options).hits]


@pytest.fixture
def laden(hold: Limpet, clock: Clock) -> Limpet:
    session = hold.session("one")
    session.notes.add("Casts break LL(1), so the lexer got a look-ahead of two", tags=["grammar"])
    clock.pass_by()
    session.notes.add("The release script needs GNU tar")
    session.notepad.write("# Plan\n\n- [ ] port the scheduler to asyncio\n- [x] measure start-up")
    hold.memory.write("deploy-target", "Deployments go to the cluster in Frankfurt, never by hand.")
    session.handoff.write("Scheduler is half ported; the failing test is test_wakeups.")
    session.scratch("tried a ring buffer for the queue", mode="replace")
    return hold


def test_every_kind_is_found_by_a_plain_question(laden: Limpet) -> None:
    asked = {
        "why does the lexer look ahead?": "note",
        "which tar does releasing need": "note",
        "what about asyncio": "notepad",
        "where do we deploy to": "memory",
        "which test fails?": "handoff",
        "ring buffers": "scratchpad",
    }
    for query, kind in asked.items():
        hits = laden.recall(query).hits
        assert hits, query
        assert hits[0].kind == kind, query


def test_what_the_last_session_left_is_found_though_it_does_not_say_so(laden: Limpet) -> None:
    for options in ({}, {"kinds": ["handoffs"]}):
        hits = laden.recall("where did the last session stop", **options).hits
        assert [hit.kind for hit in hits][:1] == ["handoff"]
        assert hits[0].why == ("the newest of its kind",)
        assert "half ported" in hits[0].snippet
    assert [hit.kind for hit in laden.recall("what is the plan now?", kinds=["scratchpads"]).hits] == ["scratchpad"]
    assert laden.recall("where did the last session stop", kinds=["memory"]).hits == ()


def test_german_words_without_a_subject_find_nothing(hold: Limpet) -> None:
    notes = hold.session("one").notes
    notes.add("Die Rechnungsstellung läuft jeden Monatsersten über den Nachtlauf")
    notes.add("Der Dienstname im Listener war falsch geschrieben")
    notes.add("Wir haben die Benutzerverwaltung auf Keycloak umgestellt")
    for query in ("Was haben wir zu Docker beschlossen?", "Wie heißt der Geschäftsführer?", "Wann ist die Feier?"):
        assert hold.recall(query).hits == (), query
    for query, found in {
        "Wann haben wir auf Keycloak umgestellt?": "Keycloak",
        "Wann läuft die Rechnungsstellung?": "Rechnungsstellung",
        "Wer hat den Dienstnamen in dem Listener geschrieben?": "Listener",
    }.items():
        assert found in hold.recall(query).hits[0].plain, query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Die Loesung war ein groesserer Puffer", "Was war die Lösung?"),
        ("Die Lösung war ein größerer Puffer", "Was war die Loesung?"),
        ("Der Dienst läuft auf zwei Datenbanken", "Welche Datenbank hat der Dienst?"),
        ("Schlüssel liegen im Tresor", "Wo liegen unsere Schluesseln?"),
        ("Die Prüfungen laufen nachts", "Wann wird die Pruefung gestartet?"),
    ],
)
def test_german_words_are_found_with_other_endings_and_spellings(hold: Limpet, text: str, query: str) -> None:
    notes = hold.session("one").notes
    right = notes.add(text).id
    for number in range(30):
        notes.add(f"Der Nachtlauf von Rechner {number} wurde nach dem Wechsel neu gestartet")
    assert keys(hold, query)[:1] == [right]


def test_chinese_words_that_only_ask_find_nothing(hold: Limpet) -> None:
    notes = hold.session("one").notes
    right = notes.add("数据库 每天 凌晨 备份").id
    notes.add("我们 的 会议 是 在 周一")
    notes.add("这 是 我 的 笔记")
    assert keys(hold, "数据库是在什么时候备份的?")[:1] == [right]
    assert keys(hold, "你的打印机是什么?") == []


def test_a_day_is_found_however_it_is_written(hold: Limpet) -> None:
    notes = hold.session("one").notes
    dotted = notes.add("Am 12.03.2026 haben wir auf Keycloak umgestellt").id
    iso = notes.add("The certificates run out on 2026-04-05").id
    notes.add("Der Nachtlauf beginnt um 03:12 Uhr")
    for query in ("2026-03-12", "12.3.2026", "Was geschah am 12. März 2026?", "what happened on March 12, 2026?"):
        assert keys(hold, query)[:1] == [dotted], query
    for query in ("05.04.2026", "Was ist am 5. April 2026?", "what is on 2026-04-05?"):
        assert keys(hold, query)[:1] == [iso], query
    assert keys(hold, "Was geschah am 13. März 2026?") == []


def test_a_day_in_figures_is_not_the_whole_year(hold: Limpet) -> None:
    hold.session("one").notes.add("Die Umstellung auf Keycloak war am 12.03.2026")
    (hit,) = hold.recall("Keycloak 12.03.2026").hits
    assert "at the time asked about" not in hit.why  # it was written in the same year, on another day


def test_german_words_that_are_english_too_are_sought_in_english(hold: Limpet) -> None:
    notes = hold.session("one").notes
    die, licence, _ = (
        notes.add(text).id
        for text in ("Workers die after ten minutes", "The parser is under the MIT licence", "Casts break LL(1)")
    )
    assert keys(hold, "why do they die?") == [die]
    assert keys(hold, "what is under MIT?") == [licence]


def test_what_nobody_said_to_an_assistant_is_not_found(hold: Limpet) -> None:
    notes = hold.session("one").notes
    topics = [
        "lease",
        "budget",
        "tickets",
        "garden",
        "essay",
        "router",
        "recipe",
        "taxes",
        "poem",
        "printer",
        "lawn",
        "sofa",
        "kettle",
        "atlas",
    ]
    for topic in topics:
        notes.add(f"user: Please help me with the {topic}, {' '.join(['since the week was long and I am tired'] * 6)}")
        notes.add(f"assistant: Gladly. About the {topic}: {' '.join(['first list what you have and lack'] * 8)}")
    said = notes.add(f"user: My greenhouse irrigation valve leaks, {' '.join(['since the week was long'] * 10)}").id
    assert keys(hold, "What did I say about the greenhouse irrigation valve?")[:1] == [said]
    assert keys(hold, "What did I say about the long week of kayak lessons?") == []


def test_a_question_that_nothing_fits_gets_no_hits_but_what_is_nearest(hold: Limpet) -> None:
    notes = hold.session("one").notes
    for number in range(30):
        notes.add(f"The scheduler of host number {number} was restarted after the release of the parser")
    query = "which scheduler does Marianne run for greenhouse irrigation valves"
    answer = hold.recall(query)
    assert answer.hits == ()
    assert answer.nearest.startswith("note note_")
    assert "scheduler" in answer.nearest
    assert "\n" not in answer.nearest
    assert answer.left_out > 0
    assert len(hold.recall(query, more=True).hits) > 1
    assert hold.recall("which scheduler was restarted after the release").hits


def test_of_codes_that_differ_in_a_number_the_one_that_was_asked_for_fits_or_none(hold: Limpet) -> None:
    notes = hold.session("one").notes
    tickets = {f"OPS-118{n}": notes.add(f"Ticket OPS-118{n}: the disk of node db-{n} was full").id for n in range(8)}
    notes.add("Fixed CVE-2023-25652 and CVE-2023-29007 in the parser of the archive")
    notes.add("Drop 0001-warn-on-conflicting-options.patch")
    assert keys(hold, "OPS-1183")[:1] == keys(hold, "what was ticket OPS-1183 about?")[:1] == [tickets["OPS-1183"]]
    for absent in ("OPS-1199", "CVE-2023-4911", "CVE-2099-0001"):
        answer = hold.recall(absent)
        assert answer.hits == ()
        assert answer.nearest
        assert hold.recall(absent, more=True).hits
    assert keys(hold, "which disk was full, OPS-1199 says?"), "the rest of the question is answered"


def test_a_text_that_holds_the_question_word_for_word_goes_before_its_opposite(hold: Limpet) -> None:
    notes = hold.session("one").notes
    said = {text: notes.add(text).id for text in ("The job failed", "The job did not fail", "Not enabled", "Enabled")}
    for number in range(30):
        notes.add(f"Job {number} of the release ran for {number} minutes on the northern host")
    for text, id in said.items():
        assert keys(hold, text)[:1] == [id]
    assert keys(hold, "the job did NOT fail?")[:1] == [said["The job did not fail"]]


def test_a_sentence_in_a_very_long_text_is_found_among_short_ones(hold: Limpet) -> None:
    for number in range(300):
        hold.memory.write(f"keys-{number}", f"The key of cabin {number} hangs on the board, stone by stone.")
    day = "Day {}: fine weather, the crew ate soup and read the logs of an older voyage."
    days = [day.format(number) for number in range(900)]
    days.insert(600, "The spare key of the lighthouse is under the third stone.")
    hold.memory.write("log", "\n".join(days))
    for query in ("where is the spare key of the lighthouse?", "spare key of the lighthouse", "under the third stone"):
        hit = hold.recall(query).hits[0]
        assert hit.key == "log"
        assert hit.plain.removeprefix("… ").splitlines()[0] in days[hit.line - 1]
        assert "The spare key of the lighthouse is under the third stone." in hit.plain


def test_a_name_in_the_best_text_leads_to_the_next(hold: Limpet) -> None:
    for number in range(60):
        hold.memory.write(
            f"filler-{number}", f"Quarterly figures of branch {number} were compared with those of last year."
        )
    hold.memory.write("library", "The export of invoices is done by the library Vesuvio since the second release.")
    hold.memory.write("trouble", "In Vesuvio a comma inside a quoted field ends the row, so we escape it by hand.")
    hits = hold.recall("which library does the export of invoices?", kinds=["memory"]).hits
    assert [hit.key for hit in hits[:2]] == ["library", "trouble"]
    assert "named in a hit: vesuvio" in hits[1].why


def test_in_a_history_the_words_of_the_user_come_before_the_echo(hold: Limpet, clock: Clock) -> None:
    notes = hold.session("chat").notes
    echo = "Of course, hotels are a matter of taste, and many hotels offer quiet rooms, pools and views. " * 8
    said = []
    for topic in ("hotels", "trains", "museums"):
        clock.pass_by()
        said.append(notes.add(f"user: I usually prefer small {topic} far away from the centre of a city").id)
        clock.pass_by()
        notes.add(f"assistant: {echo} Small {topic} far away from the centre of a city are fine.")
    hit = hold.recall("Which hotels would you recommend for my trip to Lisbon?").hits[0]
    assert hit.key == said[0]
    assert {"said by the user", "a wish of the user"} <= set(hit.why)


def test_a_note_with_a_colon_is_no_turn_of_a_conversation(hold: Limpet) -> None:
    notes = hold.session("one").notes
    notes.add("Decision: the parser keeps the grammar")
    notes.add("we will ship on Friday")
    (hit,) = hold.recall("what does the parser keep?").hits
    assert "said by who is asked about" not in hit.why


@pytest.mark.parametrize("subjects", [("Canary ring", "Release freeze", "Secrets", "Pager"), ("Decision", "TODO") * 2])
def test_notes_that_begin_with_their_subject_do_not_bring_those_beside_them(hold: Limpet, subjects: list[str]) -> None:
    texts = (
        "new builds go to five percent of machines for one hour",
        "nothing ships between Christmas and the seventh of January",
        "passwords are read from Vault at start",
        "the week begins on Wednesday at noon",
    )
    notes = hold.session("one").notes
    ids = [notes.add(f"{subject}: {text}").id for subject, text in zip(subjects, texts, strict=True)]
    assert keys(hold, "how long do new builds stay with five percent of machines") == ids[:1]


@pytest.mark.parametrize(
    "talk",
    [
        ("Anna: I sold my bicycle", "Bo: To whom?", "Anna: A neighbour, for eighty euros"),
        ("Anna: Ich habe mein Fahrrad verkauft", "Bo: Und der Preis?", "Anna: Achtzig Euro"),
    ],
)
def test_turns_of_people_bring_those_beside_them(hold: Limpet, talk: tuple[str, ...]) -> None:
    ids = [hold.session("one").notes.add(turn).id for turn in talk]
    query = "what did Anna get for the bicycle" if "bicycle" in talk[0] else "Wie teuer war das Fahrrad von Anna?"
    assert ids[2] in keys(hold, query)


@pytest.mark.parametrize("number", [2, 7, 12])
def test_of_entries_that_differ_by_a_number_the_one_asked_for_is_shown(hold: Limpet, number: int) -> None:
    hold.journal.init()
    for each in range(1, 13):
        decision = {"title": f"Dec {each}", "decision": f"Choose option {each}", "rationale": "It is quick enough"}
        hold.call("log_decision", {**decision, "evidence": "user: yes", "scenarios": ["one", "two", "three"]})
        hold.memory.write(
            f"report-{each}", f"Deployment report PROJ-70{each + 60}: outcome {each} of the pipeline, passed"
        )
    assert f"Choose option {number}\n" in hold.recall(f"Choose option {number}").hits[0].plain
    asked = f"PROJ-70{number + 60}"
    assert asked in hold.recall(f"deployment report {asked}").hits[0].plain


def test_identifiers_are_found_split_and_joined(hold: Limpet) -> None:
    notes = hold.session("one").notes
    key = notes.add("pandas gives a dataframe, and check_is_int refuses floats; filePath is absolute").id
    for query in ("data frame", "is int", "is_int", "check ints", "file path", "file_path", "filepath", "DataFrame"):
        assert keys(hold, query) == [key], query


def test_words_written_together_find_the_two_words(hold: Limpet) -> None:
    notes = hold.session("one").notes
    key = notes.add("The report becomes a data frame with one row per file name").id
    notes.add("A frame of oak for the picture of the harbour, data of the painter on its back")
    for query in (
        "dataframe",
        "which dataframes",
        "DataFrame",
        "data_frame",
        "what does the dataframe of the report hold",
    ):
        assert keys(hold, query)[:1] == [key], query
    assert keys(hold, "filename") == [key]
    assert keys(hold, "framedata") == []


def test_a_word_inside_a_longer_one_counts(hold: Limpet) -> None:
    hold.memory.write("one", "def fromordinal(days): counts the days of the calendar")
    hold.memory.write("two", "def fromstamp(days): counts the days of the calendar")
    hold.memory.write("three", "def fromtext(days): counts the days of the calendar")
    assert keys(hold, "days of an ordinal", more=True)[0] == "one"
    hit = hold.recall("days of an ordinal", more=True).hits[0]
    assert "in a longer word" in hit.why


def test_a_text_that_begins_with_what_is_asked_comes_first(hold: Limpet, clock: Clock) -> None:
    hold.memory.write("one", "Granary: two men mended the roof in spring, the doors are of oak, and nobody has a key.")
    clock.pass_by()
    hold.memory.write(
        "two", "We paid the painters for windows and shutters, as the bill of August says, in the granary."
    )
    assert keys(hold, "what about the granary?") == ["one", "two"]


def test_an_identifier_of_the_question_beats_any_similarity(hold: Limpet, clock: Clock) -> None:
    notes = hold.session("one").notes
    exact = notes.add("parse_flags moved").id
    for number in range(20):
        clock.pass_by()
        notes.add(f"Which flags are parsed where, and how flags of a parse move {number}: parse all flags, move flags")
    assert keys(hold, "where were flags moved to, parse_flags?")[0] == exact


def test_filters_narrow_what_may_be_found(laden: Limpet, clock: Clock) -> None:
    assert {hit.kind for hit in laden.recall("scheduler").hits} == {"notepad", "handoff"}
    assert {hit.kind for hit in laden.recall("scheduler", kinds=["handoffs"]).hits} == {"handoff"}
    assert keys(laden, "lexer", tags=["Grammar"]) == keys(laden, "lexer")
    assert keys(laden, "lexer", tags=["other"]) == []
    assert keys(laden, "lexer", session="one")
    assert keys(laden, "lexer", session="two") == []
    assert keys(laden, "deployments", key_prefix="deploy-") == ["deploy-target"]
    assert keys(laden, "deployments", key_prefix="x") == []
    clock.pass_by(10 * DAY)
    assert keys(laden, "lexer", since="7d") == []
    assert keys(laden, "lexer", until="7d")
    assert keys(laden, "lexer", since="2026-03-03")
    assert keys(laden, "lexer", since="2026-03-03T13:00:00Z") == []


def test_a_done_note_is_found_only_when_asked_for_and_says_so(laden: Limpet) -> None:
    (note,) = keys(laden, "lexer")
    laden.session("one").notes.update(note, done=True)
    assert keys(laden, "lexer") == []
    (hit,) = laden.recall("lexer", include_done=True).hits
    assert hit.state == "done"


def test_a_hit_says_what_where_why_and_whose(laden: Limpet) -> None:
    (hit,) = laden.call("recall", {"query": "lexer"})["hits"]
    assert hit["kind"] == "note"
    assert hit["text"] == "Casts break LL(1), so the «lexer» got a look-ahead of two"
    assert hit["why"] == ["words: lexer", "as written"]
    assert (hit["from"], hit["trust"], hit["score"], hit["tags"]) == ("agent", "agent", 1.0, ["grammar"])
    assert hit["session"] == "one"
    assert hit["updated_at"] == "2026-03-03T12:00:00.001Z"


def test_the_same_thought_is_shown_once_and_the_older_wording_is_named(hold: Limpet, clock: Clock) -> None:
    notes = hold.session("one").notes
    first = notes.add("The staging database lives on port 5433 of the blue host and is wiped every night at two").id
    clock.pass_by()
    others = hold.session("two").notes
    again = others.add("The staging database lives on port 5433 of the blue host and is wiped every night at two").id
    clock.pass_by()
    newer = notes.add(
        "The staging database still lives on port 5433 of the blue host and is wiped every night at two"
    ).id
    (hit,) = hold.recall("where does the staging database live?").hits
    assert hit.key == newer
    assert set(hit.replaces) == {first, again}
    notes.delete(newer)
    (hit,) = hold.recall("where does the staging database live?").hits
    assert (hit.key, hit.same, hit.replaces) == (again, (first,), ())


def test_of_similar_reports_the_one_that_was_asked_for_is_shown(hold: Limpet, clock: Clock) -> None:
    """Reports of one form that differ in a number and an outcome are different texts, and the number decides."""
    notes = hold.session("one").notes
    ids = {}
    for number in range(4700, 4720):
        end = "failed: disk full" if number == 4711 else "passed"
        ids[number] = notes.add(f"Backup job {number} of the customer database to the second site {end}").id
        clock.pass_by()
    hits = hold.recall("how did backup job 4711 end?").hits
    assert hits[0].key == ids[4711]
    assert "failed" in hits[0].snippet
    assert not any(hit.replaces or hit.same for hit in hits)


def test_a_long_text_is_shown_by_the_part_that_answers(hold: Limpet) -> None:
    lines = [f"line {number} of the plan speaks about nothing in particular" for number in range(1_500)]
    lines[1_200] = "the turbine must be greased with lithium every spring"
    hold.memory.write("plan", "\n".join(lines))
    (hit,) = hold.recall("what grease does the turbine take?").hits
    assert "«turbine» must be «greased» with lithium" in hit.snippet
    assert abs(hit.line - 1_201) <= 2
    assert not hit.whole
    assert len(hit.snippet) < 1_200


def test_identifiers_paths_and_hashes_are_found_whole_and_in_part(hold: Limpet) -> None:
    notes = hold.session("one").notes
    camel = notes.add("parseQualifiedName drops the last part").id
    path = notes.add("the bug is in src/limpet/wiring.py").id
    digest = notes.add("bisected to 3f9a1c2b77e0d4aa91c0ffee12345678deadbeef").id
    assert keys(hold, "qualified name")[0] == camel
    assert keys(hold, "parseQualifiedName")[0] == camel
    assert keys(hold, "limpet/wiring.py")[0] == path
    assert keys(hold, "wiring")[0] == path
    assert keys(hold, "3f9a1c2b77e0")[0] == digest
    assert keys(hold, "c0ffee1234")[0] == digest


def test_an_answer_is_found_beside_its_question(hold: Limpet) -> None:
    """The words of the question stand in the turn before; what is meant is the answer to it."""
    talk = hold.session("talk").notes
    for line in ("hello there, nice to see you again", "all is well here, thank you for asking so kindly"):
        talk.add(f"Anna: {line}")
    asked = talk.add("Ben: Which instrument did you finally choose for the orchestra, Anna?").id
    answer = talk.add("Anna: The bassoon, and I have been practising in the garage ever since last week").id
    for line in ("that sounds like a lot of fun to me", "see you on the train tomorrow morning then"):
        talk.add(f"Ben: {line}")
    found = keys(hold, "What instrument did Anna choose for the orchestra?")
    assert found[0] == answer
    assert asked in found


def test_a_named_time_counts(hold: Limpet, clock: Clock) -> None:
    notes = hold.session("one").notes
    march = notes.add("Review with the customer went badly").id
    clock.now = NOON + 60 * DAY
    may = notes.add("Review with the customer went very well").id
    assert keys(hold, "how was the review with the customer in March?")[0] == march
    assert keys(hold, "how was the review with the customer in May?")[0] == may


def test_a_kept_output_is_found_by_what_it_says_and_marked_as_data(laden: Limpet) -> None:
    lines = [f"2026-03-03 10:{number // 60:02d}:{number % 60:02d} worker heartbeat ok" for number in range(3_000)]
    lines[1_700] = "2026-03-03 10:28:20 ERROR zookeeper quorum lost on host umbra-7"
    output = laden.session("one").outputs.keep("journalctl", "\n".join(lines)).output
    assert output is not None
    (hit,) = laden.recall("when was the zookeeper quorum lost?").hits
    assert (hit.kind, hit.key, hit.trust, hit.origin) == ("output", output.id, "data", "tool journalctl")
    assert "«zookeeper» «quorum» «lost»" in hit.snippet
    assert abs(hit.line - 1_701) <= 12
    assert keys(laden, "zookeeper", kinds=["notes"]) == []
    assert keys(laden, "journalctl heartbeat", kinds=["outputs"]) == [output.id]
    laden.call("delete_output", {"id": output.id})
    assert keys(laden, "zookeeper quorum") == []


def test_what_is_deleted_or_of_another_project_is_not_found(laden: Limpet, opened: Opener) -> None:
    (note,) = keys(laden, "lexer")
    assert opened(project="other").recall("lexer").hits == ()
    laden.session("one").notes.delete(note)
    assert keys(laden, "lexer") == []
    laden.memory.write("deploy-target", "Nothing to see.")
    assert keys(laden, "Frankfurt") == []


def test_a_budget_is_kept_and_what_is_left_out_is_counted(hold: Limpet) -> None:
    from limpet.text import tokens

    for number in range(30):
        hold.session("one").notes.add(f"fact {number}: " + f"gearbox item{number} " + f"filler{number} " * 80)
    small = hold.recall("gearbox", tokens=300)
    large = hold.recall("gearbox", limit=20, tokens=3_000)
    assert sum(tokens.count(hit.snippet) for hit in small.hits) <= 300
    assert len(large.hits) == 20
    assert small.left_out == 30 - len(small.hits)


def test_a_blank_question_and_a_wrong_filter_are_named(hold: Limpet) -> None:
    with pytest.raises(BadInput, match="query is empty"):
        hold.recall("  ")
    with pytest.raises(BadInput, match="kinds"):
        hold.recall("x", kinds=["dreams"])
    with pytest.raises(BadInput, match="since"):
        hold.recall("x", since="the other day")


@pytest.mark.parametrize(
    "query",
    [
        *('"', "'", "*", "a AND", "NEAR(a b, 2)", "text:a", "^a", "a:*", "!a", "a & b", "a <-> b", "'; DROP TABLE"),
        *(
            "%",
            "_",
            "\\",
            "(a+)+$",
            "[",
            "\x1b[31m",
            "\u202e",
            "記憶",
            "👍",
            "x" * 9_000,
            "word " * 10_000,
            "\u0301" * 50,
        ),
        *("2026-99-99", "999 years ago", "in 9999", "0 days ago", "31st february", "\uff26\uff35\uff2c\uff2c"),
    ],
)
def test_any_text_is_a_legal_question(laden: Limpet, query: str) -> None:
    assert isinstance(laden.recall(query).hits, tuple)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=200))
def test_no_text_breaks_the_search(hold: Limpet, query: str) -> None:
    if query.strip():
        hold.recall(query)


def test_an_output_is_shown_where_it_has_the_words_that_its_preview_lacks(hold: Limpet) -> None:
    """Its first piece is found by a word of the preview (600 lines), the piece that answers by one of its own."""
    lines = [f"[{number}/600] compiling src/module_{number}.c" for number in range(600)]
    lines[300] = "src/codec/huffman.c:212: warning: variable 'depth' may be used uninitialized"
    hold.session("s").outputs.keep("Bash", "\n".join(lines), call="make all")
    (hit,) = hold.recall("There was one warning in the build of yesterday. In which file and line?").hits
    assert "huffman.c:212: «warning»" in hit.snippet


def test_an_output_is_shown_where_it_says_what_its_preview_quotes(hold: Limpet) -> None:
    lines = [f"2026-03-12 08:{at // 60:02}:{at % 60:02} INFO compiled module ledger_{at}.c" for at in range(600)]
    lines[333] = "2026-03-12 08:05:33 ERROR E4711: file 'streets.h' not found"
    lines[500] = "2026-03-12 08:08:20 ERROR connection to the warehouse was lost after 30 s"
    kept = hold.session("one").outputs.keep("build", "\n".join([*lines, "Build stopped: 2 errors"]))
    assert "connection to the warehouse was lost" in kept.text  # so the first piece is found by these words too
    (hit,) = hold.recall("error connection", kinds=["outputs"]).hits
    assert "«ERROR» «connection» to the warehouse was lost" in hit.snippet
    assert hit.line == 501
    (hit,) = hold.recall("which modules did the build compile", kinds=["outputs"]).hits
    assert "«compiled» «module»" in hit.snippet


def test_outputs_that_wait_for_the_index_are_counted(hold: Limpet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OUTPUT_CATCH_UP_BYTES", 10_000)
    for number in range(5):
        hold.session().outputs.keep("shell", f"page {number} with quince\n" * 400)
    first = hold.call("recall", {"query": "quince"})
    assert first["not_searched"]["outputs"] == 3
    assert "may stand in them" in first["not_searched"]["why"]
    assert hold.recall("quince", kinds=["notes"]).waiting == 0, "where outputs are not asked for, none wait"
    assert [hold.recall("quince").waiting for _ in range(3)] == [1, 0, 0]
    assert "not_searched" not in hold.call("recall", {"query": "quince"})


def test_one_row_is_found_among_many_outputs_of_the_same_words(hold: Limpet) -> None:
    """All its words are everywhere; only the order of two numbers tells it, and what is asked for stands behind it."""
    outputs = hold.session().outputs
    for record in range(100):
        outputs.keep("fetch", "\n".join(f"row {record}-{row} holds {row * record * 7919 % 9973}" for row in range(300)))
    while hold.recall("row", kinds=["outputs"]).waiting:
        pass
    for record in (7, 40, 88):
        best = hold.recall(f'"row {record}-150 holds"', kinds=["outputs"]).hits[0]
        plain = best.snippet.replace("«", "").replace("»", "")
        assert f"row {record}-150 holds {150 * record * 7919 % 9973}\n" in plain
