"""Sets of texts and questions in one neutral form, and how LoCoMo is brought into it.

units.jsonl, one text a line:    set, id, text, and where known speaker, time (ISO 8601), session, order
queries.jsonl, one question a line:    set, query, evidence (ids of units), and where known type
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


class Unit(NamedTuple):
    id: str
    text: str
    speaker: str = ""
    time: str = ""
    session: str = ""
    order: int = 0

    def told(self) -> str:
        """The text as it is kept, whoever keeps it: who speaks is part of it. No store keeps NUL characters."""
        text = self.text.replace("\0", " ")
        return f"{self.speaker}: {text}" if self.speaker else text


class Query(NamedTuple):
    query: str
    evidence: frozenset[str]
    type: str = ""


class Set(NamedTuple):
    name: str
    units: list[Unit]
    queries: list[Query]


def neutral(units: Path, queries: Path) -> list[Set]:
    sets: dict[str, Set] = {}
    for record in _lines(units):
        one = sets.setdefault(str(record["set"]), Set(str(record["set"]), [], []))
        plain = {name: str(record.get(name) or "") for name in ("id", "text", "speaker", "time", "session")}
        one.units.append(Unit(**plain, order=int(record.get("order") or 0)))
    for record in _lines(queries):
        evidence = frozenset(map(str, record["evidence"]))
        sets[str(record["set"])].queries.append(Query(record["query"], evidence, str(record.get("type") or "")))
    return list(sets.values())


def locomo(path: Path) -> list[Set]:
    """The ten conversations of LoCoMo, a unit a turn. Questions without any known evidence turn are left out."""
    return [_conversation(str(at), record) for at, record in enumerate(json.loads(path.read_text(encoding="utf-8")))]


def _conversation(name: str, record: dict[str, Any]) -> Set:
    talk = record["conversation"]
    units: list[Unit] = []
    numbers = sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key)))
    for number in numbers:
        said = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")  # noqa: DTZ007
        time = f"{said.isoformat()}+00:00"
        for order, turn in enumerate(talk[f"session_{number}"]):
            units.append(Unit(turn["dia_id"], turn["text"], turn["speaker"], time, f"session-{number}", order))
    known = {unit.id for unit in units}
    queries = []
    for asked in record["qa"]:
        named = (f"D{int(one)}:{int(two)}" for text in asked["evidence"] for one, two in _EVIDENCE.findall(text))
        if evidence := frozenset(named) & known:
            queries.append(Query(asked["question"], evidence, TYPES[asked["category"]]))
    return Set(name, units, queries)


def write(sets: list[Set], units: Path, queries: Path) -> None:
    """The neutral form of sets, for other programs."""
    with units.open("w", encoding="utf-8") as file:
        for one in sets:
            file.writelines(json.dumps({"set": one.name, **unit._asdict()}) + "\n" for unit in one.units)
    with queries.open("w", encoding="utf-8") as file:
        for one in sets:
            for asked in one.queries:
                record = {"set": one.name, "query": asked.query, "evidence": sorted(asked.evidence), "type": asked.type}
                file.write(json.dumps(record) + "\n")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)
