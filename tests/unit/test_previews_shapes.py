"""What the preview of each shape must contain."""

from __future__ import annotations

import json

import pytest

from limpet.previews.core import Preview
from limpet.previews.preview import preview

PYTEST = """============================= test session starts ==============================
collected 40 items

tests/test_a.py ..F.....................                                 [ 60%]
tests/test_b.py ................                                         [100%]

=================================== FAILURES ===================================
___________________________________ test_sum ___________________________________

    def test_sum():
>       assert add(1, 2) == 4
E       assert 3 == 4
E        +  where 3 = add(1, 2)

tests/test_a.py:7: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_sum - assert 3 == 4
========================= 1 failed, 39 passed in 0.52s =========================
"""
GO = """=== RUN   TestAdd
--- PASS: TestAdd (0.00s)
=== RUN   TestSub
    calc_test.go:14: Sub(5, 3) = 1; want 2
--- FAIL: TestSub (0.00s)
FAIL
exit status 1
FAIL\texample.com/calc\t0.004s
"""
CARGO = """   Compiling demo v0.1.0 (/tmp/demo)
error[E0308]: mismatched types
 --> src/main.rs:4:18
  |
4 |     let x: i32 = "a";
  |            ---   ^^^ expected `i32`, found `&str`

error: could not compile `demo` (bin "demo") due to 1 previous error
"""
TRACE = """Traceback (most recent call last):
  File "/app/main.py", line 10, in <module>
    run()
  File "/app/main.py", line 6, in run
    return parse(value)
  File "/usr/lib/python3/site-packages/lib/parse.py", line 80, in parse
    raise ValueError(f"bad value {value!r}")
ValueError: bad value 'x'
"""
DIFF = """diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,4 @@ def start():
 import os
-x = 1
+x = 2
+y = 3
diff --git a/docs/b.md b/docs/b.md
--- a/docs/b.md
+++ b/docs/b.md
@@ -1 +1 @@
-old words
+new words
"""
GREP = "\n".join(f"src/mod{at % 4}.py:{at + 1}:    return find_thing({at})" for at in range(40))
TREE = ".\n├── README.md\n├── src\n│   ├── main.py\n│   └── util.py\n└── tests\n    └── test_main.py\n\n2 directories, 4 files\n"  # noqa: E501
LS = (
    "\n".join(f"{100 + at} 2026-01-02 ./src/part{at % 5}/file{at}.py" for at in range(80))
    + "\n999999 2026-01-02 ./data/big.bin"
)
CODE = '"""A module."""\nimport os\n\n\nclass Thing:\n    def run(self, x: int) -> int:\n        return x\n\n\ndef main() -> None:\n    Thing().run(1)\n'  # noqa: E501
GO_CODE = 'package main\n\nimport "fmt"\n\ntype Thing struct {\n\tA int\n}\n\nfunc (t *Thing) Run() int {\n\treturn t.A\n}\n\nfunc main() {\n\tfmt.Println(1)\n}\n'  # noqa: E501
MARKDOWN = "# Guide\n\nHow to do it.\n\n## Install\n\nRun this:\n\n```sh\npip install thing\n```\n\n## Use\n\n- first\n- second\n"  # noqa: E501
HTML = (
    "<!DOCTYPE html><html><head><title>A &amp; B</title><script>var hidden = 1;</script></head><body><h1>Welcome</h1>"
    "<p>This page tells a rather long story about nothing.</p><a href='https://example.org/paper'>Paper</a></body></html>"
)
LOG = "\n".join(
    f"2026-02-23 10:{at // 60:02}:{at % 60:02} {'ERROR' if at % 50 == 7 else 'INFO'} worker {at}: "
    + ("lost the connection" if at % 50 == 7 else "job done")
    for at in range(600)
)
CSV = "id,city,size\n" + "\n".join(f"{at},{'Rome' if at % 2 else 'Oslo'},{at * 7 % 997}" for at in range(1, 501))
TABLE = "| name | size |\n|---|---|\n" + "\n".join(f"| item{at} | {at} |" for at in range(30))
JSON_LINES = "\n".join(json.dumps({"at": at, "kind": "a" if at % 3 else "b"}) for at in range(300))
JUNIT = (
    '<?xml version="1.0"?><testsuites><testsuite name="s" errors="0" failures="1" tests="2">'
    '<testcase classname="c" name="good" time="0.1"/><testcase classname="c" name="bad" time="0.2">'
    '<failure message="1 is not 2">long</failure></testcase></testsuite></testsuites>'
)


