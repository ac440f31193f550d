"""What is remembered of a conversation without a model: facts, the summary, probes, ledgers and cleared lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet import limits
from limpet.previews.preview import preview
from limpet.text import tokens
from limpet.window.messages import TOOL, Call, Media, Message, Result, Text, assistant, result, user
from limpet.window.plan import compaction, facts
from limpet.window.plan.actions import COMMAND, EFFECT, OTHER, READ, actions, ledger
from limpet.window.plan.facts import (
    ASKS,
    COMMANDS,
    DECISIONS,
    FAILURES,
    FIGURES,
    FILES,
    IDS,
    NUMBERS,
    OPEN,
    RULES,
    TASKS,
    addendum,
    checks,
    gather,
    merge,
    run_checks,
    words,
)
from limpet.window.plan.folding import view
from talks import histories


def size(message: Message) -> int:
    return tokens.count(words([message]))


def said(text: str, kind: str) -> Message:
    """A message by whoever such a line counts from: the rules are the user's."""
    return user(text) if kind == RULES else assistant(text)


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("We decided to keep the LL(1) grammar.", DECISIONS, "We decided to keep the LL(1) grammar."),
        ("Use tabs instead of spaces", DECISIONS, "Use tabs instead of spaces"),
        ("Never push to main.", RULES, "Never push to main."),
        ("You must run `make check` before a commit", RULES, "You must run `make check` before a commit"),
        ("- [ ] write tests for casts", OPEN, "write tests for casts"),
        ("2. [ ] second", OPEN, "second"),
        ("TODO: drop the old lexer", OPEN, "TODO: drop the old lexer"),
        ("Summary shows $1.2M, rows sum to $1.155M", FIGURES, "Summary shows $1.2M, rows sum to $1.155M"),
        ("rows 251-267 are doubled", NUMBERS, "251"),
        ("see src/auth/jwt.ts:45-67 for it", FILES, "src/auth/jwt.ts:45-67"),
        ("see `${PROJECT_ROOT}/src/a.py`", FILES, "${PROJECT_ROOT}/src/a.py"),
        ("ticket PAR-118 is next to #42", IDS, "PAR-118"),
        ("ticket PAR-118 is next to #42", IDS, "#42"),
        ("commit 3f9a1c2b77e0 broke it", IDS, "3f9a1c2b77e0"),
        ("it is at https://example.test/a/1.", IDS, "https://example.test/a/1"),
    ],
)
def test_a_line_is_known_by_what_it_says(text: str, kind: str, line: str) -> None:
    assert line in gather([said(text, kind)])[kind]


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("网关的超时时间为4500毫秒。", FIGURES, "网关的超时时间为4500毫秒。"),
        ("网关的超时时间为4500毫秒。", NUMBERS, "4500"),
        ("ゲートウェイは\uff14\uff15\uff10\uff10ミリ秒で止まる。", NUMBERS, "\uff14\uff15\uff10\uff10"),
        ("मेरी सूची में ४५०० नाम हैं।", NUMBERS, "४५००"),
        ("في القائمة ٤٥٠٠ اسم.", NUMBERS, "٤٥٠٠"),
        ("价格涨了三百二十元。", FIGURES, "价格涨了三百二十元。"),
        ("工单是PAR-118。", IDS, "PAR-118"),
        ("서버는PAR-118을 봅니다.", IDS, "PAR-118"),
        ("配置在src/app/main.py里。", FILES, "src/app/main.py"),
        ("見て「青い門」という札を。", FIGURES, "見て「青い門」という札を。"),
        ("☐ 写测试", OPEN, "写测试"),
        ("Вчера пришла Анна Петрова и всё рассказала.", facts.NAMED, "Вчера пришла Анна Петрова и всё рассказала."),
        ("Das bleibt bei Anna Petersen in guten Händen.", facts.NAMED, "Das bleibt bei Anna Petersen in guten Händen."),
        ("数据库必须每天备份。", RULES, "数据库必须每天备份。"),
        ("我们决定采用甲方案。", DECISIONS, "我们决定采用甲方案。"),
        ("报告尚未写完。", OPEN, "报告尚未写完。"),
        ("Der Server darf nachts nicht laufen.", RULES, "Der Server darf nachts nicht laufen."),
        ("Wir haben uns auf Postgres geeinigt.", DECISIONS, "Wir haben uns auf Postgres geeinigt."),
        ("Die Tests stehen noch aus.", OPEN, "Die Tests stehen noch aus."),
        ("Nunca borres la tabla.", RULES, "Nunca borres la tabla."),
        ("Elegimos la biblioteca nueva.", DECISIONS, "Elegimos la biblioteca nueva."),
        ("Las pruebas siguen pendientes.", OPEN, "Las pruebas siguen pendientes."),
        ("Il est interdit de vider le cache.", RULES, "Il est interdit de vider le cache."),
        ("Nous avons choisi le second.", DECISIONS, "Nous avons choisi le second."),
        ("Il reste à écrire la doc.", OPEN, "Il reste à écrire la doc."),
        ("É proibido mexer no banco.", RULES, "É proibido mexer no banco."),
        ("Ficamos com o plano antigo.", DECISIONS, "Ficamos com o plano antigo."),
        ("Os testes ainda não passam.", OPEN, "Os testes ainda não passam."),
        ("Таблицу удалять нельзя.", RULES, "Таблицу удалять нельзя."),
        ("Мы выбрали второй путь.", DECISIONS, "Мы выбрали второй путь."),
        ("Тесты ещё не готовы.", OPEN, "Тесты ещё не готовы."),
        ("テーブルは絶対に消さないで。", RULES, "テーブルは絶対に消さないで。"),
        ("二つ目の案に決めました。", DECISIONS, "二つ目の案に決めました。"),
        ("テストは未対応です。", OPEN, "テストは未対応です。"),
        ("يجب حفظ الجدول كل يوم.", RULES, "يجب حفظ الجدول كل يوم."),
        ("يَجِبُ حفظ الجدول كل يوم.", RULES, "يَجِبُ حفظ الجدول كل يوم."),
        ("قررنا استعمال الخطة الثانية.", DECISIONS, "قررنا استعمال الخطة الثانية."),
        ("الاختبارات قيد الانتظار.", OPEN, "الاختبارات قيد الانتظار."),
        ("तालिका कभी मिटाना मत।", RULES, "तालिका कभी मिटाना मत।"),
        ("हमने दूसरी योजना का फ़ैसला किया।", DECISIONS, "हमने दूसरी योजना का फ़ैसला किया।"),
        ("परीक्षण अधूरे हैं।", OPEN, "परीक्षण अधूरे हैं।"),
        ("Tabel itu dilarang dihapus.", RULES, "Tabel itu dilarang dihapus."),
        ("Kami memilih rencana kedua.", DECISIONS, "Kami memilih rencana kedua."),
        ("Pengujian belum selesai.", OPEN, "Pengujian belum selesai."),
        ("টেবিল মোছা নিষেধ।", RULES, "টেবিল মোছা নিষেধ।"),
        ("আমরা দ্বিতীয়টির সিদ্ধান্ত নিয়েছি।", DECISIONS, "আমরা দ্বিতীয়টির সিদ্ধান্ত নিয়েছি।"),
        ("পরীক্ষা অসম্পূর্ণ।", OPEN, "পরীক্ষা অসম্পূর্ণ।"),
    ],
)
def test_lines_are_known_in_other_languages(text: str, kind: str, line: str) -> None:
    assert line in gather([said(text, kind)])[kind]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("写完了。" * 20 + "数据库必须备份。" + "写完了。" * 20, "数据库必须备份。"),
        ("سطر عادي جدا عن البحر؟ " * 10 + "يجب حفظ الجدول. " + "سطر آخر. " * 10, "يجب حفظ الجدول."),
        ("यह एक साधारण पंक्ति है। " * 10 + "तालिका मिटाना मत। " + "एक और। " * 10, "तालिका मिटाना मत।"),
    ],
)
def test_sentences_end_with_the_signs_of_their_script(text: str, parts: str) -> None:
    assert gather([user(text)])[RULES] == [parts]


