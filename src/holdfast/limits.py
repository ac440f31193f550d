"""Every number we are bounded by, each with its unit and its reason. Those people may change are fields of Settings."""

from __future__ import annotations

from typing import NamedTuple

NOTE_MAX_CHARS = 4_000  # a note is one thought; longer text belongs in an output or the notepad
NOTE_MAX_TAGS = 10  # more tags than one would ever search by only dilute them
TAG_MAX_CHARS = 100  # a tag is a word or two
NOTES_SHOWN = 20  # notes in one reply unless asked otherwise: about 2,000 tokens at the usual length
RELATED_SHOWN = 10  # looser hits where the exact ones leave room: enough to choose from, too few to drown
LIST_MAX = 1_000  # rows in one reply, whoever asks

NOTEPAD_MAX_CHARS = 100_000  # hard stop: it is sent with every model call
NOTEPAD_BUDGET_TOKENS = 4_000  # soft: past this a write succeeds and says what to trim

MEMORY_MAX_CHARS = 100_000  # one keyed entry
KEY_MAX_CHARS = 200  # a key is typed by people too
MEMORY_LIMIT_DEFAULT = 8  # matches of search_memory unless asked otherwise
MEMORY_LIMIT_MAX = 50  # the most search_memory returns
HANDOFF_MAX_CHARS = 20_000  # read first thing in the next session, so it must stay short
SCRATCHPAD_MAX_CHARS = 20_000  # working text of one task

DIGEST_BUDGET_TOKENS = 800  # what memory may cost at the start of a session
DIGEST_ENTRY_TOKENS = 220  # the most one entry may take of it, so that one long entry cannot push out the rest
ACTIVITY_LINES = 14  # lines of the day's activity log in the digest
ACTIVITY_BUDGET_TOKENS = 300  # its own budget, so that it never crowds out memory

SESSION_MAX_CHARS = 200  # a session id or name
QUERY_MAX_CHARS = 10_000  # longer than any question; bounds the work of a search
HISTORY_SHOWN = 50  # changes in one reply unless asked otherwise

OUTPUT_MAX_BYTES = 64 << 20  # one output; more does not fit the memory of small machines several times over
OUTPUT_CHUNK_BYTES = 128 << 10  # what is read to see one line: even two of them take less than 1 ms, and 256 save 7 %
OUTPUT_ID_CHARS = 12  # hexadecimal digits of an id: short to quote, and a clash needs millions of outputs
OUTPUT_NAME_MIN_CHARS = 8  # digits that may stand for an id; fewer are more likely a slip than a choice

LOCK_WAIT_SECONDS = 30.0  # a writer holds the lock for milliseconds; longer means a stopped process
SQLITE_BUSY_MS = 10_000  # backstop for programs that write the file without our lock
WAL_CHECKPOINT_PAGES = 4_000  # 16 MB of log before it is folded back into the database: hot pages are written once
WAL_KEEP_BYTES = 20 << 20  # what the log file shrinks to after that; shrinking it every time would cost a sync
IMPORT_LINE_MAX_BYTES = 8 << 20  # one line of an import: the longest entry many times over


OUTPUT_READ_TOKENS = 2_000  # one answer of scratchpad_read: a page, not the book
OUTPUT_READ_MOST = 10_000  # tokens of one answer, whoever asks
OUTPUT_QUERY_TOKENS = 600  # the answer to a plain question: the lines that matter and little around them
OUTPUT_PRUNE_MOST = 50  # outputs one keep may prune, so that no call pays for a whole clean-up


class OutputRules(NamedTuple):
    """What is kept outside the window, and for how long. Fields of [outputs] in the config file."""

    enabled: bool = True
    threshold_bytes: int = 4_096  # below this a reference costs more than it saves
    max_age: int = 7 * 86_400  # seconds since an output was last used; one that is cited somewhere stays
    max_cache_size: int = 256 << 20  # bytes of all outputs of a project, before compression
    include_preview: bool = True
    preview_length: int = 360  # tokens; with the lines around it a reference stays under 400


OUTPUT_PIECE_BYTES = 4_096  # of an output that recall finds as one: about a screen
OUTPUT_INDEX_BYTES = 2 << 20  # of one output that recall can find: the first and the last half of it
OUTPUT_CATCH_UP_BYTES = 32 << 20  # that one recall may index before it answers: some seconds; what waits is counted
RECALL_LIMIT_DEFAULT = 10  # hits of recall unless asked otherwise
RECALL_LIMIT_MAX = 50
RECALL_BUDGET_TOKENS = 1_200  # one answer of recall: ten snippets and what is known of them
RECALL_SNIPPET_WORDS = 60  # of one hit: enough to see whether it is worth reading
RECALL_POOL = 120  # texts one question looks at; more find next to nothing and cost time
RECALL_COMMON = 1_200  # places of a word that are followed, some 0.3 ms; a commoner word says little


class RecallRules(NamedTuple):
    """The signals of recall, each to be switched off by itself. Fields of [recall] in the config file."""

    neighbours: bool = True  # turns of a conversation count for those around them
    speaker: bool = True  # who is asked about, when texts say who speaks
    dates: bool = True  # times named in the question
    coverage: bool = True  # how much of the question a text covers
    phrases: bool = True  # words side by side as in the question
    literals: bool = True  # paths, identifiers and quoted texts as they stand
    stretches: bool = True  # a long text by its best stretch
    statements: bool = True  # a turn that only asks back answers nothing
    substance: bool = True  # a turn that says more is more likely meant
    times_told: bool = True  # a question for a time is answered where one is told


class Bounds(NamedTuple):
    """The limits people may change, as operations get them. Settings reads them, the defaults are above."""

    note_max_chars: int = NOTE_MAX_CHARS
    note_max_tags: int = NOTE_MAX_TAGS
    notepad_budget_tokens: int = NOTEPAD_BUDGET_TOKENS
    digest_budget_tokens: int = DIGEST_BUDGET_TOKENS
    outputs: OutputRules = OutputRules()
    recall: RecallRules = RecallRules()
