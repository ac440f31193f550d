"""Anchors: what an entry cites is looked at again when the entry is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import limpet
from limpet.api import Limpet
from limpet.errors import BadInput
from operations.conftest import NOON, Clock

SOURCE = "import os\n\n\ndef connect():\n    # the database\n    return Postgres(14)\n\n\ndef close():\n    pass\n"
PLACE = "db.py:4-6"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "db.py").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def hold(root: Path, clock: Clock) -> Iterator[Limpet]:
    with limpet.open(str(root / "limpet.db"), project="demo", folder=str(root), clock=clock) as opened:
        yield opened


def source(hold: Limpet) -> dict[str, str]:
    (hit,) = hold.call("recall", {"query": "Postgres version", "kinds": ["memory"]})["hits"]
    found: dict[str, str] = hit["source"]
    return found


@pytest.mark.parametrize(
    ("after", "state", "place", "words"),
    [
        (SOURCE, "fresh", PLACE, ""),
        (SOURCE.replace("close()", "shut()"), "fresh", PLACE, ""),
        ("# new\n" * 3 + SOURCE, "moved", "db.py:7-9", "(its source moved to db.py:7-9)"),
        (SOURCE.replace("14", "16"), "drifted", PLACE, "(was true at 2026-03-03: db.py:4-6 has changed since)"),
        (None, "gone", PLACE, "(was true at 2026-03-03: db.py:4-6 is gone)"),
        (SOURCE.replace("\n", "\r\n"), "fresh", PLACE, ""),
    ],
)
def test_a_hit_says_whether_its_source_still_says_so(
    hold: Limpet, root: Path, after: str | None, state: str, place: str, words: str
) -> None:
    hold.call("write_memory", {"key": "db", "content": "The Postgres version is 14", "anchors": [PLACE]})
    hold.call("write_session_handoff", {"content": "Go on with the database.", "anchors": [PLACE]})
    if after is None:
        (root / "db.py").unlink()
    else:
        (root / "db.py").write_text(after, newline="")
    assert (source(hold)["state"], source(hold)["place"]) == (state, place)
    assert ("was_true_at" in source(hold)) == (state in ("drifted", "gone"))
    context = hold.session("next").context()
    assert context.count(words or "was true at") == (2 if words else 0), "in the digest and beside the handoff"


def test_an_audit_lists_what_drifted(hold: Limpet, root: Path) -> None:
    hold.call("add_note", {"content": "close() does nothing yet", "anchors": ["db.py:9-10"]})
    hold.call("write_memory", {"key": "db", "content": "Postgres 14", "anchors": [PLACE]})
    (root / "db.py").write_text(SOURCE.replace("14", "16"))
    (finding,) = hold.call("audit", {"only": ["drifted"]})["findings"]
    assert (finding["kind"], finding["id"]) == ("memory", "db")
    assert finding["reason"] == "was true at 2026-03-03: db.py:4-6 has changed"


def test_a_decision_says_whether_its_evidence_stands(hold: Limpet, root: Path) -> None:
    hold.call("init_notes", {})
    hold.call(
        "log_decision",
        {
            "title": "Postgres",
            "decision": "Use Postgres",
            "rationale": "It is there",
            "evidence": ["db.py:6 return Postgres(14)"],
            "scenarios": ["a query", "no server", "a slow server"],
        },
    )
    query = {"query": "why Postgres?", "kinds": ["journal"]}
    assert hold.call("recall", query)["hits"][0]["source"]["state"] == "fresh"
    (root / "db.py").write_text(SOURCE.replace("14", "16"))
    assert hold.call("recall", query)["hits"][0]["source"]["state"] == "drifted"


def test_commits_and_urls_are_cited_and_not_looked_at(hold: Limpet) -> None:
    places = ["0a1b2c3d", "commit: 0a1b2c3d4e", "https://example.com/adr/7"]
    hold.call("write_memory", {"key": "db", "content": "The Postgres version is 14", "anchors": places})
    assert hold.call("read_memory", {"key": "db"})["anchors"] == ["commit 0a1b2c3d", "commit 0a1b2c3d4e", places[2]]
    assert source(hold)["state"] == "cited"


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("../secret:1", "outside the project"),
        ("/etc/passwd:1", "outside the project"),
        ("link.py:1", "through a link"),
        ("inside/secret:1", "through a link"),
        ("missing.py:1", "No such file"),
        ("db.py:40-41", "has 10 lines"),
        ("db.py:6-4", "the first is not behind the last"),
        ("db.py:0", "lines count from 1"),
        ("db.py:0-3", "lines count from 1"),
        ("long.log:1", "more than 2 MiB"),
        ("binary:1", "no readable text file"),
        ("db.py:2-3", "no text on these lines"),
        ("folder:1", "no readable text file"),
        ("pipe:1", "no readable text file"),
    ],
)
def test_what_cannot_be_cited_is_refused_and_nothing_is_stored(
    hold: Limpet, root: Path, tmp_path_factory: pytest.TempPathFactory, place: str, why: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("secret\n")
    (root / "link.py").symlink_to(root / "db.py")
    (root / "inside").symlink_to(outside)
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "long.log").write_bytes(b"row\n" * (1 << 20))
    (root / "binary").write_bytes(b"\x7fELF\0\1\n")
    with pytest.raises(BadInput, match=why):
        hold.call("add_note", {"content": "It cites something", "anchors": [place]})
    assert hold.call("list_notes", {})["notes"] == []


def test_a_link_put_in_the_place_of_a_cited_file_is_not_followed(
    hold: Limpet, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hold.call("write_memory", {"key": "db", "content": "The Postgres version is 14", "anchors": [PLACE]})
    outside = tmp_path_factory.mktemp("outside") / "db.py"
    outside.write_text(SOURCE)
    (root / "db.py").unlink()
    (root / "db.py").symlink_to(outside)
    assert source(hold)["state"] == "gone"


def test_a_file_that_changes_while_it_is_read_is_refused(
    hold: Limpet, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fstat

    def growing(handle: int) -> os.stat_result:
        info = real(handle)
        with open(root / "db.py", "a") as file:
            file.write("# more\n")
        return info

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", growing)
        with pytest.raises(BadInput, match="changed while it was read"):
            hold.call("add_note", {"content": "It cites something", "anchors": [PLACE]})


def test_without_a_folder_lines_cannot_be_cited_and_are_not_called_gone(hold: Limpet, root: Path) -> None:
    hold.call("write_memory", {"key": "db", "content": "The Postgres version is 14", "anchors": [PLACE]})
    elsewhere = hold.elsewhere(hold.scope)
    (hit,) = elsewhere.call("recall", {"query": "Postgres version", "kinds": ["memory"]})["hits"]
    assert hit["source"]["state"] == "cited"
    with pytest.raises(BadInput, match="no folder of the project"):
        elsewhere.call("add_note", {"content": "It cites something", "anchors": [PLACE]})


def test_a_whole_file_may_be_cited(hold: Limpet, root: Path) -> None:
    hold.call("write_memory", {"key": "db", "content": "The Postgres version is 14", "anchors": ["db.py"]})
    assert source(hold)["state"] == "fresh"
    (root / "db.py").write_text(f"# one more line\n{SOURCE}")
    assert source(hold)["state"] == "drifted"
    assert NOON  # the clock of the story