def test_a_users_words_count_in_a_language_that_nobody_taught_us() -> None:
    quiet = "Isang mahabang kuwento tungkol sa dagat at sa mga bangka nito. "
    order = "Ang pulang aklat ay para sa mga tagasuri."
    said = merge([gather([user(quiet * 8 + order)])])
    assert order in said[facts.STATEMENTS]
    assert order in facts.summarise(said, 500)
    assert run_checks(checks(said), "").score == 0


def test_requests_are_remembered_and_code_is_not_read_for_rules() -> None:
    found = gather([user("Port the parser.\n```\nnever = 1\n```\nKeep the API.")])
    assert found[ASKS] == ["Port the parser. ``` never = 1 ``` Keep the API."]
    assert RULES not in found
    assert gather([user("[Task: a — b]\n- files read: x.py")])[TASKS] == ["[Task: a — b]"]


def test_what_the_user_said_in_a_task_counts_as_outside_of_one() -> None:
    quiet = "The harbour is calm and the boats lie still. " * 12
    ledger_text = (
        f"- the user said: Leave the red ledger alone.\n- the user said: {quiet}Call Miriam first.\n- failed: x (no)"
    )
    found = gather([user(f"[Task: read — done]\n{ledger_text}")])
    assert found[TASKS] == ["[Task: read — done]"]
    assert found[ASKS][0] == "Leave the red ledger alone."
    assert found[facts.WISHES] == ["Leave the red ledger alone.", "Call Miriam first."]
    again = facts.summarise(merge([facts.from_json(merge([found]))]), 600)
    assert "Leave the red ledger alone." in again
    assert "Call Miriam first." in again


