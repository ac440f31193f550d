"""Search: what is contained is found, exactly and in order, in any script; and no question is an error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import example, given

from contract.kit import NOON, NOTES, contents_and_needle, keys, nasty, new_scope, note, per_example, put, query_words
from contract.naive import NaiveStore
from limpet.model import MEMORY, NOTE, Entry, Scope
from limpet.store import Listing, Page, Store, Words
from limpet.stores.sqlite.store import SqliteStore
from limpet.text.words import fold, terms
from limpet.wiring import choose_store

RUN = "QWxhZGRpbjpvcGVuIHNlc2FtZQ" * 6  # as long as a key in base64

PAYLOADS = (
    *("", " ", "*", '"', "'", "\\", "%", "_", "%%", "(", ")", "()", "((", ":", ":*", "a:*", "-a", "+a", "^a", "a^"),
    *("AND", "a AND", "OR b", "NOT", "NOT a", "NEAR(a b, 2)", "a NEAR b", '"a" "b', "text:a", "{a b}: c", "a*b", "* a"),
    *("a & b", "a |", "!a", "a <-> b", "a <2> b", "'a'", "'a':A", "\\'", "''''", "a'b", "'; DROP TABLE entries; --"),
    *(
        '" OR 1=1',
        "\x1b[31m",
        "\u202e",
        "👍",
        "記憶",
        "a" * 5_000,
        "語" * 3_000,
        "word " * 2_000,
        "\n",
        "\x01",
        "$1",
        "%s",
    ),
)


def naive_page(entries: list[Entry], needle: str, limit: int = 1_000) -> Page:
    """What has its words as words, then what contains it; of each the shortest, then the newest."""
    sought = fold(needle)
    runs = set(re.findall(r"[^\W_]+", sought))

    def place(at: int) -> tuple[bool, int, int]:
        whole = bool(runs) and runs <= set(re.findall(r"[^\W_]+", fold(entries[at].content)))
        return not whole, len(entries[at].content.encode()), -at

    found = sorted((at for at, entry in enumerate(entries) if sought in fold(entry.content)), key=place)
    return Page(tuple(entries[at] for at in found[:limit]), len(found))


def laden(store: Store, contents: list[str]) -> tuple[Scope, list[Entry]]:
    scope = new_scope()
    # Two and two have the same time, so that the order of keys is seen too.
    entries = [note(f"note_{at}", content, NOON + at // 2) for at, content in enumerate(contents)]
    assert store.load(scope, entries, []) == len(entries)
    return scope, entries


@given(contents_and_needle())
@example((["Straße", "strasse", "STRASSE", "x Straße"], "asSE"))
@example((["İstanbul", "istanbul", "i\u0307stanbul"], "i\u0307"))
@example((["x\u0302y", "xy", "X\u0302Y"], "\u0302Y"))
@example(([f"a {RUN} b", RUN[:70], RUN[3:]], RUN[40:90]))
@example((["100%", "100", "a_b", "ab", "a\\b", "\\%"], "%"))
@example((["a_b", "axb"], "A_B"))
@example((["\\", "\\\\"], "\\\\"))
@example((["it's", 'say "x"', "--"], "'s"))
@example((["記憶の宮殿", "記憶", "宮殿"], "憶の"))
@example((["kelvin \u212a", "kelvin k", "™ tm TM"], "TM"))
@per_example
def test_containing_is_exact(store: Store, asked: tuple[list[str], str]) -> None:
    contents, needle = asked
    scope, entries = laden(store, contents)
    assert store.entries.containing(scope, NOTES, needle) == naive_page(entries, needle)


@pytest.mark.parametrize("limit", [0, 1, 3, 20, 100])
def test_containing_counts_what_it_leaves_out(store: Store, limit: int) -> None:
    contents = [f"{'.' * (n % 4)}{'x' * (n % 2)}needle {n}" for n in range(20)]
    scope, entries = laden(store, [*contents, "other"])
    page = store.entries.containing(scope, NOTES._replace(limit=limit), "NEEDLE")
    assert page.entries == naive_page(entries, "needle", limit).entries
    # Ten hold the word. More than fit the page are enough: what else contains it is not looked for.
    assert (page.total, page.more) == ((10, True) if limit < 10 else (20, limit < 20))


def test_containing_looks_at_the_content_as_it_is_now(store: Store, scope: Scope) -> None:
    put(store, scope, "k", "first thought", tags=("tagged",))
    put(store, scope, "k", "second idea")
    put(store, scope, "gone", "third")
    put(store, scope, "m", "first", kind=MEMORY)
    assert store.entries.containing(scope, NOTES, "thought").total == 0
    assert store.entries.containing(scope, NOTES, "tagged").total == 0  # tags are not content
    assert keys(store.entries.containing(scope, NOTES, "cond id").entries) == ["k"]
    assert keys(store.entries.containing(scope, Listing((NOTE, MEMORY)), "ir").entries) == ["m", "gone"]
    assert keys(store.entries.containing(scope, Listing((NOTE, MEMORY)), "M").entries) == [
        "m"
    ]  # memory is found by its key


def test_the_text_of_memory_begins_with_its_key(store: Store, scope: Scope) -> None:
    memory = Listing((MEMORY,))
    put(store, scope, "Project Straße", "the street", kind=MEMORY, now=NOON)
    put(store, scope, "other", "project street", kind=MEMORY, now=NOON + 1)
    assert keys(store.entries.containing(scope, memory, "PROJECT").entries) == ["Project Straße", "other"]
    assert keys(store.entries.containing(scope, memory, "strasse\nTHE").entries) == ["Project Straße"]
    put(store, scope, "project", "note", kind=NOTE)
    assert store.entries.containing(scope, NOTES, "project").total == 0  # the key of a note is made by the store


def test_containing_obeys_the_listing(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "needle", session="s1", tags=("t",))
    put(store, scope, "b", "needle", session="s2", done=True)
    put(store, scope, "c", "needle", session="s2")
    assert keys(store.entries.containing(scope, NOTES, "eedl").entries) == ["c", "a"]
    assert keys(store.entries.containing(scope, NOTES._replace(include_done=True), "eedl").entries) == ["c", "b", "a"]
    assert keys(store.entries.containing(scope, NOTES._replace(session="s1"), "eedl").entries) == ["a"]
    assert keys(store.entries.containing(scope, NOTES._replace(tags=("t",)), "eedl").entries) == ["a"]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_no_question_is_an_error(store: Store, payload: str) -> None:
    scope, entries = laden(store, ["a and b", "a", "text: c", f"x {payload}"])
    assert store.entries.containing(scope, NOTES, payload) == naive_page(entries, payload)
    groups = tuple((word,) for word in query_words(payload))
    for words in (Words(groups), Words(groups, every=False), Words((tuple(query_words(payload)), ("a",)))):
        found = {entry.key for entry in store.entries.matching(scope, NOTES, words)}
        assert found <= {entry.key for entry in entries}


def test_words_are_found_by_their_stem_in_content_tags_and_memory_keys(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "The connection was refused", tags=("Networking",))
    put(store, scope, "b", "connected at last")
    put(store, scope, "c", "unrelated")
    put(store, scope, "network-key", "something", kind=MEMORY)
    whole = Listing((NOTE, MEMORY))

    def found(query: str, *, every: bool = True) -> set[str]:
        words = Words(tuple((word,) for word in query_words(query)), every)
        return {entry.key for entry in store.entries.matching(scope, whole, words)}

    assert found("connections") == {"a", "b"}
    assert found("network") == {"a", "network-key"}
    assert found("CONNECTED refusing") == {"a"}
    assert found("connected refusing unrelated", every=False) == {"a", "b", "c"}
    assert found("nowhere") == set()
    assert found("") == set()
    either = Words((("nowhere", "refuses"), ("connect",)))
    assert {entry.key for entry in store.entries.matching(scope, whole, either)} == {"a"}
    assert store.entries.matching(scope, whole, Words(((), ()))) == ()


STEMS = (
    *(("try", "tries", "tried", "trying"), ("cry", "cries", "crying"), ("sky", "skies"), ("die", "dies", "dying")),
    *(("lie", "lying"), ("happy", "happily", "happiness"), ("relate", "relational", "relating"), ("hope", "hoping")),
    *(("test", "tests", "testing", "tested"), ("cache", "caches", "caching"), ("query", "queries", "querying")),
    *(("organize", "organization"), ("biology", "biologies"), ("run", "running", "runs"), ("use", "using", "used")),
)


@pytest.mark.parametrize("family", STEMS, ids=lambda family: family[0])
def test_words_with_the_same_stem_are_the_same_word(store: Store, family: tuple[str, ...]) -> None:
    family = tuple(word for word in family if terms([word]) == terms([family[0]]))
    scope, entries = laden(store, [f"some {word} text" for word in family] + ["other words"])
    wanted = keys(entries[:-1])
    for word in family:
        assert sorted(keys(store.entries.matching(scope, NOTES, Words(((word,),))))) == wanted, word


def test_what_was_looked_for_in_vain_is_found_once_it_is_there(store: Store, store_url: str, scope: Scope) -> None:
    sought = Words((("parsers",),))
    assert store.entries.matching(scope, NOTES, sought) == ()
    store.load(scope, [note("loaded", "a parser", NOON)], [])
    assert keys(store.entries.matching(scope, NOTES, sought)) == ["loaded"]
    put(store, scope, "put", "some parsers", now=NOON + 1)
    assert keys(store.entries.matching(scope, NOTES, sought)) == ["put", "loaded"]
    elsewhere = Words((("zebras",), ("parser",)))
    assert store.entries.matching(scope, NOTES, elsewhere) == ()
    other = choose_store(store_url)
    put(other, scope, "theirs", "zebra parsers", now=NOON + 2)
    other.close()
    assert keys(store.entries.matching(scope, NOTES, elsewhere)) == ["theirs"]


def test_a_word_is_found_among_very_many_that_begin_or_end_like_it(store: Store) -> None:
    fillers = " ".join(f"{number}ate creat{number}" for number in range(1_000, 1_400))
    scope, _ = laden(store, [fillers, "they ate", "creatures", "it ate creatures"])
    assert keys(store.entries.matching(scope, NOTES, Words((("ate",),)))) == ["note_3", "note_1"]
    assert keys(store.entries.matching(scope, NOTES, Words((("creatures",),)))) == ["note_3", "note_2"]
    assert keys(store.entries.matching(scope, NOTES, Words((("ate",), ("creatures",))))) == ["note_3"]


def test_a_short_stem_is_found_among_many_words_that_begin_like_it(store: Store) -> None:
    fillers = " ".join(f"con{number}" for number in range(1_000, 2_000))
    scope, _ = laden(store, [fillers, "pros and cons"])
    assert keys(store.entries.matching(scope, NOTES, Words((("con",),)))) == ["note_1"]


def test_entries_with_every_word_come_newest_first(store: Store, scope: Scope) -> None:
    for at, content in enumerate(("word", "word word word", "a long text with that word in it", "word")):
        put(store, scope, f"k{at}", content, now=NOON + at)
    assert keys(store.entries.matching(scope, NOTES, Words((("word",),)))) == ["k3", "k2", "k1", "k0"]
    put(store, scope, "k0", "word again", now=NOON + 9)  # a change makes it no newer
    assert keys(store.entries.matching(scope, NOTES._replace(limit=2), Words((("word",),)))) == ["k3", "k2"]


def test_without_every_word_those_that_hold_the_most_come_first(store: Store, scope: Scope) -> None:
    put(store, scope, "both", "alpha beta", now=NOON)
    for at in range(5):
        put(store, scope, f"one{at}", "alpha gamma", now=NOON + 1 + at)
    words = Words((("alpha",), ("beta",)), every=False)
    assert keys(store.entries.matching(scope, NOTES, words))[0] == "both"


def test_matching_obeys_the_listing_and_its_limit(store: Store, scope: Scope) -> None:
    for n in range(5):
        put(store, scope, f"k{n}", "word " * (n + 1), session=f"s{n % 2}", tags=("t",) if n == 3 else (), done=n == 4)
    words = Words((("word",),))
    assert len(store.entries.matching(scope, NOTES, words)) == 4
    assert len(store.entries.matching(scope, NOTES._replace(limit=2), words)) == 2
    assert {e.key for e in store.entries.matching(scope, NOTES._replace(session="s1"), words)} == {"k1", "k3"}
    assert keys(store.entries.matching(scope, NOTES._replace(tags=("t",)), words)) == ["k3"]
    assert "k4" in keys(store.entries.matching(scope, NOTES._replace(include_done=True), words))


def test_words_follow_a_change_and_leave_with_the_entry(store: Store, scope: Scope) -> None:
    put(store, scope, "k", "alpha")
    put(store, scope, "k", "beta")
    assert store.entries.matching(scope, NOTES, Words((("alpha",),))) == ()
    assert keys(store.entries.matching(scope, NOTES, Words((("beta",),)))) == ["k"]
    put(store, scope, "k", "beta", tags=("gamma",))
    assert keys(store.entries.matching(scope, NOTES, Words((("gamma",),)))) == ["k"]
    put(store, scope, "k", "")
    assert store.entries.matching(scope, NOTES, Words((("beta", "gamma"),))) == ()


@given(contents_and_needle(), nasty)
@example((["Limpet™ №5", "tm no5", "TEL ℡"], "tm"), "No5 tel")
@per_example
def test_both_stores_find_the_same(both: tuple[Store, Store], asked: tuple[list[str], str], question: str) -> None:
    contents, needle = asked
    entries = [note(f"note_{at}", text, NOON + at // 2, ("Tag",) * (at % 2)) for at, text in enumerate(contents)]
    scope = new_scope()
    for store in both:
        store.load(scope, entries, [])
    one, other = both
    assert one.entries.containing(scope, NOTES, needle) == other.entries.containing(scope, NOTES, needle)
    for text in (question, needle, f"tag {needle}"):
        asked_for = query_words(text)
        for every in (True, False):
            words = Words(tuple((word,) for word in asked_for), every)
            found = [{entry.key for entry in store.entries.matching(scope, NOTES, words)} for store in both]
            assert found[0] == found[1]


@given(contents_and_needle())
@per_example
def test_matching_finds_exactly_the_entries_with_the_words(store: Store, asked: tuple[list[str], str]) -> None:
    contents, question = asked
    scope, entries = laden(store, contents)
    naive = NaiveStore()
    for entry in entries:
        put(naive, scope, entry.key, entry.content)  # type: ignore[arg-type]
    for every in (True, False):
        words = Words(tuple((word,) for word in query_words(question)), every)
        assert {entry.key for entry in store.entries.matching(scope, NOTES, words)} == naive.matching(
            scope, NOTES, words
        )


def test_the_embedded_store_prepares_no_statement_again_for_other_values(tmp_path: Path, scope: Scope) -> None:
    store = SqliteStore(str(tmp_path / "limpet.db"))
    store.create()
    again: dict[str, int] = {}

    def count(event: dict[str, Any]) -> None:
        again[event["sql"]] = event["stmt_status"]["SQLITE_STMTSTATUS_REPREPARE"]

    con = store._db.take()
    con.trace_v2(apsw.SQLITE_TRACE_PROFILE, count)
    store._db.give(con)
    for number in range(5):
        put(store, scope, f"k{number}", f"The parser reads {number} files of the grammar")
        assert store.entries.containing(scope, NOTES, "parser").total == number + 1
        assert len(store.entries.matching(scope, NOTES, Words((("parser",), ("grammars",))))) == number + 1
    store.close()
    assert any("FROM 'main'.'terms_idx'" in sql for sql in again), "the statements of the index itself are seen"
    assert max(again.values()) <= 1, "once may be because the tables are new"
