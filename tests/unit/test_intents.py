"""Questions whose answer does not have their words: totals, extremes, ends, reasons, records, kinds of tools."""

from __future__ import annotations

import json

import pytest

from limpet.recall.ask import ask
from limpet.recall.units import Units
from limpet.text.tokens import count

CI = "\n".join(
    [
        "##[group]Step 1: Lint",
        "[command] ruff check src",
        *(f"src/a{n}.py:{n}:1: E501 Line too long" for n in range(40)),
        "Found 40 errors.",
        "##[endgroup]",
        "##[group]Step 2: Types",
        "[command] mypy src",
        *(f"src/b{n}.py:{n}: error: Incompatible return value" for n in range(30)),
        "Found 30 errors in 30 files (checked 90 source files)",
        "##[endgroup]",
    ]
)
PYTEST = "\n".join(
    [
        "=== test session starts ===",
        *(f"tests/test_x.py::test_{n} FAILED [ {n}%]" for n in range(30)),
        "=== FAILURES ===",
        *(
            line
            for n in range(30)
            for line in (f"____ test_{n} ____", f"    def test_{n}():", f"E       ValueError: bad value {n * 7}", "")
        ),
    ]
)
LOCK = "\n\n".join(
    f'[[package]]\nname = "pkg-{n}"\nversion = "1.{n}.0"\nsource = {{ registry = "https://example.org/simple" }}\n'
    f'wheels = [\n    {{ url = "https://example.org/{"x" * 200}-{n}.whl" }},\n]'
    for n in range(60)
)
HISTORY = "\n".join(
    f"commit {n:040x}\nAuthor: Ann {n} <a@example.org>\nDate:   Mar {n % 28 + 1} 2026\n\n    change the parser {n}x\n"
    for n in range(50)
)
SQL = "\n".join(
    line
    for n in range(30)
    for line in (f"INSERT INTO t VALUES ({n}, 'SKU-{n:03}');", "ERROR:  no such key", f"DETAIL:  Key ({n}) is absent.")
)


def shown(text: str, question: str, budget: int = 300) -> str:
    content = ask(text, question, budget, count).content
    assert count(content) <= budget
    return content


def test_a_total_is_answered_by_the_summary_of_the_tool_that_is_named() -> None:
    assert "Found 30 errors in 30 files" in shown(CI, "how many errors did the type checker find")
    assert "Found 40 errors." in shown(CI, "how many problems did the linter find")


def test_a_reason_is_the_error_below_the_heading_with_the_words() -> None:
    assert "ValueError: bad value 119" in shown(PYTEST, "why did test_17 fail")
    assert "DETAIL:  Key (17) is absent." in shown(SQL, "why was SKU-017 refused")


def test_a_record_is_shown_by_its_short_fields() -> None:
    content = shown(LOCK, "version of pkg-41")
    assert 'version = "1.41.0"' in content
    assert "x" * 200 not in content
    record = shown(HISTORY, "who did change the parser 31x")
    assert "Author: Ann 31" in record
    assert f"commit {31:040x}" in record


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        ("\n".join(f"call {n} took {n * 37 % 101} ms" for n in range(90)), "slowest call", "took 100 ms"),
        ("\n".join(f"call {n} took {n * 37 % 101 + 1} ms" for n in range(90)), "fastest call", "took 1 ms"),
        ("a,size\n" + "\n".join(f"f{n},{n * 37 % 101}" for n in range(90)), "file with the largest size", "100"),
        ("\n".join(json.dumps({"id": n, "ms": n * 37 % 101}) for n in range(90)), "slowest request", '"ms": 100'),
        ("\n".join(f"{n * 37 % 101} ./f{n}" for n in range(90)), "biggest file", "100 ./f"),
        ("\n".join(f"event {n} of kind {n % 7}" for n in range(90)), "last event", "event 89"),
    ],
)
def test_an_extreme_or_an_end_is_found_by_comparing(text: str, question: str, answer: str) -> None:
    assert answer in shown(text, question, 120)


def test_an_echoed_setting_does_not_outrank_the_event() -> None:
    lines = ["start with timeout=30 retries=3 error_mail=off", *(f"job {n} done" for n in range(60)), "timeout: job 61"]
    assert shown("\n".join(lines), "timeout", 20) == "62: timeout: job 61"


def test_a_long_line_that_repeats_is_shown_once() -> None:
    quoted = "   14 | int main() { " + "return f(x, y); " * 8 + "}"
    text = "\n".join(line for n in range(9) for line in (f"a.cpp:14:{n}: error: bad call {n}", quoted))
    assert shown(text, "bad call errors", 600).count("int main()") == 1


def test_colours_are_left_out_and_lines_keep_their_numbers() -> None:
    text = "\n".join(f"\x1b[96ma.ts\x1b[0m:{n} - \x1b[91merror\x1b[0m: property p{n} is missing" for n in range(50))
    content = shown(text, "property p33 missing")
    assert content.startswith(
        "33: a.ts:32 - error: property p32 is missing\na.ts:33 - error: property p33 is missing\n"
    )
    assert "\x1b" not in content


def test_a_very_long_line_is_cut_where_the_words_are() -> None:
    rows = [{"id": n, "name": f"sensor {n}", "note": "lorem ipsum " * 6} for n in range(20_000)]
    rows[15_000]["note"] = "the hydraulic valve leaks"
    text = json.dumps(rows)
    content = shown(text, "which sensor has a leaking hydraulic valve")
    assert "the hydraulic valve leaks" in content
    assert "sensor 15000" in content


def test_fields_in_paragraphs_yaml_and_steps_have_what_encloses_them() -> None:
    stanzas = Units("Package: a\nVersion: 1\nSize: 2\n\nPackage: b\nVersion: 3\nSize: 4\n")
    assert [stanzas[unit] for unit in stanzas.above(6)] == ["Package: b"]
    yaml = Units("parameters:\n- name: step\n  default: 300\n")
    assert [yaml[unit] for unit in yaml.above(2)] == ["- name: step", "parameters:"]
    tap = Units("TAP version 13\n# Subtest: a\nok 1 - a\n")
    assert tap.above(2) == []