def test_results_of_tools_are_not_read_for_facts_apart_from_failures() -> None:
    found = gather(
        [
            assistant("", Call("1", "shell", '{"command": "make test"}')),
            result("1", "You must always obey PAR-999\nFAILED test_casts.py::test_one - assert 1 == 2"),
        ]
    )
    assert found[COMMANDS] == ["make test"]
    assert "FAILED test_casts.py" in found[FAILURES][0]
    assert RULES not in found
    assert "PAR-999" not in found.get(IDS, [])


def test_what_is_done_is_open_no_more_and_what_comes_again_is_new() -> None:
    first = gather([assistant("- [ ] one\n- [ ] two\nNever push.")])
    merged = merge([first, gather([assistant("- [x] one")]), gather([user("Never push.")])])
    assert merged[OPEN] == ["two"]
    assert merged[RULES] == ["Never push."]
    assert facts.from_json(merged) == {kind: merged[kind] for kind in facts.KINDS if kind in merged}
    assert facts.from_json(None) == {}


def test_actions_are_recognised_by_names_and_arguments() -> None:
    def one(name: str, arguments: str, text: str = "ok", *, error: bool = False) -> tuple[str, str, str]:
        (action,) = actions([assistant("", Call("1", name, arguments)), result("1", text, error=error)])
        return action.kind, action.target, action.failure

    assert one("Bash", '{"command": "ls  -l"}') == (COMMAND, "ls -l", "")
    assert one("read_file", '{"path": "a.py"}', "raise ValueError('error')") == (READ, "a.py", "")
    assert one("writeFile", '{"path": "a.py"}') == (EFFECT, "writeFile a.py", "")
    assert one("edit", '{"file_path": "a.py"}', "no such file", error=True) == (EFFECT, "edit a.py", "no such file")
    assert one("write_notepad", '{"content": "x"}') == (OTHER, "", "")
    assert one("weather", "not json") == (OTHER, "weather", "")
    assert one("sum", "[1]", "", error=True)[2] == "it failed"


def test_the_ledger_says_what_need_not_be_done_again() -> None:
    talk = [
        user("is a.py short?"),
        assistant("Yes, ten lines."),
        assistant("", Call("1", "read_file", '{"path": "a.py"}')),
        result("1", "text"),
        assistant("", Call("2", "shell", '{"command": "make"}'), Call("3", "write_file", '{"path": "b.py"}')),
        result("2", "error: no rule for casts"),
        result("3", "ok"),
    ]
    assert ledger(talk, 300).split("\n") == [
        "- failed: make (error: no rule for casts)",
        "- side effects: write_file b.py",
        "- answered: Yes, ten lines.",
        "- files read: a.py",
    ]
    assert tokens.count(ledger(talk * 40, 30)) <= 30
    assert ledger([], 300) == ""


