"""Facts: lines of a conversation that must survive a fold, extracted without a model.

What the user says is kept word for word: short messages as they are, long ones sentence by sentence. It has the first
claim on the room, and its oldest sentences stay with its newest ones. Rules, decisions, open items, figures, names,
files and ids are taken from the messages of the user and the model and from its tool calls. Much of that is recognised
by structure, in any language: who speaks, lists, check boxes, quotations, capitals, digits of every script; cues.py
adds the words of twelve languages. Of tool results, the failures count: the rest is data of unknown origin, and can be
brought back in full.

The summary without a model is made of these facts: within a budget, the newest first to be kept. Nothing is rephrased.
Each kind of fact has a share of the budget; the others may use what it leaves. Sentences that say little which several
others do not say too come last: they may differ from those in a name. Facts that do not fit are counted, so that the
reader knows there is more to search for. A line that is in every request anyway, such as one of the notepad, is not
repeated: it would take the place of one that is not.

Checks search for the facts of the messages before a fold in the request that would be sent after it, and the missing
ones are added. Every summary is judged by the same checks, whether a model or Limpet wrote it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise

from limpet import limits
from limpet.light import Any, re
from limpet.record import NamedTuple
from limpet.text import tokens
from limpet.window.messages import ASSISTANT, USER, Call, Message, Result, Text
from limpet.window.plan import cues
from limpet.window.plan.actions import COMMAND, EFFECT, READ, ToolAction, actions

ASKS, RULES, DECISIONS, OPEN, FIGURES = "asks", "rules", "decisions", "open", "figures"
# Other sentences: the user's with a cue, with a figure or a name, and without any; the model's with a cue of a rule,
# with a name, the ends of its answers, and what else it said.
WISHES, DETAILS, STATEMENTS, NAMED, ANSWERS = "wishes", "details", "statements", "named", "answers"
ADVICE, REMARKS = "advice", "remarks"
TASKS, FAILURES, COMMANDS, CHANGES = "tasks", "failures", "commands", "changes"
FILES, IDS, NUMBERS, CLOSED = "files", "ids", "numbers", "closed"
KINDS = (
    *(ASKS, RULES, DECISIONS, OPEN, FIGURES, WISHES, DETAILS, STATEMENTS, ADVICE, NAMED, ANSWERS, REMARKS),
    *(TASKS, FAILURES, COMMANDS, CHANGES, FILES, IDS, NUMBERS),
)
LINE_MAX = 300  # characters kept of one line
ASK_MAX = 400  # characters of a request that is kept whole
OPENING_CHARS = 160  # of a longer one: its first sentences
SPLIT_CHARS = 150  # a longer line is read sentence by sentence
SPLIT_UNSPACED_CHARS = 60  # the same for Chinese and Japanese, which say as much in fewer characters
PASTED = 40  # sentences without a cue at each end of one message; what has more is mostly pasted data
# Lines that differ in nothing but digits: a few are facts, as the pressure of each pump. More of them with one number
# each count something up, as "go on with part 7"; still more are data.
FEW_ALIKE, MANY_ALIKE = 5, 60
FAILED = "- failed: "  # the prefix of failures in the ledger of a task
SAID_IN_TASK = "- the user said: "  # the prefix of the user's words in it
_TASK = re.compile(r"\[(?:Task|Cancelled): ")
_BOX = re.compile(r"\s*(?:[-*+•]|\d+[.)])?\s*(?:[\[\uff3b]([ \u3000xX])[\]\uff3d]|([☐⬜])|([☑☒✅✔✓]))\s*(\S.*)")
_ITEM = re.compile(r"\s*(?:[-*+•\u00b7\u2013]\s|\d{1,3}[.)\uff0e、]|[(\uff08]\d{1,3}[)\uff09]|[①-⑳])\s*\S")
_SENTENCE = re.compile(r"(?<=[.!?؟।॥\u06d4])\s+(?=\S)|(?<=[。\uff01\uff1f｡])(?=[^」』”\u2019\uff09)\s])\s*")
_QUOTED = re.compile("「[^」]{2,80}」|『[^』]{2,80}』|«[^»]{2,80}»|„[^“”]{2,80}[“”]|“[^”]{2,80}”|《[^》]{2,80}》")
_FILE_PATTERN = (
    r"(?:\$\{\w+\}|~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w(?::\d+(?:-\d+)?)?"
    r"|\b[\w-]+\.(?:py|pyi|ts|tsx|js|jsx|go|rs|java|kt|c|h|cpp|cs|rb|php|sql|sh|md|txt|json|ya?ml|toml|ini|cfg|csv|xml"
    r"|html|css|lock|log|ipynb|proto|tf)\b(?::\d+(?:-\d+)?)?"
)
_NAME_PATTERN = r"(?<![\w/.-])#?[^\W_][\w-]{4,63}(?![\w/-])|#\d+\b"
_URL = re.compile(r"\b[a-z]{2,8}://[^\s<>\"')\]\uff0c。、\uff1b\uff09」]+")
# A name may follow a letter beyond these directly, so names are then made of ASCII alone.
_TIGHT = re.compile("[^\x00-\u058f\u1e00-\u303f\ufb00-\U0010ffff]")
_FILE, _TIGHT_FILE = re.compile(_FILE_PATTERN), re.compile(_FILE_PATTERN, re.ASCII)
_NAME, _TIGHT_NAME = re.compile(_NAME_PATTERN), re.compile(_NAME_PATTERN, re.ASCII)
# Two digits of any script, one with a sign or a unit, and Chinese numerals with a unit.
_NUMBER = re.compile(
    r"[$€£¥₹₽₩]?(?<![A-Za-z0-9_])\d[\d,.:\u066b\u066c\uff0c\uff0e]*\d(?:\s?[%\u066a\uff05]|[A-Za-z]{1,3}\b)?"
    r"|(?<![A-Za-z0-9_])\d+\s?[%\u066a\uff05]"
    r"|\d\s?[年月日天時时分秒元円块個个件次倍人度]"
    r"|[一二三四五六七八九十百千万萬億亿零〇两兩]{2,}[年月日天小時时分秒毫元円块個个件次倍人度%]"
)
_REFERENCE = re.compile(r"📁 Output cached: [0-9a-f]{12,64} \([^)\n]*\)")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_CUED = {cues.OPEN: OPEN, cues.DECISION: DECISIONS, cues.RULE: RULES}

Facts = dict[str, list[str]]
Cost = tuple[str, int]  # a line and its tokens


def gather(group: Sequence[Message]) -> Facts:
    """The facts of one group."""
    facts: Facts = {}
    for message in group:
        if message.role == USER:
            _heard(facts, message.text())
        elif message.role == ASSISTANT:
            _prose(facts, message.text())
            _keep_conclusion(facts, answered=not message.calls())
    for action in actions(group):
        _add_action(facts, action)
    return facts


def _heard(facts: Facts, text: str) -> None:
    """The facts of a message of the user, or of a finished task."""
    if _TASK.match(text):
        _add(facts, TASKS, text.split("\n", 1)[0])
        lines = _without_failures(facts, text).split("\n")
        _prose(facts, "\n".join(line for line in lines if not line.startswith(SAID_IN_TASK)))
        facts.pop(ANSWERS, None)  # a ledger is no prose
        for line in lines:
            if line.startswith(SAID_IN_TASK):  # what the user said counts for as long as outside of a task
                _heard(facts, line.removeprefix(SAID_IN_TASK))
    else:
        _user_words(facts, text)


def is_reference(text: str) -> bool:
    """Whether it names an output that is kept, as the preview of a long message does."""
    return _REFERENCE.search(text) is not None


def _user_words(facts: Facts, text: str) -> None:
    """The user's own words: a short message as a whole, a long one sentence by sentence."""
    sentences: Facts = {}
    _prose(sentences, text, by_user=True)
    one_line = " ".join(text.split())
    request = one_line if len(text) <= ASK_MAX else _opening(text)
    for line in (*_REFERENCE.findall(text), request):  # a long message that is kept as an output has its id here
        if line and line not in facts.get(ASKS, ()):
            _add(facts, ASKS, line)
    for kind in (DETAILS, STATEMENTS):
        lines = [line for line in sentences.pop(kind, ()) if line not in request]
        if request != one_line:
            sentences[kind] = list(_at_both_ends(lines))
    for kind, lines in sentences.items():
        for line in lines:
            _add(facts, kind, line)


