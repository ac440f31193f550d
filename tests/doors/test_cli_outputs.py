"""`limpet output …` as people use it: keep what a command says, read parts of it in another process, tidy up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LISTING = "".join(f"file {number} is {number * 7} bytes\n" for number in range(1, 601))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def limpet(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "limpet", *words]
    return subprocess.run(run, cwd=folder, input=text, capture_output=True, text=True, check=False)


def test_an_output_is_kept_by_one_process_and_read_by_others(folder: Path) -> None:
    kept = limpet(folder, "output", "keep", "ls", "--call", "ls -l", text=LISTING)
    assert kept.returncode == 0, kept.stderr
    assert kept.stdout.startswith("📁 Output cached: ")
    assert len(kept.stdout) < len(LISTING) / 3
    id = kept.stdout.split()[3]
    assert limpet(folder, "output", "read", id, "--lines", "300-301").stdout == (
        "file 300 is 2100 bytes\nfile 301 is 2107 bytes\n"
    )
    assert "file 77 is 539 bytes" in limpet(folder, "output", "read", id, "--query", "how big is file 77").stdout
    assert "file 600" in limpet(folder, "output", "read", id, "--match", r"file 60\d", "--regex").stdout
    listed = json.loads(limpet(folder, "output", "list", "--json").stdout)
    assert [(entry["id"], entry["tool"], entry["size"]) for entry in listed["entries"]] == [(id, "ls", len(LISTING))]
    assert limpet(folder, "output", "delete", id).returncode == 0
    gone = limpet(folder, "output", "read", id)
    assert gone.returncode == 3
    assert "the call was ls -l" in gone.stderr


def test_small_results_pass_and_bad_reads_are_refused(folder: Path) -> None:
    assert limpet(folder, "output", "keep", "echo", text="hello\n").stdout == "hello\n"
    assert limpet(folder, "output", "list", "--json").stdout.count('"id"') == 0
    assert limpet(folder, "output", "read", "../../etc/passwd").returncode == 2
    kept = json.loads(limpet(folder, "output", "keep", "ls", "--json", text=LISTING).stdout)
    assert limpet(folder, "output", "read", kept["id"], "--lines", "many").returncode == 2
    assert limpet(folder, "output", "prune", "--json").stdout == '{"deleted": 0, "freed_bytes": 0}\n'
    assert limpet(folder, "output", "clear").returncode != 0  # nobody there to say yes
    assert json.loads(limpet(folder, "output", "clear", "--yes", "--json").stdout) == {"deleted": 1}


def test_a_repeated_call_a_circle_of_reads_and_the_savings_are_seen_across_processes(folder: Path) -> None:
    keep = ("output", "keep", "ls", "--call", "ls -l", "--session", "work")
    first = limpet(folder, *keep, text=LISTING).stdout
    id = first.split()[3]
    again = limpet(folder, *keep, text=LISTING).stdout
    assert again.count("\n") == 1
    assert again.startswith(f"📁 Output cached: {id} (")
    assert "unchanged" in again
    changed = limpet(folder, *keep, text=LISTING + "file 601 is new\n").stdout
    assert f"changed since {id}" in changed
    assert "\n+file 601 is new\n" in changed
    reads = [limpet(folder, "output", "read", id, "--lines", "5-9") for _ in range(3)]
    assert len({read.stdout for read in reads}) == 1
    assert ["was read 3 times" in read.stderr for read in reads] == [False, False, True]
    saved = json.loads(limpet(folder, "savings", "--json").stdout)
    assert [(row["session"], row["calls"], row["repeats"], row["reads"]) for row in saved["tools"]] == [
        ("cli", 0, 0, 3),
        ("work", 3, 2, 0),
    ]
    assert saved["saved"] == sum(row["saved"] for row in saved["tools"])
    assert saved["tools"][0]["saved"] < 0 < saved["tools"][1]["saved"]
    alone = json.loads(limpet(folder, "savings", "--session", "work", "--json").stdout)
    assert alone["total"]["saved"] == saved["tools"][1]["saved"]
    shown = limpet(folder, "savings")
    assert "in all" in shown.stdout
    assert "estimate(o200k)" in shown.stderr


def test_an_export_takes_outputs_along_and_an_import_brings_them_back(folder: Path) -> None:
    id = limpet(folder, "output", "keep", "ls", text=LISTING).stdout.split()[3]
    assert limpet(folder, "export", "all.jsonl").returncode == 0
    assert limpet(folder, "export", "small.jsonl", "--without-outputs").returncode == 0
    for file, code, text in (("all.jsonl", 0, "file 600 is 4200 bytes\n"), ("small.jsonl", 3, "")):
        store = ("--store", str(folder / f"{file}.db"))
        assert limpet(folder, "import", file, "--exact", *store).returncode == 0
        read = limpet(folder, "output", "read", id, "--lines", "600", *store)
        assert (read.returncode, read.stdout) == (code, text)
    piped = limpet(
        folder, "import", "-", "--exact", "--store", str(folder / "p.db"), text=limpet(folder, "export").stdout
    )
    assert piped.returncode == 0, piped.stderr
    assert limpet(folder, "output", "read", id, "--lines", "1", "--store", str(folder / "p.db")).returncode == 0
