"""Facts: lines of a conversation that must survive a fold, extracted without a model.

Requests, rules, decisions, open items, figures, files and ids are taken from the messages of the user and the model and
from its tool calls. Of tool results, the failures count: the rest is data of unknown origin, and can be brought back in
full.

The summary without a model is made of these facts: within a budget, the newest first to be kept. Nothing is rephrased.
Each kind of fact has a share of the budget; the others may use what it leaves. Facts that do not fit are counted, so
that the reader knows there is more to search for. A line that is in every request anyway, such as one of the notepad,
is not repeated: it would take the place of one that is not.

Checks search for the facts of the messages before a fold in the request that would be sent after it, and the missing
ones are added. Every summary is judged by the same checks, whether a model or Limpet wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from limpet import limits
from limpet.text import tokens
from limpet.window.messages import ASSISTANT, USER, Call, Message, Result, Text
from limpet.window.plan.actions import COMMAND, EFFECT, READ, ToolAction, actions

ASKS, RULES, DECISIONS, OPEN, FIGURES = "asks", "rules", "decisions", "open", "figures"
TASKS, FAILURES, COMMANDS, CHANGES = "tasks", "failures", "commands", "changes"
FILES, IDS, NUMBERS, CLOSED = "files", "ids", "numbers", "closed"
KINDS = (ASKS, RULES, DECISIONS, OPEN, FIGURES, TASKS, FAILURES, COMMANDS, CHANGES, FILES, IDS, NUMBERS)
LINE_MAX = 300  # characters kept of one line
ASK_MAX = 400  # characters kept of one request
FAILED = "- failed: "  # the prefix of failures in the ledger of a task
_TASK = re.compile(r"\[(?:Task|Cancelled): ")
_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)])?\s*\[( |x|X)\]\s*(\S.*)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)")
_OPEN = re.compile(
    r"\b(?:todo|fixme|to do|still (?:open|missing|needs?|have to|has to|to)|remaining|next(?: step)?s?:|"
    r"open (?:question|item|point)s?|follow[- ]up|not (?:yet )?(?:done|finished)|pending|waiting for|blocked)\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decid\w+|decision|chose|choose|chosen|agreed|settled on|going with|opted|instead of|rather than|"
    r"(?:we|i)(?:'ll| will| are going to) (?:use|keep|go|take|drop|do)|approved|rejected)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:must(?: not|n't)?|never|always|do not|don't|only ever|required|forbidden|not allowed|make sure|under no|"
    r"shall|may not|prefer|policy|rule)\b",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"(?:\$\{\w+\}|~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w(?::\d+(?:-\d+)?)?"
    r"|\b[\w-]+\.(?:py|pyi|ts|tsx|js|jsx|go|rs|java|kt|c|h|cpp|cs|rb|php|sql|sh|md|txt|json|ya?ml|toml|ini|cfg|csv|xml"
    r"|html|css|lock|log|ipynb|proto|tf)\b(?::\d+(?:-\d+)?)?"
)
_URL = re.compile(r"\b[a-z]{2,8}://[^\s<>\"')\]]+")
_NAME = re.compile(r"(?<![\w/.-])#?[A-Za-z0-9][\w-]{4,63}(?![\w/-])|#\d+\b")
_NUMBER = re.compile(r"[$€£]?\b\d[\d,.:]*\d(?:\s?%|[A-Za-z]{1,3}\b)?|\b\d+\s?%")
_DIGIT = re.compile(r"\d")

Facts = dict[str, list[str]]


def gather(group: Sequence[Message]) -> Facts:
    """The facts of one group."""
    facts: Facts = {}
    for message in group:
        if message.role not in (USER, ASSISTANT):
            continue
        text = message.text()
        if message.role == USER:
            if _TASK.match(text):
                _add(facts, TASKS, text.split("\n", 1)[0])
                text = _without_failures(facts, text)
            elif text.strip():
                _add(facts, ASKS, _short(" ".join(text.split()), ASK_MAX))
        _prose(facts, text)
        if message.role == USER and len(text) <= ASK_MAX:
            facts.pop(FIGURES, None)  # the request itself contains them
    for action in actions(group):
        _add_action(facts, action)
    return facts


def _without_failures(facts: Facts, text: str) -> str:
    """A finished task without the failures in its ledger: those are words of tools, which must not become rules,
    decisions or figures because of their wording."""
    lines = text.split("\n")
    failed = [line for line in lines if line.startswith(FAILED)]
    for line in failed:
        _add(facts, FAILURES, _short(line.removeprefix(FAILED), LINE_MAX))
    return "\n".join(line for line in lines if line not in failed)


def merge(many: Iterable[Mapping[str, Sequence[str]]]) -> Facts:
    """Facts of several groups in order. A repeated line counts as new; a closed item is removed from the open ones."""
    kinds: dict[str, dict[str, None]] = {}
    for facts in many:
        for kind, lines in facts.items():
            merged = kinds.setdefault(kind, {})
            for line in lines:
                merged.pop(line, None)
                merged[line] = None
        for done in facts.get(CLOSED, ()):
            kinds.get(OPEN, {}).pop(done, None)
    return {kind: _newest(kind, list(lines)) for kind, lines in kinds.items() if kind != CLOSED and lines}


def _newest(kind: str, lines: list[str]) -> list[str]:
    """The lines to keep. The first request is what all the work is for, so it stays."""
    most = limits.FACTS_KEPT
    if len(lines) <= most:
        return lines
    return [lines[0], *lines[1 - most :]] if kind == ASKS else lines[-most:]


def from_json(value: object) -> Facts:
    """Facts as a fold stores them."""
    record: Mapping[str, Any] = value if isinstance(value, dict) else {}
    return {kind: [str(line) for line in record[kind]] for kind in KINDS if isinstance(record.get(kind), list)}


def _prose(facts: Facts, text: str) -> None:
    code = False
    for line in text.split("\n"):
        plain = line.strip()
        if plain.startswith("```"):
            code = not code
        elif plain and not code:
            for sentence in _SENTENCE.split(plain) if len(plain) > LINE_MAX // 2 else (plain,):
                _sentence(facts, sentence)


def _sentence(facts: Facts, text: str) -> None:
    if box := _BOX.match(text):
        _add(facts, OPEN if box[1] == " " else CLOSED, _short(box[2].strip(), LINE_MAX))
    else:
        for kind, cue in ((OPEN, _OPEN), (DECISIONS, _DECISION), (RULES, _RULE)):
            if cue.search(text):
                _add(facts, kind, _short(text, LINE_MAX))
                break
        else:
            if _NUMBER.search(text) or (_DIGIT.search(text) and _names(text)):
                _add(facts, FIGURES, _short(text, LINE_MAX))
    _tokens(facts, text)


def _tokens(facts: Facts, text: str) -> None:
    if "/" in text or "." in text:
        if "://" in text:
            for url in _URL.findall(text):
                _add(facts, IDS, url.rstrip(".,;"))
            text = _URL.sub(" ", text)
        for path in _FILE.findall(text):
            _add(facts, FILES, path)
        text = _FILE.sub(" ", text)
    if _DIGIT.search(text):
        for name in _names(text):
            _add(facts, IDS, name)
        for number in _NUMBER.findall(text):
            _add(facts, NUMBERS, number)


def _names(text: str) -> list[str]:
    """Ids: words that mix letters and digits, and numbers with a # before them."""
    return [
        name
        for name in _NAME.findall(text)
        if name[0] == "#" or (any(c.isdigit() for c in name) and any(c.isalpha() for c in name))
    ]


