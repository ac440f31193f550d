"""What the tests of the contract share: short ways to write to a store, and texts that are hard to search in."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import apsw
import psycopg
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from limpet.model import EMPTY, KINDS, NOTE, Change, Draft, Entry, Scope, Stamp
from limpet.store import DELETE, Decide, Delete, Listing, Store
from limpet.text import words
from postgres import as_admin

NOTES = Listing((NOTE,))
EVERYTHING = KINDS
NOON = 1_772_445_600_000  # a fixed moment in milliseconds

# Examples get a project of their own, so one store serves all of them.
per_example = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def query_words(text: str) -> list[str]:
    """The different words of a text, at most 64."""
    return list(dict.fromkeys(words.words(words.fold(text))))[:64]


def new_scope(tenant: str | None = None) -> Scope:
    """A project of its own, of any tenant."""
    return Scope(f"tenant {uuid.uuid4().hex[:2]}" if tenant is None else tenant, f"p-{uuid.uuid4().hex}")


def stamp(now: int = NOON, session: str = "s", operation: str = "test", by: str = "agent/test") -> Stamp:
    return Stamp(by, operation, session, now)


def always(wanted: Draft | Delete | None) -> Decide:
    return lambda before: wanted


def put(store: Store, scope: Scope, key: str | None, content: str, *, kind: str = NOTE, **fields: Any) -> Change:
    """Write an entry. Fields of Draft go into the draft, the rest into the stamp."""
    kept = {name: fields.pop(name) for name in list(fields) if name in Draft._fields and name != "session"}
    when = stamp(**fields)
    return store.entries.edit(scope, kind, key, always(Draft(content, when.session, **kept)), when)


def delete(store: Store, scope: Scope, key: str, *, kind: str = NOTE, **fields: Any) -> Change:
    return store.entries.edit(scope, kind, key, always(DELETE), stamp(**fields))


def key_of(change: Change) -> str:
    assert change.after is not None
    return change.after.key


def keys(entries: Iterable[Entry]) -> list[str]:
    return [entry.key for entry in entries]


def everything(store: Store, scope: Scope) -> list[tuple[str, Mapping[str, Any]]]:
    return list(store.entries.dump(scope))


def note(key: str, content: str, at: int, tags: tuple[str, ...] = ()) -> Entry:
    """An entry for `load`."""
    return Entry(NOTE, key, "s", content, tags, False, False, "agent", EMPTY, 1, at, at)


def raw(url: str, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Do something to the database behind the store's back."""
    if url.startswith("postgresql://"):
        with psycopg.connect(as_admin(url), autocommit=True) as server:
            cursor = server.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []
    file = apsw.Connection(url)
    try:
        return file.execute(sql, values).fetchall()
    finally:
        file.close()


# --- texts ------------------------------------------------------------------------------------------------------------

FRAGMENTS = (
    *(
        "Straße",
        "STRASSE",
        "\u017fs",
        "İstanbul",
        "\u0131I",
        "Ünïcode",
        "e\u0301",
        "é",
        "x\u0302y",
        "q\u0323\u0307",
        "\u0307\u0323",
    ),
    *("ὈΔΥΣΣΕΎΣ", "ς", "ﬁre", "ﬀ", "½", "x²", "№5", "™", "\u211d", "ᴬᴮ", "ǅ", "Ǆ", "한국어", "\u1112\u1161\u11ab"),
    *("記憶", "の", "カタカナ", "ｶﾀｶﾅ", "ไทย", "မြန်", "ខ្មែរ", "𠮷", "क्षि", "العربية", "שָׁלוֹם", "٣٤"),
    *(
        "👍🏽",
        "👩\u200d💻",
        "🇩🇪",
        "%",
        "_",
        "\\",
        "\\%",
        "%_%",
        "'",
        '"',
        "''",
        '""',
        "--",
        ";",
        "*",
        ":",
        "(",
        ")",
        "&",
        "|",
    ),
    *(
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "^",
        "<->",
        "!",
        ":*",
        "foo_bar",
        "foo.bar",
        "foo-bar",
        "C++",
        "a",
        "b",
        "I",
        "no",
        "x1",
    ),
    *(
        "running",
        "Runs",
        "connection",
        "connected",
        " ",
        "  ",
        "\n",
        "\t",
        "\r\n",
        "\x1b[0m",
        "\x1f",
        "\x7f",
        "\u00a0",
        "\u200b",
    ),
)
runs = st.integers(55, 140).map(lambda n: base64.b64encode(hashlib.sha512(b"%d" % n).digest() * 2).decode()[:n])
characters = st.characters(codec="utf-8", exclude_characters="\x00")
snippets = st.one_of(st.sampled_from(FRAGMENTS), st.text(characters, max_size=4), runs)
nasty = st.lists(snippets, max_size=7).map("".join)


@st.composite
def contents_and_needle(draw: st.DrawFn) -> tuple[list[str], str]:
    """Some texts, and a text to look for: mostly a piece of one of them, in other letters perhaps."""
    contents = draw(st.lists(nasty, min_size=1, max_size=6))
    source = draw(st.sampled_from(contents))
    start = draw(st.integers(0, len(source)))
    piece = source[start : start + draw(st.integers(0, 80))]
    spelled = (piece, piece.upper(), piece.lower(), piece.swapcase(), piece.casefold())
    return contents, draw(st.one_of(st.sampled_from(spelled), nasty))
