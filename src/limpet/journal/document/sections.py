"""The sections of the journal: their names, order and initial content, and where each is in a text."""

from __future__ import annotations

from functools import lru_cache

from limpet.journal.document.markup import BOM, Heading, JournalDocument, scan
from limpet.light import re
from limpet.record import NamedTuple

CONTINUITY = "continuity"
CONTEXT = "context"
IDENTIFIERS = "identifiers"
DECISIONS = "decisions"
QUESTIONS = "questions"
GOALS = "goals"
DEBT = "debt"
BLOCKERS = "blockers"
LOG = "log"
ARCHIVE = "archive"

TITLE = "# Agent Working Memory"
ABOUT = (
    "> What the next session needs: where the work stands, what was decided and why, what is open.\n"
    "> Agents add entries; people edit freely, and nothing they write is overwritten.\n"
)


class Section(NamedTuple):
    key: str
    title: str
    level: int
    note: str  # a comment below the heading of a new section
    columns: tuple[str, ...] = ()  # of its table
    also: tuple[str, ...] = ()  # other titles people give it


SECTIONS = (
    Section(CONTINUITY, "Session Continuity", 2, "Read this first: it is made to be short."),
    Section(CONTEXT, "Active Context", 3, "The work at hand and where it stands.", also=("current focus",)),
    Section(
        IDENTIFIERS,
        "Lightweight Identifiers",
        3,
        "Places to look, as ${PROJECT_ROOT}/path:lines. Read them when they are needed.",
        ("Identifier", "Purpose", "Last Verified"),
        ("identifiers",),
    ),
    Section(
        DECISIONS,
        "Decision Log",
        3,
        "Newest last. Each says what, why, a word-for-word quote as evidence, and three test scenarios.",
        also=("decisions",),
    ),
    Section(QUESTIONS, "Pending Questions", 3, "Open until somebody answers.", also=("open questions", "questions")),
    Section(GOALS, "Active Sub-Goals", 2, "What is being worked towards.", also=("sub goals", "goals")),
    Section(
        DEBT,
        "Discovered Technical Debt",
        2,
        "Found on the way, to be mended later.",
        ("ID", "Description", "Severity", "Found By", "Sprint"),
        ("technical debt", "debt"),
    ),
    Section(BLOCKERS, "Blockers & Dependencies", 2, "What the work waits for.", also=("blockers", "dependencies")),
    Section(
        LOG,
        "Session Continuity Log",
        2,
        "One row a session; rows are added, never changed.",
        ("Timestamp", "Agent", "Summary"),
        ("session log",),
    ),
    Section(
        ARCHIVE,
        "Decision Archive",
        2,
        "Decisions in one line each, kept for reference.",
        ("Date", "Decision", "Rationale", "Decided By"),
    ),
)
BY_KEY = {section.key: section for section in SECTIONS}
_PARENTS = {section.key: CONTINUITY for section in SECTIONS if section.level == 3}
_LONGEST_TITLE = 200  # with punctuation and emoji; the sections' own names are much shorter
_NOT_WORDS = re.compile(r"[^\w]+|\band\b|_+")


class SectionPlace(NamedTuple):
    """Where a section is: its heading, its own text, and its text with everything below it."""

    section: Section
    heading: Heading
    own_end: int
    end: int


@lru_cache(maxsize=1_024)  # every look for a section compares all headings
def normal(title: str) -> str:
    """A title without case, punctuation and emoji."""
    return " ".join(_NOT_WORDS.sub(" ", title.casefold()).split())


_NAMES = {normal(name): section.key for section in SECTIONS for name in (section.title, *section.also)}


def key_of(heading: Heading) -> str | None:
    """The section that a heading begins. The title of the file itself begins none."""
    if heading.level == 1 or heading.title[:1].isdigit():  # no section's name begins with a digit, decisions' titles do
        return None
    if len(heading.title) > _LONGEST_TITLE:
        return None
    return _NAMES.get(normal(heading.title))


def places(doc: JournalDocument) -> dict[str, SectionPlace]:
    """The sections of a text; of two with the same name, the first counts."""
    result: dict[str, SectionPlace] = {}
    for heading in doc.headings:
        key = key_of(heading)
        if key is not None and key not in result:
            result[key] = SectionPlace(BY_KEY[key], heading, doc.own_end(heading), doc.end_of(heading))
    return result


def new_section(section: Section, level: int) -> str:
    """A section without entries."""
    text = f"{'#' * level} {section.title}\n<!-- {section.note} -->\n"
    return text + (table_head(section.columns) if section.columns else "")


def table_head(columns: tuple[str, ...]) -> str:
    return f"| {' | '.join(columns)} |\n|{'|'.join('---' for _ in columns)}|\n"


def template() -> str:
    """A new journal."""
    parts = [f"{TITLE}\n\n{ABOUT}"]
    parts += [new_section(section, section.level) for section in SECTIONS]
    return "\n".join(parts)


def with_section(doc: JournalDocument, key: str) -> JournalDocument:
    """The document with this section in it, put where it belongs when it was missing."""
    present = places(doc)
    if key in present:
        return doc
    parent = _PARENTS.get(key)
    if parent is not None:
        doc = with_section(doc, parent)
        present = places(doc)
    section = BY_KEY[key]
    level = present[parent].heading.level + 1 if parent else section.level
    at = doc.before_unclosed(_where(doc, present, key, parent))
    return scan(insert(doc, at, new_section(section, level), apart=True))


def _where(doc: JournalDocument, present: dict[str, SectionPlace], key: str, parent: str | None) -> int:
    """After the nearest section before it in our order, else before the next one after it, else at the end."""
    order = [section.key for section in SECTIONS if _PARENTS.get(section.key) == parent]
    place = order.index(key)
    for before in reversed(order[:place]):
        if before in present:
            return present[before].end
    if parent is not None:
        return present[parent].own_end
    for after in order[place + 1 :]:
        if after in present:
            return present[after].heading.start
    return len(doc.text)


def insert(doc: JournalDocument, at: int, block: str, *, apart: bool = False) -> str:
    """The text with whole lines put in at the beginning of a line; `apart`: with an empty line on either side."""
    before, after = doc.text[:at], doc.text[at:]
    lead = ""
    if before and before != BOM and not before.endswith("\n"):
        lead = "\n" if before.endswith("\r") else doc.newline  # half a line end is completed
    if apart:
        if before.strip("\ufeff\r\n") and not before.endswith(("\n\n", "\r\n\r\n")):
            block = "\n" + block
        if after and not after.startswith(("\n", "\r\n")):
            block += "\n"
    return before + lead + block.replace("\n", doc.newline) + after
