"""Which texts plainly correct which, in twelve languages, and which only look like it."""

from __future__ import annotations

import pytest

from bench import validity_sets as sets
from limpet.memory.corrections import corrects, in_order, supersedes

PAIRS = [
    ("We use Postgres 14", "Correction: we use Postgres 16, not 14"),
    ("The team chose Postgres 14", "The team has moved to Postgres 16"),
    ("Builds run with npm", "Builds run with pnpm instead of npm"),
    ("The API port is 8080", "The API port is now 8081 because of the gateway"),
    ("Die Tests laufen mit pytest 7", "Korrektur: die Tests laufen mit pytest 8, nicht 7"),
    ("Usamos Node 18 en producción", "Usamos Node 20 en producción, ya no Node 18"),
    ("Le serveur écoute sur le port 8080", "Le serveur écoute désormais sur le port 9090"),
    ("O serviço usa Redis 6", "O serviço agora usa Redis 7"),
    ("Мы используем Redis 6 для очереди", "Теперь мы используем Redis 7 для очереди"),
    ("Server memakai port 8080", "Server sekarang memakai port 9090"),
    ("نستخدم المنفذ 8080 للخادم", "تصحيح: نستخدم المنفذ 9090 للخادم"),
    ("हम Python 3.10 का उपयोग करते हैं", "हम अब Python 3.12 का उपयोग करते हैं"),
    ("সার্ভার 8080 পোর্ট ব্যবহার করে", "সংশোধন: সার্ভার 9090 পোর্ট ব্যবহার করে"),
    ("部署端口是8080", "更正 部署端口是9090"),
    ("データベースはMySQLです", "データベースはMySQLではなくPostgresです"),
    ("The lexer lives in src/lex.c", "the lexer moved to core/lex.c"),
    ("Backups are kept in Paris", "backups are no longer kept in Paris"),
    ("Der Build braucht Java 17", "Der Build braucht seit gestern mindestens Java 21"),
    ("Die Kurse beginnen im März", "Im März beginnen die Kurse nicht mehr, sondern im Mai"),
    ("Die Sitzung ist mittwochs", "Die Sitzung wurde auf Freitag verschoben"),
    ("客服电话周三开放", "客服电话周六开放 而不是周三"),
    ("Ida writes the release notes", "From now on Omar writes the release notes"),
    ("Die Kurse leitet Jan", "Ups, die Kurse leitet Ole"),
    ("Der Laden öffnet um 8 Uhr", "Der Laden öffnet erst um 9 Uhr"),
]
OTHERS = [
    ("Production uses Postgres 14", "Correction: staging uses Postgres 16"),
    ("The team uses Postgres 14", "The team now also uses Redis 7"),
    ("The API port is 8080", "The API timeout is now 30 s"),
    ("We use Postgres 14", "We use Postgres 14, not MySQL"),
    ("The team uses Postgres 14", "As of now we use Postgres 14"),
    ("Do not use tabs in Python files", "Use tabs in Makefiles, not spaces"),
    ("We use Postgres 14", "We use Postgres 16"),
    ("", "Correction: we use Postgres 16"),
    ("The API port is 8080", "Is the API port now 8081?"),
    ("Backups are kept in Paris", "Paris is not the town where backups fail, Lyon is"),
    ("The lexer lives in src/lex.c", "the parser moved to core/parse.c"),
    ("Ida writes the release notes", "From now on Omar writes the minutes"),
    ("Ida writes the release notes", "Ida now writes the release notes on Monday and Omar reads them"),
    ("客服电话周三开放", "发票改为周六寄出"),
]


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_plain_correction_is_recognised(old: str, new: str) -> None:
    assert corrects(new, old)
    assert supersedes(new, old)


@pytest.mark.parametrize(("old", "new"), OTHERS)
def test_what_is_about_something_else_or_says_so_with_no_word_is_none(old: str, new: str) -> None:
    assert not corrects(new, old)


def test_of_many_near_pairs_few_are_taken_for_corrections() -> None:
    near = sets.near_pairs()
    assert sum(corrects(new, old) for old, new in near) <= 0.02 * len(near)
    pairs = sets.corrections()
    assert sum(corrects(pair.new, pair.old) for pair in pairs) >= 0.9 * len(pairs)


def test_the_newer_goes_first_unless_the_older_value_is_asked_for() -> None:
    texts = [("Build the parser with make 14", 1), ("The lexer is slow", 5), ("Build the parser with make 16", 9)]
    assert in_order(texts) == [2, 0, 1]
    assert in_order(texts, "make 14") == [0, 1, 2]
