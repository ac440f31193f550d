"""All goals, by name, with how often each is tried at each scale."""

from __future__ import annotations

from life import composed
from torture import (
    cuts,
    damage,
    disk,
    fuzz,
    hostile,
    journal,
    kills,
    lists,
    people,
    repositories,
    server,
    words,
    writers,
)
from torture.kit import Goal
from torture.suites import tests

DOORS = "tests/doors/test_mcp_http.py"
FAILOVER = "tests/journeys/test_takeover.py"
QUOTES = "tests/operations/test_trust.py"
ALL = (
    Goal("kill-library", "kill -9 of a program loses nothing acknowledged", kills.library, 6, 300, 8_000),
    Goal("kill-cli", "… nor of a command", kills.cli, 3, 36, 900),
    Goal("kill-stdio", "… nor of an MCP server on stdio", kills.stdio, 1, 20, 700),
    Goal("kill-http", "… nor of the HTTP server", kills.http_door, 1, 6, 400),
    Goal("power", "… nor a power cut (notes, outputs, NOTES.md)", disk.power, 6, 120, 5_000),
    Goal("index", "… nor does either make a text unfindable that waits for the index", words.index, 6, 200, 4_000),
    Goal("power-backup", "… nor one in the middle of a backup", cuts.backups, 3, 60, 500),
    Goal("power-migration", "… nor one while an old store is brought up to date", cuts.migrations, 3, 60, 500),
    Goal("system-calls", "A call that fails or kills at any point harms nothing", disk.system_calls, 3, 60, 5_000),
    Goal("size-limit", "Files that may not grow harm nothing", disk.limited, 1, 10, 500),
    Goal("full-disk", "A full disk harms nothing and is named", disk.small_disk, 1, 10, 500),
    Goal("flips", "No flipped bit is read as if nothing were", damage.flips, 8, 300, 2_400),
    Goal("backups", "A backup under load is a moment of the store", damage.backups, 1, 10, 200),
    Goal(
        "processes",
        "50 processes write without errors, each within 2 s",
        writers.processes,
        60,
        5_000,
        100_000,
    ),
    Goal("queue", "Nobody who waits to write is left behind", writers.queue, 0, 960, 9_600),
    Goal("clock", "Clocks that stand still or go back change no order", writers.clock, 80, 2_000, 1_000_000),
    Goal("halves", "What breaks off leaves no half and holds up nobody", writers.broken_off, 40, 1_000, 30_000),
    Goal("files", "Nobody but SQLite opens its files", writers.files, 1, 1, 20),
    Goal("backends", "PostgreSQL backends that are killed lose and double nothing", server.backends, 3, 40, 1_000),
    Goal("failover", "A replica that takes over has all that was acknowledged", tests(FAILOVER), 0, 1, 1),
    Goal("fuzz-library", "No call through the library fails inside", fuzz.library, 300, 5_000, 850_000),
    Goal("fuzz-stdio", "… nor through stdio", fuzz.stdio, 100, 1_500, 100_000),
    Goal("fuzz-http", "… nor through HTTP", fuzz.http_door, 50, 300, 50_000),
    Goal("upstreams", "A server behind us that means harm holds up nobody", hostile.upstreams, 27, 270, 5_400),
    Goal("editors", "No line that people save in NOTES.md is lost", people.editors, 12, 120, 3_200),
    Goal("journal", "… nor any entry of agents, by kills, power cuts and old buffers", journal.journal, 6, 120, 2_000),
    Goal("clones", "… nor of a team's memory files that git merges", people.clones, 2, 100, 1_000),
    Goal("paths", "Nothing outside of the project is read", people.paths, 100, 20_000, 500_000),
    Goal("repositories", "No repository gets, shows or runs anything", repositories.repositories, 60, 1_500, 20_000),
    Goal("injections", "No text is read as SQL, a search, a command or a path", lists.injections, 200, 6_000, 60_000),
    Goal("life", "Stories composed at random come true", composed.kept, 0, 10, 500),
    Goal("doors", "A web page cannot reach the server", tests(DOORS, "-k", "foreign or origin or form"), 0, 1, 1),
    Goal("scopes", "Every door has the same lock", tests("tests/doors/test_http_matrix.py"), 0, 1, 1),
    Goal("tenants", "Nobody sees another's rows", tests("tests/contract/test_projects.py"), 0, 1, 1),
    Goal("quotes", "Stored text is shown as data", tests(QUOTES), 0, 1, 1),
    Goal("seals", "A tool that changed behind our back is seen", tests("tests/operations/test_seals.py"), 0, 1, 1),
    Goal("patterns", "No pattern takes long", tests("tests/unit/test_slices_match.py"), 0, 1, 1),
)
GOALS = {goal.name: goal for goal in ALL}