def _opening(text: str) -> str:
    """The first sentences of a long message, where it usually says what it wants."""
    opening = ""
    for sentence in (sentence for line in text.split("\n") for sentence in _SENTENCE.split(line.strip())):
        if opening and len(opening) + len(sentence) >= OPENING_CHARS:
            break
        opening = f"{opening} {' '.join(sentence.split())}".strip()
    return _short(opening, ASK_MAX)


def _keep_conclusion(facts: Facts, *, answered: bool) -> None:
    """Of the model's other sentences, the first and the last one of an answer count before the others."""
    sentences = facts.pop(ANSWERS, [])
    ends = [sentences[0], sentences[-1]] if answered and len(sentences) > 1 else sentences if answered else []
    for line in ends:
        _add(facts, ANSWERS, line)
    for line in _at_both_ends(sentences):
        if line not in ends:
            _add(facts, REMARKS, line)


def _at_both_ends(lines: Sequence[str]) -> Sequence[str]:
    """The lines of one message that are read; of what is mostly pasted data, those at its beginning and its end."""
    return lines if len(lines) <= 2 * PASTED else [*lines[:PASTED], *lines[-PASTED:]]


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
    worn = _worn(kinds) if any(len(lines) > limits.FACTS_KEPT for lines in kinds.values()) else frozenset()
    return {kind: _newest(kind, list(lines), worn) for kind, lines in kinds.items() if kind != CLOSED and lines}


