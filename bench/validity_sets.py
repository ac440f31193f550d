"""The texts of `python -m bench.validity`: corrections and near pairs, and prompts with and without a fitting entry.

They are made from templates with a fixed seed, so that every run has the same ones. They were written after the first
version of what they measure, and words that recognise a correction were improved on them: a set of somebody else's says
more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SEED = 20_261_118
PAIRS = 200


class Pair(NamedTuple):
    """An old text and a later one, and a question whose answer is in the later."""

    domain: str
    language: str
    old: str
    new: str
    question: str


class Subject(NamedTuple):
    """A fact with a value, the ways to correct it, and a question about it."""

    domain: str
    language: str
    fact: str  # with {v}
    corrections: tuple[str, ...]  # with {a}, the old value, and {b}, the new one
    question: str
    values: tuple[str, ...]


SUBJECTS = (
    Subject(
        "databases",
        "en",
        "The orders service uses Postgres {v}",
        (
            "Correction: the orders service uses Postgres {b}, not {a}",
            "The orders service now uses Postgres {b}",
            "The orders service has moved to Postgres {b}",
            "The orders service uses Postgres {b} instead of {a} since the upgrade",
        ),
        "Which Postgres does the orders service use?",
        ("12", "13", "14", "15", "16", "17"),
    ),
    Subject(
        "databases",
        "en",
        "Sessions are kept in {v}",
        (
            "Sessions are now kept in {b}",
            "I was wrong: sessions are kept in {b}",
            "Sessions are no longer kept in {a}, they are kept in {b}",
        ),
        "Where are sessions kept?",
        ("Redis", "Memcached", "Valkey", "DynamoDB"),
    ),
    Subject(
        "tools",
        "en",
        "We build the frontend with {v}",
        (
            "We build the frontend with {b} now",
            "Correction: we build the frontend with {b}",
            "We build the frontend with {b}, not with {a}",
            "We switched to {b} to build the frontend",
        ),
        "What do we build the frontend with?",
        ("webpack", "Vite", "esbuild", "Rollup", "Parcel"),
    ),
    Subject(
        "tools",
        "en",
        "The linter of this repository is {v}",
        (
            "The linter of this repository is {b} now, because {a} was too slow",
            "The linter of this repository is {b} rather than {a}",
            "Corrected: the linter of this repository is {b}",
        ),
        "Which linter does this repository have?",
        ("flake8", "ruff", "pylint", "oxlint"),
    ),
    Subject(
        "people",
        "en",
        "The owner of the billing module is {v}",
        (
            "The owner of the billing module is now {b}",
            "The owner of the billing module is {b}, no longer {a}",
            "Correction: the owner of the billing module is {b}",
        ),
        "Who owns the billing module?",
        ("Ana", "Bo", "Chandra", "Dmitri", "Emre"),
    ),
    Subject(
        "schedule",
        "en",
        "Releases go out on {v}",
        (
            "Releases go out on {b} from now on",
            "Releases go out on {b} instead of {a}",
            "Correction: releases go out on {b}, not on {a}",
        ),
        "On which day do releases go out?",
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    ),
    Subject(
        "settings",
        "en",
        "The API listens on port {v}",
        (
            "The API now listens on port {b}",
            "Correction: the API listens on port {b}",
            "The API listens on port {b}, not {a}",
            "The API listens on port {b} after the gateway change, no longer on {a}",
        ),
        "On which port does the API listen?",
        ("8080", "8081", "9000", "9443", "3000"),
    ),
    Subject(
        "databases",
        "de",
        "Der Bestelldienst nutzt Postgres {v}",
        (
            "Korrektur: der Bestelldienst nutzt Postgres {b}, nicht {a}",
            "Der Bestelldienst nutzt jetzt Postgres {b}",
            "Der Bestelldienst nutzt inzwischen Postgres {b}",
            "Der Bestelldienst nutzt Postgres {b} statt {a}",
        ),
        "Welches Postgres nutzt der Bestelldienst?",
        ("12", "13", "14", "15", "16", "17"),
    ),
    Subject(
        "tools",
        "de",
        "Die Oberfläche wird mit {v} gebaut",
        (
            "Die Oberfläche wird jetzt mit {b} gebaut",
            "Die Oberfläche wird nicht mehr mit {a}, sondern mit {b} gebaut",
            "Berichtigung: die Oberfläche wird mit {b} gebaut",
        ),
        "Womit wird die Oberfläche gebaut?",
        ("webpack", "Vite", "esbuild", "Rollup"),
    ),
    Subject(
        "people",
        "de",
        "Für die Abrechnung ist {v} zuständig",
        (
            "Für die Abrechnung ist jetzt {b} zuständig",
            "Für die Abrechnung ist {b} zuständig, nicht mehr {a}",
            "Korrektur: für die Abrechnung ist {b} zuständig",
        ),
        "Wer ist für die Abrechnung zuständig?",
        ("Anja", "Bernd", "Cem", "Doris"),
    ),
    Subject(
        "schedule",
        "de",
        "Ausgeliefert wird am {v}",
        (
            "Ausgeliefert wird ab sofort am {b}",
            "Ausgeliefert wird am {b} statt am {a}",
            "Ausgeliefert wird am {b}, nicht am {a}",
        ),
        "Wann wird ausgeliefert?",
        ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag"),
    ),
    Subject(
        "settings",
        "de",
        "Die Schnittstelle hört auf Port {v}",
        (
            "Die Schnittstelle hört jetzt auf Port {b}",
            "Korrektur: die Schnittstelle hört auf Port {b}",
            "Die Schnittstelle hört auf Port {b}, nicht auf {a}",
        ),
        "Auf welchem Port hört die Schnittstelle?",
        ("8080", "8081", "9000", "9443"),
    ),
    Subject(
        "databases",
        "es",
        "El servicio de pedidos usa Postgres {v}",
        (
            "Corrección: el servicio de pedidos usa Postgres {b}, no {a}",
            "El servicio de pedidos ahora usa Postgres {b}",
            "El servicio de pedidos usa Postgres {b} en vez de {a}",
            "El servicio de pedidos usa Postgres {b}, ya no Postgres {a}",
        ),
        "¿Qué Postgres usa el servicio de pedidos?",
        ("12", "13", "14", "15", "16", "17"),
    ),
    Subject(
        "tools",
        "es",
        "La interfaz se compila con {v}",
        (
            "La interfaz ahora se compila con {b}",
            "La interfaz ya no se compila con {a}, se compila con {b}",
            "Corrección: la interfaz se compila con {b}",
        ),
        "¿Con qué se compila la interfaz?",
        ("webpack", "Vite", "esbuild", "Rollup"),
    ),
    Subject(
        "people",
        "es",
        "La responsable de facturación es {v}",
        (
            "La responsable de facturación ahora es {b}",
            "La responsable de facturación es {b}, ya no {a}",
            "Corrección: la responsable de facturación es {b}",
        ),
        "¿Quién es la responsable de facturación?",
        ("Ana", "Berta", "Carmen", "Diana"),
    ),
    Subject(
        "schedule",
        "es",
        "Las versiones salen el {v}",
        (
            "Las versiones salen el {b} a partir de ahora",
            "Las versiones salen el {b} en lugar del {a}",
            "Corrección: las versiones salen el {b}",
        ),
        "¿Qué día salen las versiones?",
        ("lunes", "martes", "miércoles", "jueves", "viernes"),
    ),
    Subject(
        "settings",
        "es",
        "La API escucha en el puerto {v}",
        (
            "La API ahora escucha en el puerto {b}",
            "Corrección: la API escucha en el puerto {b}",
            "La API escucha en el puerto {b}, no en el {a}",
        ),
        "¿En qué puerto escucha la API?",
        ("8080", "8081", "9000", "9443"),
    ),
)

# Pairs that look like corrections and are none: another subject, another attribute, an addition, a restatement, a log.
NEAR: tuple[tuple[str, str], ...] = (
    ("Production uses Postgres {a}", "Staging now uses Postgres {b}"),
    ("The orders service uses Postgres {a}", "Correction: the search service uses Postgres {b}"),
    ("The API listens on port {a}", "The API now answers within {b} ms"),
    ("We use Postgres {a} for orders", "We now also use Redis {b} for the queue"),
    ("The owner of billing is {n}", "The owner of search is now {m}"),
    ("Releases go out on {d}", "Backups now run on {e}"),
    ("On Windows the cache lives in folder {a}", "On Linux the cache now lives in folder {b}"),
    ("Build {a} took 9 minutes", "Build {b} took 11 minutes"),
    ("The parser test fails with code {a}", "The lexer test fails with code {b} now"),
    ("We use Postgres {a}, not MySQL", "We use Postgres {a} and not MariaDB"),
    ("{n} reviews the parser", "{m} reviews the lexer from now on"),
    ("The timeout of the gateway is {a} s", "The retry limit of the gateway is now {b}"),
    ("Version {a} added casts", "Version {b} added generics"),
    ("The team meets on {d}", "The team also meets on {e} now"),
    ("The docs are built with Sphinx {a}", "The docs are now checked with Vale {b}"),
    ("Die Produktion nutzt Postgres {a}", "Die Testumgebung nutzt jetzt Postgres {b}"),
    ("Für die Abrechnung ist {n} zuständig", "Für die Suche ist jetzt {m} zuständig"),
    ("Die Schnittstelle hört auf Port {a}", "Die Schnittstelle antwortet jetzt in {b} ms"),
    ("Wir nutzen Redis {a} für Sitzungen", "Wir nutzen jetzt auch Kafka {b} für Ereignisse"),
    ("Producción usa Postgres {a}", "Pruebas ahora usa Postgres {b}"),
    ("La responsable de facturación es {n}", "La responsable de búsqueda ahora es {m}"),
    ("La API escucha en el puerto {a}", "La API ahora responde en {b} ms"),
    ("Usamos Redis {a} para sesiones", "Ahora también usamos Kafka {b} para eventos"),
    ("The lexer has {a} tests", "Correction: the parser has {b} tests"),
    ("Do not call close() from a callback", "Call open() from a thread, not from a callback"),
)
NUMBERS = ("12", "14", "16", "18", "21", "30", "45", "64", "80", "99")
NAMES = ("Ana", "Bo", "Chandra", "Dmitri", "Emre", "Fatima")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


def corrections() -> list[Pair]:
    chosen = random.Random(SEED)
    pairs: dict[tuple[str, str], Pair] = {}
    while len(pairs) < PAIRS:
        subject = chosen.choice(SUBJECTS)
        old, new = chosen.sample(subject.values, 2)
        text = chosen.choice(subject.corrections).format(a=old, b=new)
        fact = subject.fact.format(v=old)
        pairs.setdefault((fact, text), Pair(subject.domain, subject.language, fact, text, subject.question))
    return list(pairs.values())


def near_pairs() -> list[tuple[str, str]]:
    chosen = random.Random(SEED + 1)
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < PAIRS:
        old, new = chosen.choice(NEAR)
        a, b = chosen.sample(NUMBERS, 2)
        n, m = chosen.sample(NAMES, 2)
        d, e = chosen.sample(DAYS, 2)
        values = {"a": a, "b": b, "n": n, "m": m, "d": d, "e": e}
        pairs[old.format(**values), new.format(**values)] = None
    return list(pairs)


# --- unasked recall ---------------------------------------------------------------------------------------------------

# What a project may know of a thing, and what may be asked for: the prompt names the thing and not the fact.
THINGS = (
    *("orders table", "billing webhook", "invoice exporter", "login form", "search index", "image resizer"),
    *("payment gateway", "audit trail", "session cache", "release script", "mobile client", "report scheduler"),
    *("customer importer", "tax calculator", "email templates", "rate limiter", "feature flags", "backup job"),
    *("currency converter", "address parser", "coupon engine", "warehouse sync", "chat widget", "photo gallery"),
    *("permission matrix", "onboarding wizard", "translation files", "checkout page", "refund flow", "stock alerts"),
    *("sitemap generator", "calendar feed", "ticket printer", "barcode scanner", "password reset", "trial banner"),
    *("usage meter", "partner portal", "shipping labels", "loyalty points"),
)
FACTS = (
    "The {t} must not be changed without telling the finance team first",
    "The {t} breaks when two workers run at the same time",
    "For the {t} we keep the old behaviour behind a switch until spring",
    "The {t} has no tests; try it by hand on the staging machine",
    "{n} knows most about the {t}",
)
PROMPTS = (
    "Please add logging to the {t}",
    "The {t} is slow, can you find out why?",
    "Refactor the {t} into smaller functions",
    "Write tests for the {t}",
    "Fix the crash in the {t} when the input is empty",
)
# Prompts about things that the project knows nothing of, and prompts about nothing.
STRANGE = (
    *("dark mode toggle", "keyboard shortcuts", "video player", "weather banner", "map overlay", "voice input"),
    *("print stylesheet", "emoji picker", "drag handle", "color palette", "zoom control", "font loader"),
    *("sound effects", "screen reader labels", "ruler tool", "pixel shader", "physics loop", "chess board"),
    *("recipe list", "music sorter", "particle system", "terrain mesh", "sprite sheet", "score board"),
    *("spell checker", "crossword grid", "piano roll", "star chart", "tide table", "bird counter"),
)
PLAIN = ("continue", "yes, go on", "thanks, that looks good", "run it again", "explain the last error", "commit this")


class Prompt(NamedTuple):
    text: str
    fits: str  # the entry that fits; empty where none does


def known_facts() -> list[str]:
    """One fact about each thing."""
    chosen = random.Random(SEED + 2)
    return [chosen.choice(FACTS).format(t=thing, n=chosen.choice(NAMES)) for thing in THINGS]


def prompts() -> list[Prompt]:
    """As many with a fitting entry as without."""
    fitting = [
        Prompt(text.format(t=thing), fact)
        for thing, fact in zip(THINGS, known_facts(), strict=True)
        for text in PROMPTS
    ][:PAIRS]
    strange = [Prompt(text.format(t=thing), "") for thing in STRANGE for text in PROMPTS]
    strange += [Prompt(text, "") for text in PLAIN] * 10
    return fitting + strange[:PAIRS]


WORDS = (
    *("parser", "lexer", "token", "module", "import", "class", "method", "branch", "merge", "review", "deploy"),
    *("server", "client", "request", "answer", "header", "cookie", "field", "column", "row", "query", "index", "lock"),
    *("thread", "queue", "worker", "timer", "logger", "metric", "alert", "graph", "chart", "widget", "button", "page"),
    *("slow", "fast", "empty", "broken", "missing", "double", "hidden", "stale", "large", "small", "tests", "crash"),
)


def filler(count: int) -> Iterator[str]:
    """Notes of a large project."""
    chosen = random.Random(SEED + 3)
    for number in range(count):
        a, b, c, d, e, f, g = chosen.sample(WORDS, 7)
        yield f"The {a} {b} of ticket {number} {c} the {d} {e}: {f} {g}"


def by_language(pairs: Sequence[Pair]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[pair.language] = counts.get(pair.language, 0) + 1
    return counts