def _add_action(facts: Facts, action: ToolAction) -> None:
    if action.kind == COMMAND:
        _add(facts, COMMANDS, action.target)
    elif action.kind in (READ, EFFECT):
        _add(facts, FILES if action.kind == READ else CHANGES, action.target)
    if action.failure:
        _add(facts, FAILURES, f"{action.subject}: {action.failure}")


def _add(facts: Facts, kind: str, line: str) -> None:
    lines = facts.setdefault(kind, [])
    if line not in lines:
        lines.append(line)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def plain(text: str) -> str:
    """A text as it is compared: without case, extra whitespace, and the ellipsis of one that was cut."""
    return " ".join(text.rstrip("…").split()).casefold()


# --- the summary ------------------------------------------------------------------------------------------------------

# Kind of fact: its heading, and its guaranteed percentage of the budget. The rest of the budget is given out in this
# order: first what an agent would get wrong without, last what it could look up.
SECTIONS: Mapping[str, tuple[str, int]] = {
    RULES: ("Rules", 18),
    OPEN: ("Open", 14),
    DECISIONS: ("Decided", 16),
    ASKS: ("Asked for", 14),
    FIGURES: ("Figures", 14),
    FAILURES: ("Failed", 6),
    TASKS: ("Tasks", 6),
    CHANGES: ("Changed", 4),
    FILES: ("Files", 4),
    IDS: ("Names and ids", 3),
    COMMANDS: ("Commands", 1),
}
ORDER = (ASKS, RULES, DECISIONS, OPEN, FIGURES, TASKS, FAILURES, CHANGES, COMMANDS, FILES, IDS)
IN_A_ROW = (FILES, IDS)  # names, listed in one line
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])?\s*(?:\[[ xX]\])?\s*")
FENCE = "```"
REPEAT_MIN_CHARS = 16  # of a line that counts as a repetition: shorter ones are headings and common words


def summarise(facts: Mapping[str, Sequence[str]], budget: int) -> str:
    """The facts as text of at most `budget` tokens."""
    chosen, left_out = _chosen(facts, budget - 40)  # for the headings and the last line
    parts = [_part(kind, chosen[kind]) for kind in ORDER if chosen.get(kind)]
    if left_out:
        names = ", ".join(f"{count} {SECTIONS[kind][0].lower()}" for kind, count in left_out.items())
        parts.append(f"Not repeated here, but kept and searchable: {names}.")
    text = "\n".join(parts)
    return tokens.cut(text, budget)[0] if tokens.count(text) > budget else text