@pytest.mark.parametrize(
    ("content", "shape", "words"),
    [
        (PYTEST, "run", ["FAILED tests/test_a.py::test_sum", "1 failed, 39 passed", "assert 3 == 4"]),
        (GO, "run", ["--- FAIL: TestSub", "exit status 1"]),
        (CARGO, "run", ["error[E0308]: mismatched types", "src/main.rs:4:18"]),
        (JUNIT, "run", ["2 cases, 1 failed", "failure: c::bad: 1 is not 2", 'failures="1"']),
        (TRACE, "trace", ["ValueError: bad value 'x'", '"/app/main.py", line 6', "3 frames"]),
        (DIFF, "diff", ["2 files changed, 3 lines added, 2 removed", "src/a.py +2 -1", "+y = 3", "+new words"]),
        (GREP, "grep", ["40 hits in 4 files", "src/mod0.py: 10", "src/mod3.py:4:"]),
        (TREE, "listing", ["README.md", "test_main.py"]),
        (LS, "listing", ["81 entries", "999999 2026-01-02 ./data/big.bin", ".py 80", "src/ 80"]),
        (CODE, "code", ["class Thing:", "def run(self, x: int)", "10: def main()"]),
        (GO_CODE, "code", ["type Thing struct", "func (t *Thing) Run() int"]),
        (MARKDOWN, "markdown", ["# Guide", "## Install", "## Use", "pip install thing"]),
        (HTML, "html", ["title: A & B", "# Welcome", "a rather long story", "https://example.org/paper"]),
        (
            LOG,
            "log",
            [
                "from 2026-02-23 10:00:00 to 2026-02-23 10:09:59",
                "INFO 588",
                "ERROR 12",
                "×12 like ERROR worker 7:…557:",  # noqa: RUF001
            ],
        ),
        (CSV, "table", ["500 rows, 3 columns", "city: Oslo 250, Rome 250", "id,city,size", "500,Oslo,"]),
        (TABLE, "table", ["30 rows, 2 columns", "size: 0 to 29", "| item29 | 29 |"]),
        (JSON_LINES, "json lines", ["300 rows", "kind: a 200, b 100", "at: 0 to 299"]),
        ('{"a": 1}\n{"a": 2}\n{oops\n{"a": 3}\n{"a": 4}', "json lines", ["1 line no JSON", "{oops"]),
        ('{"name": "demo", "nested": {"depth": 2}}', "json", ["nested.depth: 2", 'name: "demo"']),
        ("Only words here.\nAnd a second line.\n", "text", ["Only words here.", "And a second line."]),
        ("\x00\x01\x02PNG" * 100, "text", ["binary-looking"]),
    ],
)
def test_the_shape_is_known_and_says_what_matters(content: str, shape: str, words: list[str]) -> None:
    shown = preview(content)
    assert shown.shape == shape, shown.text
    assert [word for word in words if word not in shown.text] == [], shown.text
    windows = preview("\ufeff" + content.rstrip("\n").replace("\n", "\r\n"))
    assert windows.shape == shape
    assert windows.failures == shown.failures


def test_a_failing_run_never_looks_like_a_passing_one() -> None:
    passing = preview(PYTEST.replace("1 failed, 39 passed", "40 passed").split("====\n\n")[0])
    failing = preview(
        "\n".join(["tests/a.py::t PASSED"] * 900 + ["tests/b.py::u FAILED"] + ["tests/a.py::t PASSED"] * 900)
    )
    assert failing.failures == 1
    assert "tests/b.py::u FAILED" in failing.text
    assert passing.shape == "run"


def test_the_tool_settles_a_doubt_but_never_overrules_the_text() -> None:
    assert preview(CSV, tool="pytest") == preview(CSV)
    assert isinstance(preview(CSV), Preview)


def test_a_smaller_budget_keeps_what_matters_most() -> None:
    shown = preview(PYTEST, budget=60)
    assert "failure line" in shown.text
    assert "1 failed, 39 passed" in shown.text


