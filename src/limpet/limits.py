"""Every number we are bounded by, each with its unit and its reason. Those people may change are fields of Settings."""

# Annotations are real objects here: as texts, each would be compiled again for its NamedTuple at every start.
from typing import NamedTuple

NOTE_MAX_CHARS = 4_000  # a note is one thought; longer text belongs in an output or the notepad
NOTE_MAX_TAGS = 10  # more tags than one would ever search by only dilute them
TAG_MAX_CHARS = 100  # a tag is a word or two
NOTES_SHOWN = 20  # notes in one reply unless asked otherwise: about 2,000 tokens at the usual length
RELATED_SHOWN = 10  # looser hits where the exact ones leave room: enough to choose from, too few to drown
RELATED_POOL = 40  # texts that are looked at for them: a search waits a third as long as recall does
LIST_MAX = 1_000  # rows in one reply, whoever asks
AUDIT_STALE_DAYS = 90  # a quarter: what nobody touched for so long may no longer be true
AUDIT_COMPARED = 20_000  # texts that an audit compares with each other: some seconds and 100 MB
AUDIT_CHARS = 256 << 20  # characters an audit searches for secrets: some ten seconds
AUDIT_OUTPUTS = 5_000  # outputs an audit looks at, the last used first; each is read with its preview
PURGE_BATCH = 200  # entries or changes that one transaction of a purge takes: others wait for so long
DUPLICATES_COMPARED = 25  # entries a new text is compared with: together some 0.3 ms

NOTEPAD_MAX_CHARS = 100_000  # hard stop: it is sent with every model call
NOTEPAD_BUDGET_TOKENS = 4_000  # soft: past this a write succeeds and says what to trim

PROMPT_MAX_CHARS = 100_000  # hard stop for the system prompt: it too is sent with every model call
PROMPT_BUDGET_TOKENS = 4_000  # soft, as for the notepad

STATE_MAX_CHARS = 100_000  # one value of agent_state, as JSON; more belongs in an output or a file
SKILL_MAX_BYTES = 256 << 10  # one SKILL.md; many times what an agent should read at once
SKILL_BODY_TOKENS = 5_000  # a longer body is kept as an output and read in parts
SKILL_NAME_CHARS = 64  # as the convention for SKILL.md has it
SKILL_DESCRIPTION_CHARS = 1_024  # the same; it is in every window
SKILLS_BUDGET_TOKENS = 1_000  # of all summaries together: some thirty skills
SKILLS_MOST = 500  # folders that are looked at in one directory

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
SESSION_DEPTH_MAX = 3  # children of children of children; deeper, nobody knows any more who asked for what
SESSION_CHILDREN_MAX = 10  # children of one session at work at once: more than a model can follow
AGENT_STEPS_MAX = 200  # model calls of one run: long work passes, an endless circle ends
RESULT_MAX_CHARS = 20_000  # what a child reports; the long part belongs in an output
WAIT_MAX_SECONDS = 60  # one wait for children, so that no caller's own time limit passes first
OWN_TENANT = ".limpet"  # what belongs to no tenant, such as tokens; a name with a dot in front can be nobody's
PROJECT_NAME_CHARS = 200  # of a project or a tenant that comes over the network
TOKEN_NAME_CHARS = 100  # who a token is for; it stands in the history of every change
TOKEN_USE_NOTED_MS = 3_600_000  # how exactly the last use of a token is known: an hour, so that it costs no write
TOKEN_TRUST_MS = 500  # how long tokens that were looked up are believed; a revoked one ends within a second
TOKEN_CHANGES_READ = 20  # of the last changes of tokens, twice a second; if all are new, every token is looked up again
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
OUTPUT_SHOWN_BYTES = 262_144  # of an output on one page of the dashboard: what a browser still draws at once
DASHBOARD_PAGE = 50  # rows of a list, or steps of a story, on one page: quick to draw, and more than is read at once
DASHBOARD_SESSIONS = 100  # sessions in the tree of the overview; the newest are meant
SIGN_IN_MS = 12 * 3_600_000  # how long a person stays signed in: a working day
SIGN_IN_CODE_MS = 12 * 3_600_000  # how long the address that `serve` prints can be used, once
LIVE_STREAMS = 64  # open pages that a process keeps up to date; the others are still, not wrong
LIVE_EACH = 12  # of them for one token or user, so that one cannot take all; browsers open six at once
LIVE_POLL_SECONDS = 1.0  # how often an open page is compared with the store: two small reads
LIVE_STREAM_SECONDS = 300  # after which a browser asks anew, so that none is kept for ever
OUTPUT_QUERY_TOKENS = 600  # the answer to a plain question: the lines that matter and little around them
OUTPUT_PRUNE_MOST = 50  # outputs one keep may prune, so that no call pays for a whole clean-up
OUTPUT_CALL_CHARS = 1_000  # of a call that are kept to say how to get its result again
OUTPUT_DIFF_BYTES = 1 << 20  # results up to this size are compared with the last one of the same call
OUTPUT_DIFF_LINES = 400  # lines between the first and the last difference; more is not a small change
OUTPUT_DIFF_LINE_CHARS = 300  # a longer changed line is no difference that one takes in at a glance
OUTPUT_READS_NOTED = 16  # reads of an output that a session remembers, to see when it goes round in circles
OUTPUT_READS_ALIKE = 3  # the read of the same part that is answered with a hint