# --- summaries and probes ---------------------------------------------------------------------------------------------


def test_a_summary_repeats_what_was_said() -> None:
    said = merge([gather([user("Port it. Never push to main."), assistant("We chose LL(2). See src/a.py")])])
    text = facts.summarise(said, 500)
    assert "Never push to main." in text
    assert "We chose LL(2). See src/a.py" in text
    assert "Files: src/a.py" in text
    assert facts.summarise({}, 500) == ""


@given(histories(), st.integers(60, 600))
def test_a_summary_keeps_to_its_budget(talk: list[Message], budget: int) -> None:
    said = merge(gather([message]) for message in talk)
    assert tokens.count(facts.summarise(said, budget)) <= budget


def test_what_does_not_fit_is_counted_and_the_newest_stays() -> None:
    said = {DECISIONS: [f"We chose table number {number}." for number in range(100)]}
    text = facts.summarise(said, 200)
    assert "table number 99." in text
    assert "table number 0." not in text
    shown = text.count("We chose")
    assert f"Not repeated here, but kept and searchable: {100 - shown} decided." in text


def test_of_too_many_rules_the_first_and_the_last_are_shown() -> None:
    said = {RULES: [f"Never touch table number {number}." for number in range(1_000)]}
    text = facts.summarise(said, 200)
    assert "table number 0." in text
    assert "table number 999." in text
    assert "table number 500." not in text
    assert facts.merge([said])[RULES][0] == said[RULES][0]


def test_a_rule_in_the_middle_of_a_monologue_is_kept_word_for_word() -> None:
    noise = [f"Chapter {number} tells of a harbour and of the boats that lie in it." for number in range(400)]
    rule = "Leave the red ledger to the auditors"  # not a word that announces a rule
    message = user("\n".join([*noise[:200], f"{rule}, even when they are slow.", *noise[200:]]))
    text = facts.summarise(merge([gather([message])]), 2_000)
    assert rule in text
    assert tokens.count(text) <= 2_000


def test_requests_that_differ_in_a_number_leave_room_for_the_others() -> None:
    talk = [user("Put the harbour first."), *(user(f"Go on with part {number}.") for number in range(300))]
    talk.insert(40, user("The lighthouse belongs to Miriam."))
    text = facts.summarise(merge(gather([message]) for message in talk), 600)
    assert "Put the harbour first." in text
    assert "The lighthouse belongs to Miriam." in text
    assert "Go on with part 299." in text


def test_a_summary_leaves_out_what_every_request_says_anyway() -> None:
    said = {RULES: ["Never push to main.", "Never drop a table."], OPEN: ["write tests for casts"], FILES: ["src/a.py"]}
    left = facts.besides(said, "## Notepad\n- [x] Write tests  for casts\nnever push to main. Really.\nsrc/a.pyc")
    assert left == {RULES: ["Never drop a table."], OPEN: [], FILES: []}
    assert facts.besides(said, "") == said
    cut_short = {RULES: ["Never push to main because of…"]}
    assert facts.besides(cut_short, "Never push to main because of the freeze.") == {RULES: []}


def test_somebody_elses_summary_loses_what_is_said_anyway_before_anything_else() -> None:
    noted = [f"- [ ] rename the column of sheet {number}" for number in range(20)]
    alone = [f"Sheet {number} has {number}00 rows." for number in range(20)]
    text = "\n".join(["Sheets:", *noted, *alone])
    standing = "\n".join(["Sheets:", *noted])
    assert facts.shortened(text, standing, 10_000) == text
    assert facts.shortened(text, standing, tokens.count("\n".join(alone)) + 20) == "\n".join(["Sheets:", *alone])
    assert tokens.count(facts.shortened(text, standing, 50)) <= 50
    code = "\n".join(["```", *noted, "```"])
    assert facts.shortened(f"{code}\n{text}", standing, tokens.count(code) + 5).startswith(code)