def _newest(kind: str, lines: list[str], worn: Set[str]) -> list[str]:
    """The lines to keep. Of rules and the user's sentences, the first ones still hold."""
    most = limits.FACTS_KEPT
    if len(lines) > most:
        lines = _without_series(kind, lines)
    if len(lines) > most and kind in WORN:
        room = most - sum(line not in worn for line in lines)
        newest = set([line for line in lines if line in worn][-room:] if room > 0 else ())
        lines = [line for line in lines if line not in worn or line in newest]
    if len(lines) <= most:
        return lines
    oldest = most // 2 if kind in BOTH_ENDS else 0
    return [*lines[:oldest], *lines[oldest - most :]]


def from_json(value: object) -> Facts:
    """Facts as a fold stores them."""
    record: Mapping[str, Any] = value if isinstance(value, dict) else {}
    return {kind: [str(line) for line in record[kind]] for kind in KINDS if isinstance(record.get(kind), list)}


def _prose(facts: Facts, text: str, *, by_user: bool = False) -> None:
    code = False
    for line in text.split("\n"):
        plain = line.strip()
        if plain.startswith("```"):
            code = not code
        elif plain and not code:
            for sentence in _sentences(plain):
                _sentence(facts, sentence, by_user)


def _sentences(line: str) -> Iterable[str]:
    if len(line) <= SPLIT_UNSPACED_CHARS or (len(line) <= SPLIT_CHARS and not cues.has_unspaced(line)):
        return (line,)
    return (sentence for sentence in _SENTENCE.split(line) if sentence)


def _sentence(facts: Facts, text: str, by_user: bool) -> None:
    if box := _BOX.match(text):
        done = box[3] or (box[1] or "").strip()
        _add(facts, CLOSED if done else OPEN, _short(box[4].strip(), LINE_MAX))
    else:
        _add(facts, _kind(text, by_user), _short(text, LINE_MAX))
    _tokens(facts, text, by_user)


def _kind(text: str, by_user: bool) -> str:
    present = cues.kinds(text)
    for cue in cues.IN_ORDER:
        if cue in present:
            # The user makes the rules. A model that explains something says "must" all the time.
            return ADVICE if cue == cues.RULE and not by_user else _CUED[cue]
    if by_user and (cues.WISH in present or _ITEM.match(text)):
        return WISHES
    if _NUMBER.search(text) or (_DIGIT.search(text) and _names(text)) or (not text.isascii() and _QUOTED.search(text)):
        return DETAILS if by_user else FIGURES
    if _has_name(text):
        return DETAILS if by_user else NAMED
    return STATEMENTS if by_user else ANSWERS