def besides(facts: Mapping[str, Sequence[str]], standing: str) -> Facts:
    """The facts that are not in the text that every request contains."""
    present = plain(standing)
    return {kind: [line for line in lines if plain(line) not in present] for kind, lines in facts.items()}


def shortened(text: str, standing: str, budget: int) -> str:
    """A model's summary cut to the budget. Lines that every request contains anyway are dropped first."""
    if tokens.count(text) <= budget:
        return text
    present, code = plain(standing), False
    lines: list[str] = []
    for line in text.split("\n"):
        code ^= line.lstrip().startswith(FENCE)
        bare = plain(_BULLET.sub("", line, count=1))
        if code or len(bare) < REPEAT_MIN_CHARS or bare not in present:
            lines.append(line)
    return tokens.cut("\n".join(lines), budget)[0]


def _part(kind: str, lines: Sequence[str]) -> str:
    heading = SECTIONS[kind][0]
    if kind in IN_A_ROW:
        return f"{heading}: {', '.join(lines)}"
    return "\n".join([f"{heading}:", *(f"- {line}" for line in lines)])


def _chosen(facts: Mapping[str, Sequence[str]], budget: int) -> tuple[dict[str, list[str]], dict[str, int]]:
    """The facts that fit, each kind in its own order, and how many of each kind do not."""
    used: set[str] = set()
    waiting: dict[str, list[tuple[str, int]]] = {}
    for kind in SECTIONS:
        fresh = [line for line in facts.get(kind, ()) if line not in used]
        used.update(fresh)
        if kind == ASKS:
            fresh = fresh[1:] + fresh[:1]  # the first request is what all the work is for, so it counts as the newest
        waiting[kind] = [(line, tokens.count(line) + 2) for line in fresh]  # for the dash and the line end
    taken: dict[str, list[str]] = {kind: [] for kind in SECTIONS}
    left = budget
    for kind, (_, share) in SECTIONS.items():
        left -= _take(waiting[kind], taken[kind], min(left, budget * share // 100))
    for kind in SECTIONS:
        left -= _take(waiting[kind], taken[kind], left)
    chosen = {kind: set(lines) for kind, lines in taken.items()}
    ordered = {kind: [line for line in facts.get(kind, ()) if line in chosen[kind]] for kind in taken}
    return ordered, {kind: len(lines) for kind, lines in waiting.items() if lines}


def _take(waiting: list[tuple[str, int]], taken: list[str], room: int) -> int:
    """Move as many lines as there is room for, the newest first, and return their cost."""
    spent = 0
    while waiting and spent + waiting[-1][1] <= room:
        line, cost = waiting.pop()
        taken.append(line)
        spent += cost
    return spent


# --- checks -----------------------------------------------------------------------------------------------------------

ADDENDUM_HEADING = "Also said before:"
# In the order in which the budget is given out: lines before names, names before bare numbers.
CHECKED = (RULES, OPEN, DECISIONS, IDS, FILES, NUMBERS)
LABELS = {RULES: "rule", OPEN: "open", DECISIONS: "decided", IDS: "ids", FILES: "files", NUMBERS: "numbers"}


class Check(NamedTuple):
    kind: str
    text: str


class CheckReport(NamedTuple):
    total: int
    missing: tuple[Check, ...]

    @property
    def score(self) -> float:
        """The share of checks that passed; 1 if there were none."""
        return 1.0 if not self.total else 1 - len(self.missing) / self.total


def checks(facts: Mapping[str, Sequence[str]]) -> tuple[Check, ...]:
    return tuple(Check(kind, line) for kind in CHECKED for line in facts.get(kind, ()))


def run_checks(expected: Sequence[Check], window: str) -> CheckReport:
    """Search the window for each of them. Whitespace and case make no difference."""
    normalised = plain(window)
    return CheckReport(len(expected), tuple(check for check in expected if plain(check.text) not in normalised))


def addendum(missing: Sequence[Check], budget: int) -> str:
    """The missing texts that fit into the budget: lines one by one, names in a row."""
    parts: list[str] = []
    left = budget - tokens.count(ADDENDUM_HEADING) - 1
    for kind in CHECKED:
        lines = [check.text for check in missing if check.kind == kind]
        in_a_row = kind in (IDS, FILES, NUMBERS)
        chosen: list[str] = []
        for line in reversed(lines):
            cost = tokens.count(line) + (2 if in_a_row and chosen else 6)  # a comma, or the start of the line
            if cost > left:
                break
            left -= cost
            chosen.insert(0, line)
        if chosen and in_a_row:
            parts.append(f"- {LABELS[kind]}: {', '.join(chosen)}")
        else:
            parts += [f"- {LABELS[kind]}: {line}" for line in chosen]
    return "\n".join([ADDENDUM_HEADING, *parts]) if parts else ""


def words(messages: Iterable[Message]) -> str:
    """All text that a model reads in these messages."""
    return "\n".join(text for message in messages for text in _texts_of(message))


def _texts_of(message: Message) -> Iterable[str]:
    for part in message.parts:
        match part:
            case Text():
                yield part.text
            case Call():
                yield part.arguments
            case Result():
                yield from (inner.text for inner in part.parts if isinstance(inner, Text))