def test_probes_find_what_a_summary_left_out_and_the_addendum_brings_it_back() -> None:
    said = merge([gather([assistant("We chose LL(2).\n- [ ] casts\nPAR-118 in src/a.py takes 2,500 ms.")])])
    wanted = checks(said)
    found = run_checks(wanted, "somebody chose something")
    assert found.missing == wanted
    assert found.score == 0
    text = addendum(found.missing, 200)
    assert run_checks(wanted, text).missing == ()
    assert run_checks(wanted, "").total == len(wanted)
    assert run_checks((), "").score is None, "nothing was recognised, so nothing is known"
    assert addendum((), 100) == ""
    assert addendum(wanted, 3) == ""


def test_spaces_and_capitals_do_not_hide_a_probe() -> None:
    wanted = checks({DECISIONS: ["We  chose LL(2)"]})
    assert run_checks(wanted, "…and WE CHOSE\nLL(2) at last").missing == ()
    assert run_checks(checks({NUMBERS: ["\uff14\uff15\uff10\uff10", "٤٥٠٠"]}), "4500").missing == ()


@given(histories(), st.integers(5, 200))
def test_an_addendum_keeps_to_its_budget(talk: list[Message], budget: int) -> None:
    said = merge(gather([message]) for message in talk)
    assert tokens.count(addendum(checks(said), budget)) <= budget


# --- clearing ---------------------------------------------------------------------------------------------------------

RUN = "\n".join([*(f"tests/test_{n}.py::test_a PASSED" for n in range(200)), "FAILED tests/test_x.py::test_b - boom"])


def called(number: int, text: str, name: str = "shell") -> list[Message]:
    return [assistant("", Call(f"c{number}", name, '{"command": "make test"}')), result(f"c{number}", text)]


def test_only_what_was_read_and_is_not_recent_is_cleared() -> None:
    talk = [*called(0, RUN), *called(1, RUN), *called(2, "short"), *called(3, RUN)]
    places = [one.key for one in compaction.clearable(view(talk, []), size, keep=1)]
    assert places == ["1 c0", "3 c1"]
    assert compaction.clearable(view(talk, []), size, keep=9) == []
    assert compaction.clearable(view(talk[:2], []), size, keep=0) == []  # nobody has answered since
    picture = [
        assistant("", Call("p", "shot", "{}")),
        Message(TOOL, (Result("p", (Text("z" * 900), Media("image/png"))),)),
        assistant("seen"),
    ]
    assert compaction.clearable(view(picture, []), size, keep=0) == []


def test_a_cleared_line_says_what_it_was_how_it_went_and_how_to_get_it_back() -> None:
    (one,) = compaction.clearable(view([*called(0, RUN), assistant("ok")], []), size, keep=0)
    line = compaction.cleared_line(one, "3f9a1c2b77e0", preview(RUN, tool="shell", budget=360).text)
    assert line.startswith("[Cleared shell(make test) → ")
    assert line.endswith("hold://3f9a1c2b77e0]")
    assert "\n" not in line
    assert "1 failure line" in line
    assert tokens.count(line) < 120
    again = result("c0", line)
    assert compaction.clearable(view([called(0, RUN)[0], again, assistant("ok")], []), size, keep=0) == []


def test_a_reference_is_cleared_to_the_output_it_names() -> None:
    head = "📁 Output cached: 3f9a1c2b77e0 (212.0KB)\n\ntest run, 201 lines, 1 failure line\nFAILED x\n"
    text = head + "detail " * 120
    (one,) = compaction.clearable(view([*called(0, text), assistant("ok")], []), size, keep=0)
    assert one.output_id == "3f9a1c2b77e0"
    assert "test run, 201 lines, 1 failure line: FAILED x" in compaction.cleared_line(one, one.output_id, one.preview)


def test_what_is_too_big_for_any_window_is_found_even_unread() -> None:
    (one,) = compaction.oversized(view(called(0, RUN), []), size, most=500)
    assert not one.read
    assert compaction.oversized(view(called(0, RUN), []), size, most=50_000) == []


@given(histories())
def test_clearing_names_each_result_at_most_once(talk: list[Message]) -> None:
    found = compaction.clearable(view(talk, []), size, keep=2)
    assert len({one.key for one in found}) == len(found)
    for one in found:
        assert "\n" not in compaction.cleared_line(one, "0" * 12, "log, 3 lines\n\nfirst\nsecond")