SANDBOX_CODE_MAX_CHARS = 100_000  # one run; longer than what any agent writes at once
SANDBOX_OUTPUT_TOKENS = 2_000  # of what a run prints or returns that enter the window, as for one page of an output
SANDBOX_PRINTED_BYTES = 4 << 20  # printed by one run: enough to be an output of its own, far from filling the memory
SANDBOX_RESULT_CHARS = 4 << 20  # of a value that leaves the sandbox, written down; it may be vastly larger than inside
SANDBOX_ITEM_CHARS = 8  # what each item of such a value counts for, so that walking it takes half a second at most
SANDBOX_RESULT_DEPTH = 100  # lists in lists; what reads JSON on the other side has such bounds too
SANDBOX_INTEGER_BITS = 10_000  # about 3,000 digits; from 4,300 on Python refuses to write them
SANDBOX_DEPTH = 500  # calls inside calls, in the code
SANDBOX_CALLS = 2_000  # of outputs and session.notepad in one run; a loop over more lines reads them at once
SANDBOX_WAIT_SECONDS = 30.0  # for all these calls together: their time is ours and is not counted as the code's
SANDBOX_AT_ONCE = 4  # runs of one process; each may take its whole share of memory

MESSAGE_TEXT_MAX_CHARS = 40_000  # of a message that are searchable; longer ones are mostly data, and indexing costs
MESSAGES_READ = 1_000_000  # messages of one session, read when a process takes it up; more than any session has
CLEAR_RESULT_CHARS = 600  # about 150 tokens: the line that replaces a cleared result is a third of that
FACTS_KEPT = 400  # of one kind that a fold passes on to the next; all of them stay in the messages
SUMMARY_MAX_TOKENS = 12_000  # of any summary: past this it is read as little as what it replaces
ADDENDUM_PERCENT = 25  # of a summary's budget that is kept for what the probes find missing
LEDGER_TOKENS = 300  # of a finished task's ledger
TASK_DEPTH_MAX = 4  # tasks inside tasks; deeper ones are plans, which belong in the notepad
PIN_MAX_CHARS = 4_000  # one pinned text; it is sent with every model call
PINS_MAX = 50  # pinned texts of one session, for the same reason
FOLDS_READ = 10_000  # folds and tasks of one session; each covers several messages


class WindowRules(NamedTuple):
    """When the window is cleared, warned about and compacted. Fields of [window]; percentages are of the limit."""

    limit: int = 200_000  # tokens of the model's window when the caller names none
    clear_percent: int = (
        60  # from here on old results are cleared; earlier, a lost prompt cache costs more than it saves
    )
    clear_least_percent: int = 10  # … and only when so much comes free, for the same reason
    warn_percent: int = 80  # leaves a fifth for the warned turn, its results, and an estimate that is too low
    full_percent: int = 95  # a request as big as this is not sent: it is made smaller at once, warned or not
    target_percent: int = 45  # what a compaction must get below; above it the next one would follow too soon
    tail_percent: int = 20  # of recent messages that stay word for word: some dozen steps in a usual window
    summary_percent: int = 15  # of what stands in their place; at most SUMMARY_MAX_TOKENS
    keep_results: int = 4  # recent calls whose results are never cleared while they can still be sent


