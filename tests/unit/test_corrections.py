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
    ("The API rate limit is 100 requests per minute", "The API rate limit was bumped to 250 requests per minute"),
    ("Für Logs nehmen wir Loki", "Für Logs nehmen wir kein Loki mehr, sondern Elasticsearch"),
    ("La reunión diaria es a las nueve", "Me confundí: la reunión diaria es a las diez"),
    ("Сервер стоит в Москве", "Сервер переехал в Казань"),
    ("Мы используем Python 3.9", "Мы обновились до Python 3.12"),
    ("我们的数据库是 MySQL 5.7", "数据库已经升级成 MySQL 8.0 了"),
    ("If the build fails, page Ann", "If the build fails, page Bob instead of Ann"),
    ('The mode is "lax"', 'The mode is now "strict", not "lax"'),
    ("The job runs before midnight", "Correction: the job runs after midnight"),
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
    # Two dates, tenants, steps, versions and environments: what one has is not what the other had.
    ("The release on 12 March ships the parser", "The release on 19 March ships the printer, not the parser"),
    ("The European tenant stores data in Frankfurt", "The American tenant stores data in Ohio, not in Frankfurt"),
    ("Step 1: switch reads to the replica", "Step 2: switch writes to the replica, not reads"),
    ("La versión 3 sale en mayo", "La versión 4 sale ahora en julio, no en mayo"),
    ("Релиз 2.1 выходит в мае", "Релиз 2.2 теперь выходит в июле, и не в мае"),
    ("Das Release 2.1 kommt am 3. Mai", "Das Release 2.2 kommt jetzt am 10. Juni"),
    ("测试环境用的是 MySQL 5.7", "生产环境现在用的是 MySQL 8.0"),
    ("El servidor A tiene 8 GB", "El servidor B ahora tiene 16 GB"),
    # Before and after in one plan, and what is not so yet.
    ("Vor dem Umzug stehen die Server in Köln", "Nach dem Umzug stehen die Server in Bonn, nicht in Köln"),
    ("Before the merge run the unit tests", "After the merge run the integration tests, not the unit tests"),
    # What is quoted.
    ("Deploys need two approvals", "The old rule said: 'deploys need three approvals, not two'"),
    ("We use Postgres 14", 'Rejected: "we should use MySQL now instead of Postgres 14"'),
    ("Wir nutzen Postgres 14", "Anna schrieb »wir nutzen jetzt Postgres 16, nicht 14« und nahm es zurück"),
    ("部署端口是8080", "旧规则写着「部署端口现在是9090，不是8080」"),  # noqa: RUF001 - Chinese
    ("The port of the API is 8080", "If we move, the port of the API would be 443 instead of 8080"),
    ("Wir nutzen Postgres 14", "Wenn wir umziehen, nutzen wir Postgres 16 statt Postgres 14"),
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