@pytest.mark.parametrize("blank", ["\x1c", "\x1f", "\x85", "\u2028"])
def test_a_number_may_have_any_blank_around_it(blank: str) -> None:
    rows = "".join(f"{at},{blank if at == 20 else ''}{at * 7},x\n" for at in range(40))
    assert "size: 0 to 273" in preview("id,size,kind\n" + rows, budget=400).text


HISTORY = "\n".join(
    f"commit {n:040x}\nAuthor: Ann <a@example.org>\nDate:   Mon Mar {n % 9 + 1} 10:00:00 2026\n\n    subject {n}\n"
    for n in range(30)
)
LOCK = "\n\n".join(f'[[package]]\nname = "pkg-{n}"\nversion = "1.{n}"\ndependencies = []' for n in range(40))
COMPOSE = "services:\n" + "\n".join(f"  svc{n}:\n    image: img:{n}\n    replicas: {n}" for n in range(20))
PLAN = "\n".join(
    line
    for n in range(6)
    for line in (
        f"EXPLAIN SELECT * FROM t{n};",
        f" Seq Scan on t{n}  (cost=0.00..{n}.00 rows=1 width=4)",
        f" Execution Time: {n}.5 ms",
    )
)
TAP = "TAP version 13\n1..40\n" + "\n".join(f"{'not ok' if n == 7 else 'ok'} {n} - case {n}" for n in range(1, 41))


@pytest.mark.parametrize(
    ("content", "shape", "words"),
    [
        (HISTORY, "history", ["30 commits", "authors: Ann 30", "000000000 subject 0 (Ann)"]),
        (LOCK, "settings", ["tables: package 40", "40 records:", "pkg-3 1.3"]),
        (COMPOSE, "settings", ["services:", "  svc7:"]),
        (PLAN, "plan", ["6 statements", "Execution Time: 5.5 ms", "EXPLAIN SELECT * FROM t0;"]),
        (TAP, "run", ["not ok 7 - case 7"]),
    ],
)
def test_records_of_these_kinds_are_known(content: str, shape: str, words: list[str]) -> None:
    rendered = preview(content)
    assert rendered.shape == shape, rendered.text
    assert [word for word in words if word not in rendered.text] == [], rendered.text


def test_monotony_takes_one_line_and_a_failure_in_it_is_shown() -> None:
    numbers = preview("\n".join(map(str, range(1, 5001))) + "\nERRMSG")
    assert "1 … 5000 (5,000 numbers, each 1 more)" in numbers.text
    assert len(numbers.text.splitlines()) <= 4
    same = preview("waiting for the lock\n" * 300 + "done")
    assert "waiting for the lock (300 times the same line)" in same.text
    frames = "\r".join(f"fetch: {n}%|{'█' * (n // 10)}| {n}/100 [00:00<00:00, 9.1it/s]" for n in range(101))
    bars = preview(frames + "\nall fetched")
    assert "(the last of 101 frames)" in bars.text
    assert "all fetched" in bars.text
    failing = preview("retry\n" * 50 + "ERROR: disk full\n" + "retry\n" * 50)
    assert "ERROR: disk full" in failing.text
    assert failing.failures == 1
    repeated = preview("ERROR: disk full\n" * 50)
    assert "50 failure lines" in repeated.text


@pytest.mark.parametrize("line", ["Exit code 3", "Process exited with code 3", "exit status: 3"])
def test_the_exit_code_comes_first(line: str) -> None:
    words = "\n".join(f"word {n}" for n in range(400))
    assert preview(f"{line}\n{words}").text.startswith("exit code 3; ")
    assert preview(f"{words}\n{line}").text.startswith("exit code 3; ")


def test_a_folded_group_says_what_varies() -> None:
    lines = [f"2026-02-23 10:{n // 60:02}:{n % 60:02} INFO order {5000 + n} paid" for n in range(300)]
    assert "×300 like INFO order 5000…5299 paid" in preview("\n".join(lines)).text  # noqa: RUF001
    alike = [f"2026-02-23 10:{n // 60:02}:{n % 60:02} INFO tick" for n in range(300)]
    assert "×300 INFO tick" in preview("\n".join(alike)).text  # noqa: RUF001