def _has_name(text: str) -> bool:
    """Whether a word inside it begins with a capital. Where many do, as in German and in headings, two in a row."""
    words = [word for word in _WORD.findall(text) if len(word) > 1]
    capitals = [word[0].isupper() and not word.isupper() for word in words[1:]]
    if sum(capitals) * 4 <= len(capitals):
        return any(capitals)
    return any(first and second for first, second in pairwise(capitals)) and not all(capitals)


def _tokens(facts: Facts, text: str, by_user: bool) -> None:
    if "/" in text or "." in text:
        if "://" in text:
            for url in _URL.findall(text):
                _add(facts, IDS, url.rstrip(".,;"))
            text = _URL.sub(" ", text)
        pattern = _TIGHT_FILE if _is_tight(text) else _FILE
        for path in pattern.findall(text):
            _add(facts, FILES, path)
        text = pattern.sub(" ", text)
    if _DIGIT.search(text):
        for name in _names(text):
            _add(facts, IDS, name)
        for number in () if by_user else _NUMBER.findall(text):  # the user's are looked for with their sentences
            _add(facts, NUMBERS, number)


def _names(text: str) -> list[str]:
    """Ids: words that mix letters and digits, and numbers with a # before them."""
    pattern = _TIGHT_NAME if _is_tight(text) else _NAME
    return [
        name
        for name in pattern.findall(text)
        if name[0] == "#" or (any(c.isdigit() for c in name) and any(c.isalpha() for c in name))
    ]


def _is_tight(text: str) -> bool:
    return not text.isascii() and _TIGHT.search(text) is not None


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
    """A text as it is compared: without case, width, extra whitespace, and the ellipsis of one that was cut."""
    return " ".join(cues.fold(text.rstrip("…")).split())


# --- the summary ------------------------------------------------------------------------------------------------------

# Kind of fact: its heading, and its guaranteed percentage of the budget. The rest of the budget is given out in this
# order: first what the user said and what an agent would get wrong without, last what it could look up.
SECTIONS: Mapping[str, tuple[str, int]] = {
    RULES: ("Rules", 13),
    ASKS: ("Asked for", 22),
    WISHES: ("Wanted", 10),
    OPEN: ("Open", 11),
    DECISIONS: ("Decided", 13),
    DETAILS: ("Details from the user", 6),
    STATEMENTS: ("Said by the user", 4),
    FIGURES: ("Figures", 6),
    ADVICE: ("Rules in your words", 3),
    NAMED: ("Named", 2),
    REMARKS: ("Said by you on the way", 0),
    FAILURES: ("Failed", 3),
    TASKS: ("Tasks", 3),
    CHANGES: ("Changed", 1),
    FILES: ("Files", 1),
    IDS: ("Names and ids", 1),
    COMMANDS: ("Commands", 1),
    ANSWERS: ("Said by you", 0),
}
ORDER = (
    ASKS,
    RULES,
    WISHES,
    DECISIONS,
    OPEN,
    DETAILS,
    STATEMENTS,
    FIGURES,
    ADVICE,
    NAMED,
    TASKS,
    FAILURES,
    CHANGES,
    COMMANDS,
    FILES,
    IDS,
    ANSWERS,
    REMARKS,
)
CUED = (RULES, WISHES, OPEN, DECISIONS)
BOTH_ENDS = (RULES, ASKS, WISHES, DETAILS, STATEMENTS)  # where there are too many: the first and the last ones
# Kinds in which lines that count up are one.
SERIES = (ASKS, WISHES, DETAILS, STATEMENTS, FIGURES, ADVICE, NAMED, ANSWERS, REMARKS)
# A sentence whose words follow each other in several others too tells little in any language: others come first.
SENTENCES = (RULES, DECISIONS, OPEN, FIGURES, WISHES, DETAILS, STATEMENTS, ADVICE, NAMED, ANSWERS, REMARKS)
WORN = (WISHES, DETAILS, STATEMENTS, ADVICE, NAMED, ANSWERS, REMARKS)
NEW = 0.35  # share of a sentence that others do not say, from which on it says something of its own
RARE = 2  # sentences at most in which two words follow each other that tell something
REMARKS_PERCENT = 30  # of the budget that the model's other sentences get at most
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
    facts = _with_own_requests(facts)
    return {kind: [line for line in lines if plain(line) not in present] for kind, lines in facts.items()}


