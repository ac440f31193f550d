"""The rules of the house that no linter knows: sizes, names, migrations, and what no file may say."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import house_measures as measures
from docs.make_reference import reference
from limpet.stores.sqlite.database import SCHEMA

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "limpet"
STORES = PACKAGE / "stores"
ARCHITECTURE = ROOT / "docs" / "architecture.md"

LONGEST_FUNCTION = 60
LONGEST_FILE = 800
MOST_ROOT_FILES = 16


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that git tracks or would add, relative to the root."""
    # The checkout may belong to another user than the one who tests it, for instance in a container.
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        env=os.environ | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip(f"This is not a git checkout: {listed.stderr.strip()}")
    return tuple(Path(name) for name in sorted(set(listed.stdout.split("\0"))) if name and (ROOT / name).is_file())


def sources(*places: str) -> list[Path]:
    # What benchmarks install and write is not ours.
    made = ROOT / "bench" / "out"
    return sorted(path for place in places for path in (ROOT / place).rglob("*.py") if made not in path.parents)


def trees(*places: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sources(*places):
        yield str(path.relative_to(ROOT)), measures.tree_of(path)


def report(problems: list[str]) -> None:
    assert not problems, "\n" + "\n".join(problems)


def test_every_file_opens_with_a_docstring() -> None:
    report(
        [
            f"{name}: open the file with a docstring that says what it is for."
            for name, tree in trees("src", "bench")
            if not ast.get_docstring(tree)
        ]
    )


def test_functions_are_short() -> None:
    problems = []
    for name, tree in trees("src", "bench"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    problems.append(
                        f"{name}:{node.lineno}: {node.name} has {lines} lines, the most is {LONGEST_FUNCTION}. "
                        "Give one step of it a name and a function of its own."
                    )
    report(problems)


def test_files_are_short() -> None:
    problems = []
    for path in sources("src", "bench"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST_FILE:
            problems.append(
                f"{path.relative_to(ROOT)}: {lines} lines, the most is {LONGEST_FILE}. "
                "It has more than one job: move one of them to a module of its own."
            )
    report(problems)


# The measures of the house and how far each may go. A change may lower a limit, and does not raise one.
# `make house` prints what is measured now.
LIMITS: dict[str, tuple[Callable[[], float], float]] = {
    # 325 before the layers of memory: their stores, the shared files, the queue for review and its page.
    "modules": (lambda: sum(measures.modules_by_folder().values()), 330),
    "modules in one folder": (lambda: max(measures.modules_by_folder().values()), 19),
    "own imports inside functions": (lambda: len(measures.imports_in_functions()), 5),
    "own imports inside functions that no comment explains": (
        lambda: len(measures.unexplained_imports_in_functions()),
        0,
    ),
    "import cycles": (lambda: len(measures.import_cycles()), 0),
    "environment names": (lambda: len(measures.environment_names()), 12),
    "modules that read the environment": (lambda: len({place.file for place in measures.environment_readers()}), 1),
    "broad excepts in 1,000 lines": (lambda: 1_000 * len(measures.broad_excepts()) / measures.lines(), 0.5),
    "vague bindings in percent": (lambda: 100 * len(measures.vague_bindings()) / measures.bindings(), 0.2),
    "class names in several modules": (lambda: len(measures.repeated_class_names()), 6),
    "stilted words in 1,000": (lambda: 1_000 * len(measures.stilted()[0]) / measures.stilted()[1], 0.5),
    "lines that promise only, never or nowhere without a test": (lambda: len(measures.absolutes()), 77),
    "lines of the longest tenth of functions": (lambda: measures.percentile(measures.function_lengths(), 0.9), 20),
    "lines of the longest hundredth of functions": (lambda: measures.percentile(measures.function_lengths(), 0.99), 40),
}


def test_no_measure_is_beyond_its_limit() -> None:
    """One test, so that one process reads the code for all of them."""
    problems = []
    for name, (measure, limit) in LIMITS.items():
        value = measure()
        print(f"{name}: {value:.4g} (limit {limit:g})")
        if value > limit:
            problems.append(f"{name}: {value:.4g}, and the limit is {limit:g}. `make house` shows the places.")
    report(problems)


def test_the_architecture_names_every_room() -> None:
    assert ARCHITECTURE.is_file(), "docs/architecture.md is missing: it says what every module and directory is for."
    text = ARCHITECTURE.read_text(encoding="utf-8")
    modules = {
        path.stem
        for path in PACKAGE.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").is_file()) and not path.stem.startswith("__")
    }
    directories = {path.parts[0] for path in project_files() if len(path.parts) > 1}
    report(
        [
            f"docs/architecture.md does not name `{name}`: add a sentence that says what it is for."
            for name in sorted(modules | directories)
            if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
        ]
    )


def migration_names(kind: str) -> list[str]:
    return sorted(path.name for path in (STORES / kind / "migrations").glob("*.sql"))


def test_migrations_are_the_same_steps_for_both_stores() -> None:
    names = migration_names("sqlite")
    assert names, f"No migrations in {STORES.relative_to(ROOT)}/sqlite/migrations."
    assert names == migration_names("postgres"), "Each migration needs a file of the same name for each store."
    numbers = [name[:4] for name in names]
    assert numbers == [f"{number:04}" for number in range(1, len(names) + 1)], (
        f"Number the migrations 0001, 0002 and so on, without gaps; found {names}."
    )


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_primary_key_begins_with_tenant_and_project(kind: str) -> None:
    problems = []
    for path in sorted((STORES / kind / "migrations").glob("*.sql")):
        statements = re.sub(r"--[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for statement in statements.split(";"):
            # An index holds no entry and has no owner: the full-text table, and the list of words seen.
            if re.search(r"CREATE\s+(VIRTUAL\s+TABLE|TABLE\s+pieces)\b", statement, re.IGNORECASE):
                continue
            keys = re.finditer(r"PRIMARY\s+KEY\s*(\([^)]*\))?", statement, re.IGNORECASE)
            for key in keys:
                if not re.match(r"\(\s*tenant\s*,\s*project\b", key[1] or "", re.IGNORECASE):
                    table = " ".join(statement.split())[:60]
                    problems.append(
                        f"{path.relative_to(ROOT)}: in `{table}…` the key `{key[0]}` does not begin with "
                        "(tenant, project. Without them one tenant's row could hide another's."
                    )
    report(problems)


def test_the_code_knows_the_newest_migration() -> None:
    assert len(migration_names("sqlite")) == SCHEMA, "Set SCHEMA in stores/sqlite/database.py to the newest migration."


def test_the_reference_is_up_to_date() -> None:
    written = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert written == reference(), "The operations changed: run `make docs`."


# Put together from pieces, so that this file does not itself contain what it looks for.
FORBIDDEN = {
    "the host of a package registry": re.compile(
        "|".join([r"pypi\." + "org", "python" + "hosted", r"pypi\." + "python", r"registry\." + "npmjs"]), re.IGNORECASE
    ),
    "a path of one machine": re.compile(
        "|".join([r"(?<![\w.~})-])/(?:wo" + "rk|ro" + r"ot)(?![\w-])", "/opt/" + "(?:wheels|pypi)", r"\.py" + "env"])
    ),
    "a setting of one machine's installer": re.compile(
        "^(?:" + "|".join(["--find-" + "links", "--index-" + "url", "--extra-index-" + "url"]) + ")", re.MULTILINE
    ),
}


def test_no_file_names_a_registry_or_a_machine() -> None:
    problems = []
    for path in project_files():
        text = (ROOT / path).read_bytes().decode("utf-8", errors="replace")
        for what, pattern in FORBIDDEN.items():
            for found in pattern.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                problems.append(f"{path}:{line}: names {what} ({found[0]}). Say it without.")
    report(problems)


DANGEROUS_CALLS = {"eval", "exec", "os.system", "os.popen"}
DANGEROUS_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill"}


def dangers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The places where a program could run text or data as code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if ast.unparse(node.func).removeprefix("builtins.") in DANGEROUS_CALLS:
                yield node.lineno, ast.unparse(node.func)
            for keyword in node.keywords:
                if keyword.arg == "shell" and not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                ):
                    yield node.lineno, "shell="
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names if name.name in DANGEROUS_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in DANGEROUS_MODULES:
            yield node.lineno, str(node.module)


def test_nothing_runs_text_or_data_as_code() -> None:
    report(
        [
            f"{name}:{line}: {what} can run what a stranger wrote. Find a way without it."
            for name, tree in trees("src")
            for line, what in dangers(tree)
        ]
    )


def test_the_rule_about_code_finds_each_danger() -> None:
    text = "import pickle\nfrom marshal import loads\neval('1')\nexec('1')\nrun('ls', shell=True)\nos.system('ls')\n"
    assert [line for line, _ in dangers(ast.parse(text))] == [1, 2, 3, 4, 5, 6]
    assert not list(dangers(ast.parse("run(['ls'], shell=False)\ncursor.exec('SELECT 1')\n")))


def test_the_changelog_says_where_new_changes_go() -> None:
    path = ROOT / "CHANGELOG.md"
    assert path.is_file(), "CHANGELOG.md is missing: it says what changed from version to version."
    assert re.search(r"^## \[?(?:Unreleased|\d+\.\d+)", path.read_text(encoding="utf-8"), re.MULTILINE), (
        "CHANGELOG.md needs a heading `## Unreleased`, or one that begins with a version."
    )


def test_the_root_stays_small() -> None:
    files = [str(path) for path in project_files() if len(path.parts) == 1]
    assert len(files) <= MOST_ROOT_FILES, (
        f"{len(files)} files in the root, the most is {MOST_ROOT_FILES}: {', '.join(files)}. "
        "Move what is not expected there into a directory."
    )