ADAPT_FREE_TOKENS = 50_000  # with so much of the window free, thresholds are as they are set
ADAPT_DOWN = 4  # a threshold sinks to this part of itself at most: below it a reference costs more than it saves
ADAPT_UP = 16  # … and rises to so many times itself at most, about 16,000 tokens


class ToolRule(NamedTuple):
    """What is different for some tools: a table [outputs.tools."pattern"] in the config file."""

    pattern: str  # a name, or one with * and ? in it
    keep: str = "auto"  # by size; or "always" or "never"
    threshold_bytes: int = 0  # 0: as for all tools
    redact: bool = True


JOURNAL_MAX_BYTES = 64 << 20  # a journal is for reading; a file this big is something else
JOURNAL_STATES = 32  # texts of the journal kept to merge from: an editor's buffer may be that many saves old
JOURNAL_STATES_BYTES = 8 << 20  # of all of them together, unless that would leave fewer than eight
JOURNAL_SETTLE_SECONDS = 1.0  # how long an editor that is just saving is waited for
JOURNAL_STALE_SECONDS = 10.0  # an old text back this soon after our write is an old buffer, later it is meant
JOURNAL_DISPLACED_SECONDS = 60  # how long a displaced file is watched for an editor that still has it open
JOURNAL_FIELD_MAX_CHARS = 2_000  # one field of an entry; longer text belongs in a file or an output
JOURNAL_QUOTE_MAX_LINES = 20  # lines of a quote: evidence is read, not scrolled
JOURNAL_SCENARIOS = 3  # test scenarios of a decision: the usual case, an edge, a failure
JOURNAL_SOURCE_MAX_BYTES = 8 << 20  # a file that evidence names; bigger ones are data, not source
JOURNAL_LEVEL_1_LEAST = 60  # tokens: below this, three decisions are no longer told apart


class JournalRules(NamedTuple):
    """Where the journal is and how much of it is shown and kept. Fields of [journal] in the config file."""

    file: str = "NOTES.md"
    level_1_tokens: int = 100
    level_2_tokens: int = 500
    rotate_bytes: int = 48 << 10  # past this, old decisions and log rows move to the archive: about 12,000 tokens
    keep_decisions: int = 10  # that stay when the rest moves
    keep_log_rows: int = 20


HOOK_CONTEXT_CHARS = 9_500  # what a hook gives a coding agent: past 10,000 clients move it to a file or drop it
HOOK_INPUT_BYTES = 64 << 20  # one event on standard input, with a whole tool result in it
HOOK_END_SECONDS = 2.5  # at the end of a session: one client ends every hook after three
HOOK_LOG_BYTES = 256 << 10  # of the log of what went wrong in hooks; then it starts anew beside the old one
TRANSCRIPT_BYTES = 4 << 20  # of a client's transcript that are read, from its end: a second's work
TRANSCRIPT_HEAD_LINES = 50  # of a client's file that are looked at to learn which project it belongs to
PEER_FILE_MAX_BYTES = 256 << 20  # one file of another memory tool: it is read as one JSON text
PEER_NOTE_MAX_BYTES = 4 << 20  # one file of a folder that another memory tool keeps: a long book
PEER_FILES_MAX = 100_000  # files of such a folder
PEER_FOLDERS_DEEP = 32  # folders within folders there; deeper is a mistake
PEER_PART_CHARS = 8  # of a key, for the number of a part where a text is too long for one entry
UNREAD_NAMED = 20  # lines of a transcript that could not be read and are named; the rest is counted
CHECKPOINT_TOKENS = 600  # of what is kept of a conversation before a client compacts it


class HookRules(NamedTuple):
    """What hooks of coding agents may do. Fields of [hooks] in the config file."""

    enabled: bool = True  # `limpet off` and `limpet on` switch it for a project
    seconds: int = 5  # a hook that is not done by then answers nothing; agents wait for it
    off_clients: tuple[str, ...] = ()  # clients whose hooks do nothing here
    off_tools: tuple[str, ...] = ()  # tools, as names or patterns, whose results are left as they are


