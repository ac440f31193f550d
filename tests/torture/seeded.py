"""Bugs put into a copy of the source, each of which a goal must notice. A harness that sees none proves nothing."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from torture.kit import ROOT, TESTS, TIMED, surroundings

AT_ONCE = 3


class Bug(NamedTuple):
    """Texts of files of the package, each there exactly once, and what the bug says instead."""

    name: str
    goal: str
    size: int
    edits: tuple[tuple[str, str, str], ...]
    note: str = ""


FILE, STORE, ENTRIES = "stores/sqlite/database.py", "stores/sqlite/store.py", "stores/sqlite/entries.py"
BEGIN = '        con.execute("BEGIN IMMEDIATE")\n        con.frees = False\n'
LOCK = "            lock, queue = self._files or self._open()\n"
NO_LOCK = ("stores/sqlite/lock.py", LOCK, f"            return\n{LOCK}")
COMMIT = '        con.execute("COMMIT")\n        con.checked_version = con.data_version()\n'
SIZE = "        return os.stat(path).st_size\n"
COPY = (
    '            with copy.backup("main", con, "main") as running:\n'
    "                running.step()  # all pages in one step: one consistent moment\n"
    "            copy.close()\n"
)
CLOCK = '"SET seq = seq + 1, clock = max(clock + ?, excluded.clock) RETURNING seq, clock",\n'
KNOWN = '            while _is_taken(con, scope, kind, f"{kind}_{clock}"):  # by an import\n'
DISPLACED = '                displaced = _data(_settled(self.place, temporary, current or "") or "")\n'
ASIDE = "                self.record(displaced)\n                self.put_aside(temporary, digest_of(displaced))\n"
LEFT = "                    self.put_aside(path, digest_of(data))\n"
LATE = "if not stat.S_ISREG(info.st_mode) or info.st_mtime_ns <= int(put_aside) - 100_000_000:\n"
SYNC = "            os.fdatasync(self._handle)\n"
SAVED = '            self.pending[details["text"]] = self._last\n'
READ = "self._db.rows(ONE_ENTRY, (scope.tenant, scope.project, kind, key))"
BELIEVED = '    if trusted == brought.digest != "":\n'
OUTSIDE = "    if not path.startswith(home.rstrip(os.sep) + os.sep):\n"
LINKED = "    if path != plain and (not target.endswith"
NEWER = "        if int(version) > SCHEMA:\n"
MASKED = "        masked = redact(text, before=before)\n        if masked.count:\n"
HELD = "self._site.refusal(request) or self._enter"

BUGS = (
    Bug(
        "commits are not synced",
        "power",
        30,
        (("stores/sqlite/connection.py", "synchronous = FULL; PRAGMA cell", "synchronous = OFF; PRAGMA cell"),),
    ),
    Bug(
        "a new name is not synced",
        "power",
        30,
        (
            ("journal/file.py", "        os.fsync(handle)\n    finally:\n", "        pass\n    finally:\n"),
            ("journal/log.py", SYNC, SYNC.replace("os.fdatasync", "parts[0][0] == COMMIT or os.fdatasync")),
        ),
        "nor the commit in the journal's log, whose sync would do for both on ext4",
    ),
    Bug(
        "acknowledged before the commit",
        "kill-library",
        60,
        (
            (FILE, BEGIN, BEGIN.replace('con.execute("BEGIN', 'con.in_transaction or con.execute("BEGIN')),
            (
                FILE,
                COMMIT,
                COMMIT.replace("con.execute", "if time.monotonic_ns() % 8 == 0: con.execute").replace(
                    "if con.in_", "if False and con.in_"
                ),
            ),
        ),
    ),
    Bug(
        "transactions begin without the lock of writers",
        "processes",
        1_000,
        ((FILE, BEGIN, BEGIN.replace(" IMMEDIATE", "")), NO_LOCK),
        "with our own lock taken out too: behind it the order of locks inside SQLite cannot matter",
    ),
    Bug("writers do not queue", "queue", 960, (NO_LOCK,)),
    Bug(
        "the database's file is opened by Python",
        "files",
        1,
        ((FILE, SIZE, "        with open(path, 'rb') as file:\n            return os.fstat(file.fileno()).st_size\n"),),
    ),
    Bug(
        "a backup copies the file",
        "backups",
        3,
        ((STORE, COPY, "            copy.close()\n            __import__('shutil').copyfile(self.place, target)\n"),),
    ),
    Bug(
        "checksums are not compared",
        "flips",
        400,
        (
            (
                "stores/shared/rows.py",
                "        if fingerprint(scope, entry, tags, extra) == digest:\n",
                "        if digest:\n",
            ),
        ),
    ),
    Bug(
        "ids are the time in milliseconds",
        "clock",
        80,
        (
            (ENTRIES, CLOCK, CLOCK.replace("max(clock + ?, excluded.clock)", "excluded.clock + 0 * ?")),
            (ENTRIES, KNOWN, KNOWN.replace("while _is_taken", "while False and _is_taken")),
        ),
    ),
    Bug(
        "a path is inside if it begins alike",
        "paths",
        10,
        (
            (
                "journal/evidence.py",
                "        if not real.startswith(home.rstrip(os.sep) + os.sep):\n",
                "        if not real.startswith(home):\n",
            ),
        ),
    ),
    Bug(
        "what was looked at may be a link when it is read",
        "paths",
        300_000,
        (
            (
                "journal/evidence.py",
                "os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC",
                "os.O_NONBLOCK | os.O_CLOEXEC",
            ),
        ),
    ),
    Bug(
        "a key is put into the SQL",
        "injections",
        600,
        (
            (
                ENTRIES,
                READ,
                "self._db.rows(ONE_ENTRY.replace('key = ?', f\"key = '{key}'\"), (scope.tenant, scope.project, kind))",
            ),
        ),
    ),
    Bug(
        "an operation that nobody declared is everybody's",
        "scopes",
        1,
        (
            (
                "doors/http/policy.py",
                "{name: LEVELS[row.level] for name, row in _NAMES.items()}",
                '{name: LEVELS[row.level] for name, row in _NAMES.items() if name != "purge"}',
            ),
            (
                "doors/http/gate.py",
                "        needs = policy.OPERATIONS.get(operation)\n",
                "        needs = policy.OPERATIONS.get(operation, Level.READ)\n",
            ),
        ),
    ),
    Bug(
        "a read forgets the tenant",
        "tenants",
        1,
        (
            (
                ENTRIES,
                "        matches = self._db.rows(ONE_ENTRY, (scope.tenant",
                "        matches = self._db.rows(ONE_ENTRY.replace('tenant = ?', '? <> 0'), (scope.tenant",
            ),
        ),
        "in the embedded store; for row security that is not forced see tests/contract/test_tenants.py",
    ),
    Bug(
        "the origin of a request is not looked at",
        "doors",
        1,
        (("doors/http/gate.py", HELD, "self._enter"),),
    ),
    Bug(
        "NOTES.md is replaced, not exchanged",
        "editors",
        120,
        (
            ("journal/file.py", DISPLACED, ""),
            ("journal/file.py", ASIDE, "                os.unlink(temporary)\n"),
        ),
    ),
    Bug(
        "a quotation is not marked",
        "quotes",
        1,
        (
            (
                "text/safe.py",
                "(_QUOTE + visible(line) for line in text.splitlines())",
                "(line for line in text.splitlines())",
            ),
        ),
    ),
    Bug(
        "a seal holds the description alone",
        "seals",
        1,
        (
            (
                "upkeep/tool_pins.py",
                '        "sha256": _hash(definition),\n',
                '        "sha256": _hash(definition.get("description")),\n',
            ),
        ),
    ),
    Bug(
        "patterns of agents run in Python's own engine",
        "patterns",
        1,
        (
            (
                "text/slices.py",
                '        engine = re2.compile(f"(?m:{pattern})".encode("utf-8", "surrogatepass"), options)\n',
                '        engine = __import__(\'re\').compile(f"(?m:{pattern})".encode("utf-8", "surrogatepass"))\n',
            ),
        ),
    ),
    Bug(
        "what breaks off is not taken back",
        "halves",
        400,
        (
            (
                FILE,
                '                con.execute("ROLLBACK TO job")\n                job.error = problem\n',
                "                job.error = problem\n",
            ),
        ),
        "in place of a shield around an awaited write: writes here run in threads that no cancellation reaches",
    ),
    Bug(
        "a leftover text is a save once it is old",
        "journal",
        300,
        (
            ("journal/file.py", LEFT, LEFT.replace("digest_of(data)", '"left"')),
            ("journal/file.py", LATE, LATE.replace("info.st_mtime_ns <=", 'digest != "left" and info.st_mtime_ns <=')),
            ("journal/log.py", '            self.digests.update(details["texts"])\n', ""),
            ("journal/document/merge.py", "    if forgot and not best[2]:\n", "    if False:\n"),
        ),
        "of 0.1.0; here the log must also forget its digests, and a text older than the log must count as a deletion",
    ),
    Bug(
        "an old buffer is the newest text for a moment",
        "journal",
        300,
        (("journal/log.py", SAVED, f"{SAVED}            self.head = self._last\n"),),
        "of 0.1.0",
    ),
    Bug(
        "a repository's configuration counts as it is",
        "repositories",
        900,
        (("home/trust.py", BELIEVED, "    if brought.digest:\n"),),
        "of 0.1.0",
    ),
    Bug(
        "a client's configuration names any store",
        "repositories",
        300,
        (("home/load.py", "    if by_client:\n", "    if not by_client and False:\n"),),
        "of 0.1.0",
    ),
    Bug(
        "a link in the journal's place is followed",
        "repositories",
        900,
        (
            ("journal/file.py", OUTSIDE, "    if not path:\n"),
            ("journal/file.py", LINKED, LINKED.replace("if path", "if not path and path")),
        ),
    ),
    Bug(
        "an installation follows links out of the project",
        "repositories",
        900,
        (("clients/install.py", 'in_project = target.scope != "user" and', 'in_project = target.scope == "none" and'),),
    ),
    Bug(
        "any .git is a repository",
        "repositories",
        3_000,
        (("journal/git.py", "    if common is None or not is_self_contained(common):\n", "    if not folder:\n"),),
    ),
    Bug(
        "the journal is shown without a mark",
        "repositories",
        3_000,
        (("doors/hooks/actions.py", "safe.quoted(text, FILE)", "text"),),
    ),
    Bug(
        "an old process writes on after an upgrade",
        "life",
        40,
        ((FILE, NEWER, NEWER.replace("> SCHEMA", "> SCHEMA + 1")),),
        "of 0.1.0",
    ),
    Bug(
        "notes are stored with their secrets",
        "life",
        12,
        (("redaction/__init__.py", MASKED, MASKED.replace("masked = redact(text, before=before)", "return text")),),
        "of 0.1.0",
    ),
)


def patched(source: Path, bug: Bug) -> None:
    for name, old, new in bug.edits:
        path = source / "limpet" / name
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise LookupError(f"{bug.name}: the text to change is {text.count(old)} times in {name}, not once")
        path.write_text(text.replace(old, new), encoding="utf-8")


def copied(folder: Path, bug: Bug | None) -> Path:
    """A copy of the source, with the bug if there is one. What is compiled comes along: many children start."""
    source = folder / "src"
    shutil.copytree(ROOT / "src" / "limpet", source / "limpet")
    if bug is not None:
        patched(source, bug)
    return source


def missed(goal: str, size: int, bug: Bug | None) -> tuple[bool, str]:
    """Whether the goal misses its promise on a copy, and the last words it had to say."""
    with tempfile.TemporaryDirectory(prefix="torture-seeded-") as folder:
        source = copied(Path(folder), bug)
        env = surroundings() | {"PYTHONPATH": os.pathsep.join([str(source), str(TESTS), str(ROOT)])}
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-m", "torture", goal, "--size", str(size)]
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=900, check=False
            )
        except subprocess.TimeoutExpired:
            return True, "the goal did not end"
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()] or [done.stderr[-200:]]
        if "skipped:" in lines[0]:
            return False, lines[0].rpartition("skipped: ")[2].partition(" | ")[0]
        misses = [line for line in lines[1:] if not line.startswith(TIMED)]
        return bool(done.returncode and misses), misses[-1] if misses else lines[0].split(" | ")[2]


def main(names: list[str] | None) -> tuple[list[tuple[str, ...]], bool]:
    """Each bug in a copy; and its goal, at the same size, on a copy without, where it must keep its promise."""
    compileall.compile_dir(ROOT / "src" / "limpet", quiet=1)
    bugs = [bug for bug in BUGS if not names or bug.name in names]
    cases: list[tuple[str, int, Bug | None]] = [(bug.goal, bug.size, bug) for bug in bugs]
    cases += dict.fromkeys((bug.goal, bug.size, None) for bug in bugs)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(cases, pool.map(_tried, cases), strict=True))
    rows: list[tuple[str, ...]] = []
    for bug in bugs:
        noticed, broken = found[bug.goal, bug.size, bug], found[bug.goal, bug.size, None]
        verdicts = "noticed" if noticed else "MISSED", "MISSED" if broken else "kept"
        rows.append((bug.name, f"{bug.goal}, {bug.size:,}", *verdicts, bug.note))
    good = [row[2:4] == ("noticed", "kept") for row in rows]
    print(f"{sum(good)} of {len(rows)} noticed by a goal that keeps its promise without them")
    return rows, all(good)


def _tried(case: tuple[str, int, Bug | None]) -> bool:
    goal, size, bug = case
    began = time.monotonic()
    broken, words = missed(goal, size, bug)
    what = bug.name if bug else "without a bug"
    print(f"{what} | {goal}, {size:,} | {broken} | {time.monotonic() - began:.0f} s | {words[:160]}", flush=True)
    return broken
