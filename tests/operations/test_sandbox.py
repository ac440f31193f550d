"""run_sandbox_code over a real store: what the code reaches, what it changes, and what comes back into the window."""

from __future__ import annotations

import json
from typing import Any

import pytest

from limpet import errors, limits
from limpet.api import Limpet, Session
from limpet.catalogue.operation import Context
from limpet.sandbox.run import run_sandbox_code
from operations.conftest import Clock

ROWS = [{"id": number, "name": f"row {number}"} for number in range(1_000)]
LINES = "".join(f"line {number} took {number * 7} ms\n" for number in range(1, 1_001))


@pytest.fixture
def work(hold: Limpet) -> Session:
    return hold.session()


def kept(work: Session, text: str) -> str:
    output = work.outputs.keep("shell", text).output
    assert output is not None
    return output.id


def fails(work: Session, code: str, **inputs: Any) -> str:
    with pytest.raises(errors.BadInput) as problem:
        work.sandbox.run(code, inputs or None)
    assert "\n" not in problem.value.message
    return problem.value.message


def test_outputs_are_read_whole_in_parts_and_by_question(work: Session) -> None:
    log, rows = kept(work, LINES), kept(work, json.dumps(ROWS))
    inputs = {"log": log, "rows": rows}

    def value(code: str) -> Any:
        return work.sandbox.run(code, inputs).result

    assert value("len(outputs.read(log))") == len(LINES)
    assert value("sum(row['id'] for row in outputs.json(rows))") == sum(range(1_000))
    assert value("len(outputs.lines(log))") == 1_000
    assert value("outputs.lines(log, 3, 4)") == ["line 3 took 21 ms", "line 4 took 28 ms"]
    assert value("outputs.lines(log, 1000)") == ["line 1000 took 7000 ms"]
    assert value("outputs.lines(log, 1001), outputs.lines(log, 0), outputs.lines(log, 5, 4)") == [[], [], []]
    assert value("outputs.read(log, lines='3-3')") == "line 3 took 21 ms\n"
    assert value("outputs.read(rows, path='/7/name')").strip('"') == "row 7"
    assert "line 77 took 539 ms" in value("outputs.search(log, 'how long did line 77 take')")
    assert value("outputs.read(log, match='line 99')").count("\n") >= 10
    assert {entry["id"] for entry in value("outputs.list()")} == {log, rows}


def test_reading_counts_as_use_once_a_run(work: Session, hold: Limpet, clock: Clock) -> None:
    log = kept(work, LINES)
    before = hold.store.outputs.find(hold.scope, log)
    clock.pass_by()
    work.sandbox.run("[outputs.lines(id, n, n) for n in range(1, 50)]", {"id": log})
    after = hold.store.outputs.find(hold.scope, log)
    assert before is not None
    assert after is not None
    assert (after.uses, after.used_at) == (before.uses + 1, clock.now)


def test_the_notepad_is_changed_by_the_operations_of_everybody(work: Session, hold: Limpet) -> None:
    code = "session.notepad.write('# Plan\\n')\nsession.notepad.append('- casts\\n')\nprint(session.notepad.read())"
    assert work.sandbox.run(code).output == "# Plan\n- casts\n\n"
    assert work.notepad.read() == "# Plan\n- casts\n"
    assert [(event.by, event.operation, event.version) for event in hold.history(kind="notepad")] == [
        ("agent/sandbox", "update_notepad", 2),
        ("agent/sandbox", "write_notepad", 1),
    ]
    answer = work.sandbox.run("session.notepad.write(long)", {"long": "word " * 9_000})
    assert answer.result["version"] == 3
    assert answer.warning is not None
    assert "its budget is" in answer.warning
    hold.undo()
    assert work.notepad.read() == "# Plan\n- casts\n"


def test_a_person_who_runs_code_is_named_as_one(hold: Limpet) -> None:
    hold.call("run_sandbox_code", {"code": "session.notepad.write('x')"}, by="person/cli")
    assert hold.history(kind="notepad")[0].by == "person/sandbox"


def test_writes_before_a_failure_stand_and_the_error_says_so(work: Session) -> None:
    message = fails(work, "session.notepad.write('kept')\nprint('so far')\ndef half(n):\n    return n / 0\nhalf(1)")
    assert message == (
        "the code failed at line 4, 'return n / 0': ZeroDivisionError: division by zero. Correct it and run it again. "
        "What it wrote to the notepad before that stands (1 changes). It had printed: 'so far'."
    )
    assert work.notepad.read() == "kept"


def test_a_write_that_is_refused_changes_nothing_and_can_be_caught(work: Session) -> None:
    work.notepad.write("as it was")
    too_long = {"text": "x" * (limits.NOTEPAD_MAX_CHARS + 1)}
    assert "notepad has 100,001 characters" in fails(work, "session.notepad.write(text)", **too_long)
    caught = work.sandbox.run("try:\n    session.notepad.append(7)\nexcept ValueError as problem:\n    print(problem)")
    assert "must be a string" in caught.output
    assert work.notepad.read() == "as it was"


def test_it_works_in_the_session_of_the_call(hold: Limpet) -> None:
    hold.call("run_sandbox_code", {"code": "session.notepad.write('there')", "session_id": "another"})
    assert hold.session("another").notepad.read() == "there"
    assert hold.session().notepad.read() == ""


