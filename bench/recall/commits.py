"""A set per git repository: commits are asked for by their subjects, and the texts are their diffs.

`python -m bench.recall --commits path/to/repository …`. Numbers of pull requests are taken out of the subjects, since
no diff holds them. Repositories are split by their order: the first, third … to tune with, the others to report.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from bench.recall.git import MARK, git
from bench.recall.sets import Query, Set, Unit

COMMITS, ASKED = 1_200, 300  # of one repository, the newest that fit
DIFF_CHARS = 8_000  # of a text
LEAST_CHARS, LEAST_WORDS = 200, 4
_NUMBER = re.compile(r"\s*\(?#\d+\)?|\bgh-\d+:?\s*", re.IGNORECASE)
_NOISE = re.compile(r"^(?:merge|bump|release|version|revert|v?\d+\.)", re.IGNORECASE)


def diffs(repository: Path) -> Set:
    name = repository.parent.name if repository.name in ("repo", ".git") else repository.name
    log = git(repository, "log", "--no-merges", f"--max-count={3 * COMMITS}", "-p", "-U2", f"--format={MARK}%s%x1f")
    units: list[Unit] = []
    subjects: list[str] = []
    for record in log.split(MARK)[1:]:
        subject, _, diff = record.partition("\x1f")
        subject = _NUMBER.sub("", subject).strip()
        body = "\n".join(line for line in diff.strip().splitlines() if not line.startswith(("index ", "diff --git")))
        if len(body) < LEAST_CHARS or len(subject.split()) < LEAST_WORDS or _NOISE.match(subject) or subject in body:
            continue
        units.append(Unit(str(len(units)), body[:DIFF_CHARS]))
        subjects.append(subject)
        if len(units) == COMMITS:
            break
    chosen = random.Random(name).sample(range(len(units)), min(ASKED, len(units)))
    return Set(name, units, [Query(subjects[at], frozenset((str(at),))) for at in sorted(chosen)])