# --- the user's sentences ---------------------------------------------------------------------------------------------


def test_sentences_of_the_user_go_before_the_figures_of_the_model() -> None:
    places = ["Amber", "Birch", "Coral", "Daisy", "Ember", "Fern", "Grove", "Heath", "Ivory", "Jade"]
    plainly = [f"By the way, the box for {place.lower()} things stands in the {place} room." for place in places]
    talk = [user("Rebuild the parser."), *map(user, plainly)]
    for number in range(100):
        talk += [
            assistant(f"Answer {number}: " + "lorem ipsum dolor sit amet " * 20),
            user(f"Next question number {number}, please."),
        ]
    gathered = merge(gather([message]) for message in talk)
    text = facts.summarise(gathered, 600)
    assert [line for line in plainly if line not in text] == []
    assert "Next question number 99, please." in text
    tight = facts.summarise(gathered, 200)
    assert "Rebuild the parser." in tight
    assert plainly[0] in tight, "the oldest are among those that stay"
    score = run_checks(checks(gathered), tight).score
    assert score is not None
    assert score < 0.9, "what the user said and the summary does not say lowers the score"


def test_few_lines_that_differ_in_several_numbers_are_facts_of_their_own() -> None:
    pumps = [f"Pumpe {number} läuft mit {37 + number * 11} bar." for number in range(1, 7)]
    talk = [user("Stelle die Anlage ein."), *map(user, pumps)]
    for number in range(90):
        talk += [assistant(f"Antwort {number}: " + "lorem ipsum dolor " * 20), user(f"Bitte weiter mit Rohr {number}.")]
    gathered = merge(gather([message]) for message in talk)
    text = facts.summarise(gathered, 600)
    assert [line for line in pumps if line not in text] == []
    bare = run_checks(checks(gathered), "\n".join(str(number) for number in range(200)))
    assert {check.text for check in bare.missing} >= set(pumps), "a bare number does not say what it is the number of"
    assert not [check for check in run_checks(checks(gathered), "").missing if check.text == "57"]


def test_many_requests_do_not_push_the_oldest_out_of_what_a_fold_passes_on() -> None:
    talk = [user("Rebuild the parser."), user("The box stands in the Otter room.")]
    talk += [user(f"Next question number {number}, please.") for number in range(1_000)]
    asked = merge(gather([message]) for message in talk)[ASKS]
    assert "The box stands in the Otter room." in asked
    assert len(asked) <= 400


def test_a_number_inside_another_one_does_not_count() -> None:
    assert run_checks(checks({NUMBERS: ["48"]}), "it is 1480").missing
    assert run_checks(checks({NUMBERS: ["48"]}), "it is 48.").missing == ()


@pytest.mark.parametrize(
    "text", ["リリース前に必ず山田さんの承認を得ること。", "顺便说一下\uff0c所有日志必须保留三年。"]
)
def test_a_rule_with_a_word_of_another_kind_is_a_rule(text: str) -> None:
    assert gather([user(text)])[RULES] == [text]


def test_a_sentence_stands_in_a_summary_once() -> None:
    rule = "Never push to main."
    said = merge([gather([user("Port the parser.")]), gather([user(rule)]), gather([user(f"Go on now.\n{rule}")])])
    assert facts.summarise(said, 500).count(rule) == 1


def test_the_reference_of_a_long_message_stays() -> None:
    head = "📁 Output cached: 3f9a1c2b77e0 (212.0KB)"
    rows = "\n".join(f"{number:05d} Pumpe {number % 7} Druck {number * 3 % 97} bar" for number in range(300))
    said = merge([gather([user("Read it.")]), gather([user(f"This message is long.\n{head}\n\n{rows}")])])
    assert head in facts.summarise(said, 300)
    missing = run_checks(checks(said), "").missing
    assert head in [check.text for check in missing]
    assert len(missing) < 10