class OutputRules(NamedTuple):
    """What is kept outside the window, and for how long. Fields of [outputs] in the config file."""

    enabled: bool = True
    threshold_bytes: int = 4_096  # below this a reference costs more than it saves
    max_age: int = 7 * 86_400  # seconds since an output was last used; one that is cited somewhere stays
    max_cache_size: int = 256 << 20  # bytes of all outputs of a project, before compression
    include_preview: bool = True
    preview_length: int = 330  # tokens; every output pays for it, and a longer one answers hardly more
    no_repeats: tuple[str, ...] = ()  # tools, as names or patterns (git_*), whose repeated calls are answered in full
    free_tokens: int = 0  # of the window, where whoever starts us knows; 0: not known, and thresholds do not adapt
    tools: tuple[ToolRule, ...] = ()


OUTPUT_PIECE_BYTES = 4_096  # of an output that recall finds as one: about a screen
OUTPUT_INDEX_BYTES = 2 << 20  # of one output that recall can find: the first and the last half of it
OUTPUT_CATCH_UP_BYTES = 32 << 20  # that one recall may index before it answers: some seconds; what waits is counted
RECALL_LIMIT_DEFAULT = 10  # hits of recall unless asked otherwise
RECALL_LIMIT_MAX = 50
RECALL_BUDGET_TOKENS = 1_200  # one answer of recall: ten snippets and what is known of them
RECALL_SNIPPET_WORDS = 60  # of one hit: enough to see whether it is worth reading
RECALL_POOL = 80  # texts one question looks at; more find next to nothing and cost time
RECALL_COMMON = 1_200  # places of a word that are followed, some 0.3 ms; a commoner word says little
VECTORS_CATCH_UP = 5_000  # texts whose vectors one recall may make before it answers: one to five seconds, once


ITEMS_READ = 100_000  # memory that one search of a framework's store looks at: some seconds
ADAPTER_SESSIONS = 64  # conversations an adapter holds open; one used before is read from the store again


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
    meaning: bool = True  # texts that are about the same in other words; needs the extra "semantic"


class ServerRules(NamedTuple):
    """What a server for teams allows, and whose access tokens it takes. Fields of [server] in the config file."""

    calls_per_minute: int = 600  # of one token or user, in each process of the server
    calls_at_once: int = 12  # of one token or user; each holds a thread
    quota_entries: int = 0  # of one tenant; 0: no limit
    quota_bytes: int = 0  # of one tenant's outputs, before compression; 0: no limit
    issuer: str = ""  # of the identity provider, exactly as its tokens say; empty: no OAuth
    audience: str = ""  # what its tokens must be for; empty: this server's public address
    jwks: str = ""  # where its keys are: an address or a file
    scope_prefix: str = "limpet:"  # before read, write and admin in its tokens
    tenant_claim: str = ""  # the claim that names the tenant; empty: all belong to the server's own
    projects_claim: str = "limpet_projects"  # the claim that names projects, as a list or as words
    projects: tuple[str, ...] = ()  # of those whose token has no such claim


class Bounds(NamedTuple):
    """The limits people may change, as operations get them. Settings reads them, the defaults are above."""

    note_max_chars: int = NOTE_MAX_CHARS
    note_max_tags: int = NOTE_MAX_TAGS
    notepad_budget_tokens: int = NOTEPAD_BUDGET_TOKENS
    digest_budget_tokens: int = DIGEST_BUDGET_TOKENS
    report_duplicates: bool = True  # a write says which entry says the same already
    sandbox_seconds: int = 5  # a run that computes for longer is ended; nothing else is answered meanwhile
    sandbox_memory_mb: int = 128  # enough to take apart 10 MB of JSON, measured; 64 are not
    outputs: OutputRules = OutputRules()
    window: WindowRules = WindowRules()
    recall: RecallRules = RecallRules()
    journal: JournalRules = JournalRules()
    hooks: HookRules = HookRules()
    server: ServerRules = ServerRules()
