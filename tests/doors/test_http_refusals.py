"""Every refusal of the HTTP server, as people and programs read it."""

from __future__ import annotations

from pathlib import Path

from limpet import errors
from limpet.doors.http import refusals
from limpet.doors.http.principal import Level
from test_snapshots import check

SAID = [
    refusals.unauthorized("", presented=False),
    refusals.unauthorized(', resource_metadata="https://memory.example.org/.well-known/x"', presented=True),
    refusals.forbidden("add_note", Level.WRITE, Level.READ, "limpet:", ""),
    refusals.forbidden("GET /mcp", Level.READ, Level.PUBLIC, "limpet:", ""),
    refusals.wrong_project("parser"),
    refusals.project_needed(("parser", "lexer")),
    refusals.two_projects("parser", "lexer"),
    refusals.no_folder("recover_journal"),
    refusals.no_route("/docs"),
    refusals.no_method("PUT", {"POST", "GET"}),
    refusals.too_often(7, "600 calls a minute"),
    refusals.too_many_at_once(12, "write"),
    refusals.not_json("The message is not JSON: Expecting value: line 1 column 1 (char 0)."),
    refusals.not_json_type("text/plain"),
    refusals.store_away(),
    refusals.failed_inside(),
    refusals.of(errors.missing("add_note", "content")),
    refusals.of(errors.no_note("note_1")),
    refusals.of(errors.version_moved("notepad", 1, 2)),
    refusals.of(errors.store_gone("postgresql://db", "connection refused")),
    refusals.of(errors.store_full("limpet.db")),
    refusals.of(errors.writes_waiting(6)),
    refusals.of(errors.over_quota(100_000, "entries", 100_000)),
]


def test_refusals_read_like_help() -> None:
    lines = []
    for answer in SAID:
        lines.append(f"{answer.status_code} {bytes(answer.body).decode()}")
        lines += [f"    {name}: {answer.headers[name]}" for name in ("www-authenticate", "allow", "retry-after")
                  if name in answer.headers]  # fmt: skip
    check("refusals.txt", "\n".join(lines) + "\n")


def test_every_refusal_is_among_them() -> None:
    made = {name for name, found in vars(refusals).items() if callable(found) and found.__module__ == refusals.__name__}
    source = Path(__file__).read_text(encoding="utf-8")
    assert not [name for name in made - {"refusal", "Refused"} if f"refusals.{name}(" not in source]