def _with_own_requests(facts: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Without the requests that consist of rules, wishes and the like, which are shown as such. The first one stays."""
    cued = [line for kind in CUED for line in facts.get(kind, ())]
    asks = facts.get(ASKS, ())
    own = [*asks[:1], *(ask for ask in asks[1:] if not _consists_of(ask, cued))]
    return {**facts, ASKS: own} if len(own) < len(asks) else facts


def _consists_of(text: str, lines: Sequence[str]) -> bool:
    for line in lines:
        if line in text:
            text = text.replace(line, " ")
    return not any(map(str.isalnum, text))


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
    waiting, repeated = _waiting(facts)
    taken: dict[str, list[str]] = {kind: [] for kind in SECTIONS}
    left = budget - _take(waiting[ASKS], taken[ASKS], budget * SECTIONS[ASKS][1] // 100, both_ends=True)
    requests = "\n".join(taken[ASKS])
    for kind, (_, share) in SECTIONS.items():
        if kind != ASKS:
            waiting[kind] = [cost for cost in waiting[kind] if cost[0] not in requests]
            left -= _take(waiting[kind], taken[kind], min(left, budget * share // 100), both_ends=kind in BOTH_ENDS)
    for lines in (waiting, repeated):
        for kind in SECTIONS:
            room = left if kind != REMARKS else min(left, budget * REMARKS_PERCENT // 100)
            if kind != REMARKS or lines is waiting:
                left -= _take(lines[kind], taken[kind], room, both_ends=kind in BOTH_ENDS)
    requests = "\n".join(taken[ASKS])
    chosen = {kind: {line for line in lines if kind == ASKS or line not in requests} for kind, lines in taken.items()}
    ordered = {kind: [line for line in facts.get(kind, ()) if line in chosen[kind]] for kind in taken}
    missing = {kind: len(waiting[kind]) + len(repeated[kind]) for kind in SECTIONS}
    return ordered, {kind: count for kind, count in missing.items() if count}


def _waiting(facts: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[Cost]], dict[str, list[Cost]]]:
    """The lines of each kind with their costs, the most important last, and those that may wait: a newer one makes them
    needless, or they say nothing that was not said again and again."""
    waiting: dict[str, list[Cost]] = {}
    repeated: dict[str, list[Cost]] = {}
    facts = _with_own_requests(facts)
    worn = _worn(facts)
    used: set[str] = set()
    for kind in SECTIONS:
        lines = list(facts.get(kind, ()))
        if kind != ASKS:
            lines = [line for line in lines if line not in used]
            used.update(lines)
        newest = set(_without_series(kind, lines)) - (worn if kind in WORN else set())
        if kind == ASKS:
            lines = lines[1:] + lines[:1]  # the first request is what all the work is for, so it counts as the newest
        costs = [(line, tokens.count(line) + 2) for line in lines]  # for the dash and the line end
        waiting[kind] = [cost for cost in costs if cost[0] in newest]
        repeated[kind] = [cost for cost in costs if cost[0] not in newest]
    return waiting, repeated


def _worn(facts: Mapping[str, Iterable[str]]) -> Set[str]:
    """The sentences that say little which several others do not say too."""
    sentences = {line for kind in SENTENCES for line in facts.get(kind, ())}
    counts = Counter(piece for line in sentences for piece in cues.pieces(line))
    candidates = {line for kind in WORN for line in facts.get(kind, ())}
    return {line for line in candidates if _is_worn(line, counts)}


def _is_worn(line: str, counts: Mapping[str, int]) -> bool:
    """A pair of words counts the less, the more sentences have it. A figure may be all that a sentence is there for."""
    pieces = cues.pieces(line)
    if _DIGIT.search(line):
        return all(counts[piece] > RARE for piece in pieces)
    return sum(min(1.0, RARE / counts[piece]) for piece in pieces) <= NEW * len(pieces)


def _without_series(kind: str, lines: Sequence[str]) -> list[str]:
    """The lines, and of those that merely count up the newest. The first request always stays."""
    if kind not in SERIES:
        return list(lines)
    alike: dict[str, list[str]] = {}
    for line in lines:
        alike.setdefault(_DIGITS.sub("0", line), []).append(line)
    older = {line for group in alike.values() if _is_series(group) for line in group[:-1]}
    return [line for index, line in enumerate(lines) if line not in older or (kind == ASKS and not index)]


def _is_series(alike: Sequence[str]) -> bool:
    if len(alike) <= FEW_ALIKE:
        return False
    return len(alike) > MANY_ALIKE or all(len(set(_DIGITS.findall(line))) < 2 for line in alike)


def _take(waiting: list[Cost], taken: list[str], room: int, *, both_ends: bool = False) -> int:
    """Move as many lines as there is room for, the newest first, and return their cost."""
    spent = 0
    while waiting:
        end = 0 if both_ends and len(taken) % 2 else -1
        if spent + waiting[end][1] > room:
            break
        line, cost = waiting.pop(end)
        taken.append(line)
        spent += cost
    return spent


# --- checks -----------------------------------------------------------------------------------------------------------

ADDENDUM_HEADING = "Also said before:"
# In the order in which the budget is given out: lines with a cue, what the user said, names, bare numbers of the model,
# and the other sentences of long messages.
CHECKED = (RULES, OPEN, DECISIONS, ASKS, WISHES, IDS, FILES, DETAILS, NUMBERS, STATEMENTS, ADVICE)
LABELS = {
    RULES: "rule",
    OPEN: "open",
    DECISIONS: "decided",
    ASKS: "asked",
    WISHES: "wanted",
    IDS: "ids",
    FILES: "files",
    DETAILS: "said",
    NUMBERS: "numbers",
    STATEMENTS: "said",
    ADVICE: "your rule",
}


class Check(NamedTuple):
    kind: str
    text: str


class CheckReport(NamedTuple):
    total: int
    missing: tuple[Check, ...]

    @property
    def score(self) -> float | None:
        """The share of checks that passed; None if there were none, because nothing was recognised."""
        return 1 - len(self.missing) / self.total if self.total else None


def checks(facts: Mapping[str, Sequence[str]]) -> tuple[Check, ...]:
    """What to look for, each text once. What merely counts up or was said again and again is not worth a search, and
    "…" or "👍" would be found in any window."""
    facts = _with_own_requests(facts)
    figures = facts.get(FIGURES, ())
    newest = _without_series(FIGURES, figures)
    counted = _numbers(set(figures).difference(newest)) - _numbers(newest)
    texts: dict[str, str] = {}
    needless = {NUMBERS: counted, **dict.fromkeys(WORN, _worn(facts))}
    for kind in CHECKED:
        for line in _without_series(kind, facts.get(kind, ())):
            if line not in needless.get(kind, ()) and any(map(str.isalnum, line)):
                texts.setdefault(line, kind)
    return tuple(Check(kind, line) for line, kind in texts.items())


def _numbers(lines: Iterable[str]) -> set[str]:
    return {number for line in lines for number in _NUMBER.findall(line)}


def run_checks(expected: Sequence[Check], window: str) -> CheckReport:
    """Search the window for each of them. Whitespace and case make no difference."""
    normalised = plain(window)
    return CheckReport(len(expected), tuple(check for check in expected if not _is_in(check, normalised)))


def _is_in(check: Check, window: str) -> bool:
    text = plain(check.text)
    start = window.find(text)
    while check.kind == NUMBERS and start >= 0:  # not as a part of another number
        end = start + len(text)
        if not (window[max(0, start - 1) : start].isdigit() or window[end : end + 1].isdigit()):
            return True
        start = window.find(text, start + 1)
    return start >= 0


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
