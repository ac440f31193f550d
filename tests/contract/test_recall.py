"""What stores gather for recall: places of words, texts around them, pieces of outputs; and that both stores agree."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

import limpet
from contract.kit import NOON, delete, key_of, new_scope, put, stamp
from limpet.model import MEMORY, NOTE, OutputDraft, Scope
from limpet.recall.embeddings import Embeddings, catch_up
from limpet.recall.rank import first
from limpet.settings import RecallRules
from limpet.store import SOMEWHERE, CandidateQuery, Candidates, Document, Store
from limpet.wiring import choose_embeddings

WORDS = (
    *("harbour", "engine", "ticket", "violin", "garden", "recipe", "market", "bridge", "winter", "painting", "letter"),
    *("mountain", "camera", "window", "teacher", "river", "doctor", "pepper", "sailing", "theatre", "museum", "guitar"),
    *("puzzle", "bakery", "tunnel", "meadow", "lantern", "compass", "orchard"),
)
NAMES = ("Anna", "Ben", "Cleo")


def seek(
    *words: str, literals: tuple[str, ...] = (), most: int = 100, around: int = 0, common: int = 1_000
) -> CandidateQuery:
    def wanted(fact: Document) -> bool:
        return not fact.done

    return CandidateQuery(words, literals, first, wanted, lambda fact: around, most, common)


def named(gathered: Candidates, docs: Sequence[int]) -> list[str]:
    return [gathered.documents[doc].key for doc in docs]


def test_places_count_words_and_follow_stems(store: Store) -> None:
    scope = new_scope()
    key = key_of(put(store, scope, None, "tests pass; the test of tests"))
    put(store, scope, None, "nothing of that kind")
    gathered = store.entries.candidates(scope, (NOTE,), seek("test", "absent"))
    ((doc, places),) = (gathered.positions[0] or {}).items()
    assert places == (0, 3, 5)
    assert gathered.positions[1] == {}
    assert named(gathered, gathered.docs) == [key]
    assert gathered.total == 2
    fact = gathered.documents[doc]
    assert (fact.kind, fact.session, fact.head, fact.size) == (NOTE, "s", "tests pass; the test of tests", 29)
    assert store.entries.texts(scope, [doc, doc + 1_000])[doc].content == "tests pass; the test of tests"


def test_only_the_kinds_and_the_project_asked_for_are_gathered(store: Store) -> None:
    scope, other = new_scope(), new_scope()
    note = key_of(put(store, scope, None, "zinc"))
    put(store, scope, "metal", "zinc", kind=MEMORY)
    put(store, other, None, "zinc")
    gathered = store.entries.candidates(scope, (NOTE,), seek("zinc"))
    assert named(gathered, gathered.docs) == [note]
    assert len(gathered.positions[0] or {}) == 1
    assert store.entries.texts(other, gathered.docs) == {}


def test_texts_around_a_hit_are_known_and_the_deleted_are_not(store: Store) -> None:
    scope = new_scope()
    keys = [key_of(put(store, scope, None, text)) for text in ("one", "two", "cobalt", "four", "five")]
    gathered = store.entries.candidates(scope, (NOTE,), seek("cobalt", around=1))
    assert sorted(fact.key for fact in gathered.documents.values()) == keys[1:4]
    delete(store, scope, keys[2])
    assert store.entries.candidates(scope, (NOTE,), seek("cobalt", around=1)).docs == ()


def test_a_literal_is_found_inside_words_and_common_words_are_not_followed(store: Store) -> None:
    scope = new_scope()
    keys = [key_of(put(store, scope, None, f"the usual {number}")) for number in range(8)]
    odd = key_of(put(store, scope, None, "the xylophonist played"))
    gathered = store.entries.candidates(scope, (NOTE,), seek("xylophon", literals=("lophoni",)))
    assert named(gathered, list(gathered.literals[0])) == [odd]
    common = store.entries.candidates(scope, (NOTE,), seek("usual", common=5))
    assert common.common == {0}
    assert common.counts[0] > 5
    assert named(common, common.docs) == keys[::-1]


@pytest.mark.parametrize("literal", ["req.host", "actions/checkout", "add_url_rule"])
def test_a_literal_is_found_inside_longer_words_where_no_text_has_it_as_its_own(store: Store, literal: str) -> None:
    scope = new_scope()
    with_more = key_of(put(store, scope, None, f"where {literal}name and {literal}s differ"))
    gathered = store.entries.candidates(scope, (NOTE,), seek("where", literals=(literal,)))
    assert named(gathered, list(gathered.literals[0])) == [with_more]
    own = key_of(put(store, scope, None, f"where ({literal}) is set"))
    gathered = store.entries.candidates(scope, (NOTE,), seek("where", literals=(literal,)))
    assert named(gathered, list(gathered.literals[0])) == [own]


def test_outputs_are_found_once_indexed_until_they_are_gone(store: Store) -> None:
    scope = new_scope()
    body = b"".join(b"line %d is dull\n" % number for number in range(2_000)) + b"the kestrel landed\n"
    kept = store.outputs.keep(scope, OutputDraft("radar"), body, stamp()).output
    assert store.outputs.candidates(scope, seek("kestrel")).docs == ()
    assert store.outputs.index(scope, 1) == 0
    assert store.outputs.index(scope, 1 << 20) == 0
    gathered = store.outputs.candidates(scope, seek("kestrel"))
    (doc,) = gathered.docs
    fact = gathered.documents[doc]
    assert (fact.kind, fact.key, fact.origin) == ("output", kept.id, "tool radar")
    assert body[fact.start : fact.start + fact.size].endswith(b"the kestrel landed\n")
    assert body.count(b"\n", 0, fact.start) == fact.line - 1
    assert store.outputs.candidates(scope, seek("radar")).docs  # what made it finds it too
    assert store.outputs.candidates(new_scope(), seek("kestrel")).docs == ()
    assert store.outputs.delete(scope, kept.id, stamp())
    assert store.outputs.candidates(scope, seek("kestrel")).docs == ()


def test_outputs_wait_when_there_are_too_many(store: Store) -> None:
    scope = new_scope()
    for number in range(3):
        store.outputs.keep(scope, OutputDraft("t"), b"falcon %d " % number * 600, stamp(NOON + number))
    assert store.outputs.index(scope, 1) == 2
    assert store.outputs.index(scope, 1 << 20) == 0
    assert len({fact.key for fact in store.outputs.candidates(scope, seek("falcon")).documents.values()}) == 3


def talk(address: str, model: str) -> list[list[str]]:
    """What a store answers to the same questions about the same conversations."""
    dice = random.Random(7)
    now = [NOON]
    answers = []
    with limpet.open(address, project="talk", clock=lambda: now[0]) as hold:
        for number in range(240):
            now[0] += 60_000 * (1 + 600 * (number % 30 == 0))
            said = " ".join(dice.choices(WORDS, k=dice.randint(4, 14)))
            hold.session(f"s{number // 30}").notes.add(f"{dice.choice(NAMES)}: the {said}{dice.choice('.?!')}")
        rules = RecallRules(model=model)
        hold._embeddings = Embeddings(lambda: choose_embeddings(rules))
        best = hold._embeddings.models().best()
        assert best is not None
        assert catch_up(best, hold.store, hold.scope) == 240
        for _ in range(80):
            asked = " ".join(dice.sample(WORDS, dice.randint(1, 5)))
            query = dice.choice(
                (f"what did {dice.choice(NAMES)} say about the {asked}?", asked, f"when was the {asked}?")
            )
            answers.append([hit.key for hit in hold.recall(query).hits])
    return answers


@pytest.mark.parametrize("model", ["static", "transformer"])
def test_both_stores_agree_on_the_first_ten(tmp_path: Path, postgres_url: str, model: str) -> None:
    ours, theirs = talk(str(tmp_path / "talk.db"), model), talk(postgres_url, model)
    same = sum(one == two for one, two in zip(ours, theirs, strict=True))
    assert all(ours)
    print(f"{same} of {len(ours)}")
    assert same >= 0.95 * len(ours), f"{same} of {len(ours)}"


def test_the_project_of_a_text_is_part_of_its_name(store: Store) -> None:
    assert store.entries.texts(Scope("local", "nobody"), [1, 2, 3]) == {}


def test_common_words_are_looked_for_beside_a_rarer_one(store: Store) -> None:
    """A word that stands everywhere says little alone, and much among the texts that hold a rare word."""
    scope = new_scope()
    meant = key_of(put(store, scope, None, "cobalt with amber and ivory"))
    for number in range(12):
        put(store, scope, None, f"amber {number}")
        put(store, scope, None, f"ivory {number}")
        put(store, scope, None, f"cobalt {number % 3}")
    gathered = store.entries.candidates(scope, (NOTE,), seek("amber", "cobalt", "ivory", most=4, common=12))
    assert gathered.common == {0, 1, 2}
    gathered = store.entries.candidates(scope, (NOTE,), seek("amber", "cobalt", "ivory", "with", most=4, common=12))
    assert gathered.common == {0, 1, 2}
    assert named(gathered, gathered.docs)[0] == meant
    assert [places.get(gathered.docs[0]) for places in gathered.positions[:3]] == [SOMEWHERE] * 3
    assert all(count >= 12 for count in gathered.counts[:3])


def test_words_that_are_all_common_find_the_texts_with_most_of_them(store: Store) -> None:
    scope = new_scope()
    for number in range(12):
        put(store, scope, None, f"amber {number}")
        put(store, scope, None, f"cobalt {number}")
    both = key_of(put(store, scope, None, "amber beside cobalt"))
    for number in range(12):
        put(store, scope, None, f"ivory {number}")
    gathered = store.entries.candidates(scope, (NOTE,), seek("amber", "cobalt", "ivory", most=4, common=10))
    assert gathered.common == {0, 1, 2}
    assert named(gathered, gathered.docs)[0] == both
    assert len(gathered.docs) == 4


def test_a_small_project_is_found_beside_a_large_one_that_says_the_same(store: Store) -> None:
    scope, other = new_scope(), new_scope()
    keys = [key_of(put(store, scope, None, f"the tide of harbour {number}")) for number in range(3)]
    kept = store.outputs.keep(scope, OutputDraft("chart"), b"the tide of harbour\n", stamp()).output
    for number in range(40):
        put(store, scope, f"mind {number}", "the tide of harbour", kind=MEMORY)  # nor do other kinds hide a note
        put(store, other, None, f"the tide of harbour {number}")
        store.outputs.keep(other, OutputDraft("chart"), b"the tide of harbour %d\n" % number, stamp())
    for owner in (scope, other):
        assert store.outputs.index(owner, 1 << 20) == 0
    for words in (("tide",), ("tide", "harbour")):
        asked = seek(*words, most=4, common=5)
        gathered = store.entries.candidates(scope, (NOTE,), asked)
        assert set(named(gathered, gathered.docs)) == set(keys)
        outputs = store.outputs.candidates(scope, asked)
        assert named(outputs, outputs.docs) == [kept.id]