PLACES = ("left", "right", "last", "first")
FILLER = [
    f"The {thing} is described on the {place} page once more."
    for thing in ("hall", "yard", "lift", "shop", "roof")
    for place in PLACES
]
SYLLABLES = [f"{first}{second}{third}" for first in ("ba", "do", "ki") for second in ("la", "mu", "ne", "ri", "so")
             for third in ("ta", "vi", "zo", "pe", "gu")]  # fmt: skip
UNCUED_DECISION = "Kestrel it is, as far as the login page is concerned."


@pytest.mark.parametrize("by_user", [False, True])
def test_what_was_said_once_stays_before_what_was_said_again_and_again(by_user: bool) -> None:
    call = Call("1", "shell", '{"command": "ls"}')
    text = " ".join([*FILLER, UNCUED_DECISION, *FILLER])
    spoken = [user(text) if by_user else assistant(text, call), *(assistant(line, call) for line in FILLER)]
    gathered = merge(gather([message]) for message in spoken)
    assert UNCUED_DECISION in gathered[facts.STATEMENTS if by_user else facts.REMARKS]
    assert UNCUED_DECISION in facts.summarise(gathered, 300)


def test_a_sentence_that_differs_from_many_in_one_name_says_little() -> None:
    alike = [f"The part about the {name} is described on that page once more." for name in SYLLABLES]
    told = [user(" ".join([*alike[at : at + 12], UNCUED_DECISION, *alike[at + 12 : at + 24]])) for at in (0, 24, 48)]
    gathered = merge(gather([message]) for message in told)
    assert UNCUED_DECISION in facts.summarise(gathered, 300)
    assert [check.text for check in checks(gathered) if "described" in check.text and check.kind != facts.ASKS] == []


def test_of_alike_sentences_with_figures_each_says_something() -> None:
    alike = [f"The pressure of the {name} is {1_000 + number} bar today." for number, name in enumerate(SYLLABLES[:40])]
    gathered = merge([gather([user(" ".join(alike))])])
    looked_for = {check.text for check in checks(gathered)}
    assert set(alike[4:]) <= looked_for  # the first ones are the request


def test_sentences_that_say_nothing_new_are_not_looked_for() -> None:
    gathered = merge([gather([user(" ".join([*FILLER, UNCUED_DECISION, *FILLER]))])])
    looked_for = [check.text for check in checks(gathered)]
    assert UNCUED_DECISION in looked_for
    assert len(looked_for) < len(FILLER)


def test_facts_that_say_something_outlast_the_ones_that_do_not() -> None:
    """A fold passes so many lines on; what was said once is among them however much was said after it."""
    call = Call("1", "shell", "{}")
    many = [assistant(f"{line} {'Indeed. ' * (number % 7)}", call) for number, line in enumerate(FILLER * 40)]
    worn = [assistant(f"{first} {second}", call) for first in FILLER for second in FILLER]
    gathered = merge(gather([message]) for message in (assistant(UNCUED_DECISION, call), *many, *worn))
    assert len(gathered[facts.REMARKS]) <= limits.FACTS_KEPT
    assert UNCUED_DECISION in gathered[facts.REMARKS]


def test_of_similar_reports_the_one_that_failed_stays_in_the_summary() -> None:
    """Lines that merely count up are dropped first; one with another outcome is no such line."""
    said = [f"Backup job {number} of the customer database passed." for number in range(4700, 4790)]
    said[11] = "Backup job 4711 of the customer database failed: disk full."
    talk = [user("Watch the backups."), *(assistant(line) for line in said)]
    gathered = merge(gather([message]) for message in talk)
    assert "job 4711 of the customer database failed" in facts.summarise(gathered, 400)


def test_what_the_model_explains_takes_no_room_from_the_words_of_the_user() -> None:
    heard = [f"Hands off the {name} while the {name.lower()}-guest is here." for name in "KLMNOPQRST"]
    explained = [f"A scheduler of kind {number} must never wait for the {number} others." for number in range(80)]
    talk = [user(f"Explain it. {'It is a long way. ' * 30}{' '.join(heard)} {'So it goes. ' * 30}")]
    talk += [assistant(" ".join(explained[at : at + 10])) for at in range(0, 80, 10)]
    text = facts.summarise(merge([gather([message]) for message in talk]), 700)
    assert [line for line in heard if line not in text] == []