def test_what_is_too_long_for_the_window_becomes_an_output(work: Session) -> None:
    log = kept(work, LINES)
    answer = work.sandbox.run("print(outputs.read(id).upper())\noutputs.lines(id)", {"id": log})
    assert answer.output.startswith("📁 Output cached: ")
    assert answer.result.startswith("📁 Output cached: ")
    assert work.outputs.read_content(answer.output.split()[3]) == LINES.upper() + "\n"
    assert json.loads(work.outputs.read_content(answer.result.split()[3])) == LINES.splitlines()
    assert hold_tools(work) == {"shell", "run_sandbox_code"}


def hold_tools(work: Session) -> set[str]:
    return {output.tool for output in work.outputs.list().outputs}


def test_where_outputs_are_off_a_long_text_is_cut_and_says_so(hold: Limpet) -> None:
    plain = hold.context()
    off: Context = plain._replace(bounds=plain.bounds._replace(outputs=plain.bounds.outputs._replace(enabled=False)))
    answer = run_sandbox_code(off, "print('word ' * 9_000)")
    assert answer.output.startswith("word word")
    assert answer.output.endswith("[cut here: 45,001 characters in all, and outputs are not kept in this project]")
    assert len(answer.output) < 20_000


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("outputs.read('../../etc/passwd')", "output id '../../etc/passwd' is not valid"),
        ("outputs.read('3f9a1c2b77e0')", "there is no output '3f9a1c2b77e0'"),
        ("outputs.read(id, lines='1', rows='1')", "it reads in one way at a time"),
        ("outputs.read(id, nothing=1)", "has no argument 'nothing'"),
        ("outputs.read(7)", "id of read_output is a number"),
        ("outputs.read()", "missing 1 required positional argument"),
        ("outputs.lines(id, 'one')", "it must be a whole number"),
        ("outputs.lines(id, True)", "it must be a whole number"),
        ("outputs.json(id)", "JSONDecodeError"),
        ("outputs.forget(id)", "'Outputs' object has no attribute 'forget'"),
        ("session.notepad.append('')", "needs content (not empty)"),
        ("x = 1\n\ndef f(:", "at line 3, 'def f(:': SyntaxError"),
        ("no_such_name", "at line 1, 'no_such_name': NameError"),
        ("a = 1\nfor n in range(40):\n    a = [a, a]\noutputs.read(a)", "too large or nested too deeply"),
        ("raise ValueError('x' * 100_000)", "ValueError: xxx"),
    ],
)
def test_mistakes_are_named_with_their_line(work: Session, code: str, says: str) -> None:
    message = fails(work, code, id=kept(work, LINES))
    assert says in message
    assert len(message) < 1_500
    assert "It had changed nothing." in message


@pytest.mark.parametrize("name", ["session", "outputs", "_x", "1a", "class", "a b", ""])
def test_inputs_are_named_as_variables_are(work: Session, name: str) -> None:
    with pytest.raises(errors.BadInput, match="inputs are variables of the code"):
        work.sandbox.run("1", {name: 1})


@pytest.mark.parametrize("inputs", [[1], "x", 7])
def test_inputs_are_an_object(hold: Limpet, inputs: object) -> None:
    with pytest.raises(errors.BadInput, match="it must be an object"):
        hold.call("run_sandbox_code", {"code": "1", "inputs": inputs})


def test_inputs_that_are_no_json_are_refused(hold: Limpet) -> None:
    for value in (object(), float("nan"), "\ud800"):
        with pytest.raises(errors.BadInput):
            hold.call("run_sandbox_code", {"code": "1", "inputs": {"x": value}})


def test_code_has_a_length(work: Session) -> None:
    assert "code is empty" in fails(work, " \n")
    assert "the limit is 100,000" in fails(work, "#" * 100_001)


def test_values_come_back_as_json(work: Session) -> None:
    answer = work.sandbox.run(
        "import datetime\nclass P:\n    def __init__(self):\n        self.x = 3\n"
        "[(1,), {2}, {3: None}, datetime.date(2026, 3, 3), P(), float('inf'), 10 ** 4000]"
    )
    assert answer.result[:6] == [[1], [2], {"3": None}, "2026-03-03", {"x": 3}, "inf"]
    assert answer.result[6].endswith(" bits>")


def test_code_is_kept_under_a_name_and_run_again(hold: Limpet) -> None:
    code = "session.notepad.append(f'{n};')\nn * 2"
    assert hold.call("run_sandbox_code", {"code": code, "name": "double", "inputs": {"n": 2}})["result"] == 4
    later = hold.session("later")
    assert later.sandbox.run(name="double", inputs={"n": 21}).result == 42
    assert later.notepad.read() == "21;"
    assert hold.call("agent_state", {"action": "keys", "prefix": "sandbox/"})["keys"] == ["sandbox/double"]
    with pytest.raises(errors.LimpetError):
        hold.call("run_sandbox_code", {"code": "1 / 0", "name": "double"})  # what fails does not replace what works
    assert later.sandbox.run(name="double", inputs={"n": 1}).result == 2
    with pytest.raises(errors.NotFound, match="agent_state"):
        hold.call("run_sandbox_code", {"name": "treble"})
    with pytest.raises(errors.BadInput, match="code is empty"):
        hold.call("run_sandbox_code", {})
