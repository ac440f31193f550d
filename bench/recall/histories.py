"""Histories of a user and an assistant, made from the public data of PrefEval: `--histories path/to/its/repository`.

A set is one user: dozens of sessions in which preferences come up by the way, sessions about other things between them,
and instructions that were given once. Four types of questions:

preferences    what is asked later, where a preference that was told matters (the data's own questions)
instructions   a request to which an instruction of the user applies
several        two such requests at once, whose preferences were told in different sessions
order          in which order things were brought up

Even sets are to tune with, odd ones to report. No model wrote or judged anything here.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.recall.git import names, read
from bench.recall.sets import Query, Set, Unit
from limpet.recall.question import STOP

SETS, TOPIC_SESSIONS = 8, 2  # users; sessions of each about one topic of the data
ORDERS, SEVERAL = 12, 12  # questions of a user
PERSONAS, OTHERS = "implicit_preference/persona-driven/", "filtered_inter_turns.json"
_WORD = re.compile(r"[a-z]{4,}")
# What a user asks for once, and a request much later that it applies to.
INSTRUCTIONS = (
    ("Always give temperatures in Celsius, never in Fahrenheit.", "How warm does it get in Phoenix in July?"),
    ("When you show me code, always include type hints.", "Write a Python function that merges two lists."),
    ("From now on mention the version of every library you bring up.", "Which libraries should I use for charts?"),
    ("Please keep every answer about my thesis under a hundred words.", "Summarise the state of my thesis chapter."),
    ("Whenever I ask for a recipe, list the allergens first.", "How do I make a carrot cake?"),
    ("Use metric units in anything about cooking.", "How much flour goes into the pancakes?"),
    ("Always show dates as day, month, year.", "When is the application due?"),
    ("If I ask about a bug, give me the test that shows it first.", "The login form loses the cursor, can you fix it?"),
    ("Always quote prices with tax included.", "What would a new laptop cost me?"),
    ("Explain legal terms in plain words whenever we talk about the contract.", "What does clause nine oblige me to?"),
    ("When you recommend a book, say how many pages it has.", "What novel should I read next?"),
    ("Answer questions on Spanish grammar with three examples.", "When do I use the subjunctive?"),
    ("Always name a train connection before you propose a flight.", "How do I get to Lyon in May?"),
    ("Give me the source for every statistic you mention.", "How many people work from home these days?"),
    ("Write commit messages in the imperative.", "Draft a message for the change to the parser."),
    ("When I ask for workouts, leave out anything that needs equipment.", "What can I do for my back today?"),
    ("Sign e-mails to my landlord with my full name.", "Write to the landlord about the heating."),
    ("Always warn me if a plant is toxic to cats.", "Which plants do well in a dark hallway?"),
    ("Describe every chart in words too, I use a screen reader.", "Show how my savings grew this year."),
    ("When you plan my week, keep Friday afternoons free.", "Plan the rehearsals for next week."),
    ("Round amounts of money to whole euros.", "What did the kitchen come to in the end?"),
    ("Use the second person when you edit my guide.", "Rework the opening paragraph of the guide."),
    ("Always list the side effects when I ask about a medicine.", "Can I take ibuprofen with my tablets?"),
    ("Never use bullet points in texts for my blog.", "Write a post on the new trail."),
)
TOLD = ("{} Thanks.", "One thing before we go on: {}", "By the way: {}", "{} Can you remember that?")


def histories(repository: Path) -> list[Set]:
    files = [name for name in names(repository) if name.endswith(".json")]
    topics = [json.loads(read(repository, name)) for name in sorted(files) if PERSONAS in name]
    others = json.loads(read(repository, next(name for name in files if name.endswith(OTHERS))))
    return [_history(number, topics, others) for number in range(SETS)]


def _history(number: int, topics: list[list[Any]], others: list[Any]) -> Set:
    dice = random.Random(f"history {number}")
    first = number * TOPIC_SESSIONS
    told = [record for topic in topics for record in topic[first : first + TOPIC_SESSIONS]]
    sessions: list[tuple[Any, list[tuple[str, str]]]] = [(record, _turns(record["conversation"])) for record in told]
    sessions += [(None, [(turn["role"], turn["content"]) for turn in other["conversation"]]) for other in others]
    dice.shuffle(sessions)
    asked = dice.sample(INSTRUCTIONS, len(INSTRUCTIONS) // 2)
    for at, pair in zip(dice.sample(range(len(sessions)), len(asked)), asked, strict=True):
        turns = sessions[at][1]
        place = dice.randrange(0, len(turns) + 1, 2)
        turns[place:place] = [("user", dice.choice(TOLD).format(pair[0])), ("assistant", f"Noted. {pair[0]}")]
    return _asked(f"user-{number}", sessions, dict(asked), dice)


def _turns(conversation: dict[str, dict[str, str]]) -> list[tuple[str, str]]:
    pairs = [conversation[key] for key in sorted(conversation, key=int)]
    return [(role, pair[role]) for pair in pairs for role in ("user", "assistant") if pair.get(role)]


def _asked(name: str, sessions: list[Any], instructions: dict[str, str], dice: random.Random) -> Set:
    units: list[Unit] = []
    queries: list[Query] = []
    preferences: list[tuple[str, str]] = []  # a question, and the turn that holds its preference
    spoken: list[list[Unit]] = []  # the user's turns of a session with a preference
    for number, (record, turns) in enumerate(sessions):
        day = f"2025-{1 + number // 28:02}-{1 + number % 28:02}T10:00:00+00:00"
        mine = [Unit(f"{number}-{at}", text, role, day, f"s{number:03}", at) for at, (role, text) in enumerate(turns)]
        units += mine
        for unit in mine:
            for instruction, question in instructions.items():
                if unit.speaker == "user" and instruction in unit.text:
                    queries.append(Query(question, frozenset((unit.id,)), "instructions"))
        if record:
            own = [unit for unit in mine if unit.speaker == "user"]
            spoken.append(own)
            sought = set(_WORD.findall(record["preference"].lower()))
            holds = max(own, key=lambda unit: len(sought & set(_WORD.findall(unit.text.lower()))))
            preferences.append((record["question"], holds.id))
    queries += [Query(question, frozenset((id,)), "preferences") for question, id in preferences]
    for _ in range(SEVERAL):
        (one, here), (other, there) = dice.sample(preferences, 2)
        queries.append(Query(f"{one} {other}", frozenset((here, there)), "several"))
    often = Counter(word for unit in units for word in set(_WORD.findall(unit.text.lower())))
    queries += [_order(dice.choice(spoken), dice.choice(spoken), often) for _ in range(ORDERS)]
    return Set(name, units, [query for query in queries if query.query])


def _order(first: list[Unit], second: list[Unit], often: Counter[str]) -> Query:
    """Asks in which order three things came up: each named by the two rarest words that stand side by side."""
    chosen = list({unit.id: unit for unit in (*first[:2], second[-1])}.values())
    topics = []
    for unit in chosen:
        words = re.findall(r"[a-z]+", unit.text.lower())
        pairs = [(a, b) for a, b in pairwise(words) if _telling(a) and _telling(b)]
        if pairs:
            _, rarest = min((often[a] + often[b], (a, b)) for a, b in pairs)
            topics.append(" ".join(rarest))
    if len(topics) < len(chosen):
        return Query("", frozenset())
    asked = f"In what order did I bring up {', '.join(topics[:-1])} and {topics[-1]} with you?"
    return Query(asked, frozenset(unit.id for unit in chosen), "order")


def _telling(word: str) -> bool:
    return len(word) > 3 and word not in STOP
