"""Every number that bounds the work and cannot be changed, with its unit and its reason.

The names say the unit (CHARS, BYTES, TOKENS, SECONDS, MS, LINES) unless the comment does. What people may change is a
key of settings.py.
"""

# Notes, memory and handoffs
NOTE_MAX_CHARS = 4_000  # the default of a setting
NOTE_MAX_TAGS = 10  # the default of a setting
TAG_MAX_CHARS = 100  # a tag is a word or two
LISTED_CHARS = 400  # of a memory in a list: enough to choose from
NOTES_COUNTED = 300  # matches of a search that are counted and put in order: some 0.3 ms
LIST_COUNTED = 1_000  # rows of a list that are counted where no tally counts them: a millisecond
NOTES_SHOWN = 20  # notes in one reply unless asked otherwise: about 2,000 tokens at the usual length
RELATED_SHOWN = 10  # looser matches where the exact ones leave room: enough to choose from, too few to drown in
RELATED_POOL = 40  # texts examined for them: a search takes a third as long as recall does
LIST_MAX = 1_000  # rows in one reply, at most
PROPOSALS_MAX = 200  # that wait for a person in one layer; more would not be read
REVIEW_LONG_DAYS = 7  # after which it is said that something waits
LAYER_HITS = 2  # of recall from each layer below the project's
MEMORY_MAX_CHARS = 100_000  # one keyed entry
KEY_MAX_CHARS = 200  # a key is typed by people too
MEMORY_LIMIT_DEFAULT = 8  # matches of search_memory unless asked otherwise
MEMORY_LIMIT_MAX = 50  # matches of search_memory at most
HANDOFF_SHOWN_CHARS = 6_500  # of handoffs in the answer of a hook or a tool, which has other things to say too
HANDOFF_MAX_CHARS = 20_000  # read first thing in the next session, so it must stay short
SCRATCHPAD_MAX_CHARS = 20_000  # working text of one task
STATE_MAX_CHARS = 100_000  # one value of agent_state, as JSON; more belongs in an output or a file
DUPLICATES_COMPARED = 25  # entries a new text is compared with: together some 0.3 ms
ANCHORS_MAX = 10  # places that one entry cites: each is looked at when the entry is shown
ANCHOR_MAX_CHARS = 5_000  # of a place: a path of the system and its lines
ANCHOR_FILE_MAX_BYTES = 2 << 20  # a file that an anchor names: read in a millisecond or two, and longer ones are data
ANCHOR_FILES_READ = 32  # files that one answer reads once for all its anchors
ANCHOR_PLACES_COMPARED = 50  # places where moved lines may be; more begin alike in generated files alone
CORRECTIONS_COMPARED = 20  # entries a new text is compared with to see what it corrects
CORRECTION_CHARS = 400  # of a correction that is quoted beside a handoff
CORRECTIONS_NAMED = 3  # beside one handoff
CORRECTION_QUERIES = 4  # of a new text for them: a sentence with words of correction takes one or two
CORRECTION_WORDS = 8  # of a new text by which they are looked for, the longest
UNASKED_ENTRIES = 3  # texts that are shown without a question: more would distract
UNASKED_TOKENS = 200  # of them together
UNASKED_ENTRY_TOKENS = 90  # of each
UNASKED_SMALL = 50  # texts: in a smaller project no word is taken for a common one
RETRY_MS = 7 * 86_400_000  # how long a repeated call is known by its key: longer than any queue tries again
RETRIES_KEPT = 10_000  # keys of calls that a project remembers, the newest
RETRY_KEY_MAX_CHARS = 200  # a key is a UUID or the like
ITEMS_READ = 100_000  # memory entries that one search of a framework's store reads: some seconds

# The digest at the start of a session
DIGEST_BUDGET_TOKENS = 800  # the default of a setting
DIGEST_NEWEST = 60  # entries among which a write looks for those it pushes out: more do not fit the usual budget
DIGEST_ENTRY_TOKENS = 220  # of one entry at most, so that one long entry cannot push out the rest

# Skills
SKILL_MAX_BYTES = 256 << 10  # one SKILL.md; many times what an agent should read at once
SKILL_BODY_TOKENS = 5_000  # a longer body is stored as an output and read in parts
SKILL_NAME_CHARS = 64  # as in the convention for SKILL.md
SKILL_DESCRIPTION_CHARS = 1_024  # the same; it is in every window
SKILLS_BUDGET_TOKENS = 1_000  # of all summaries together: some thirty skills
SKILLS_MOST = 500  # folders that are read in one directory

# Notepad, system prompt, tasks and pins: texts that are sent with every model call
NOTEPAD_MAX_CHARS = 100_000  # hard stop
NOTEPAD_BUDGET_TOKENS = 4_000  # the default of a setting
PROMPT_MAX_CHARS = 100_000  # hard stop for the system prompt
PROMPT_BUDGET_TOKENS = 4_000  # past this a write succeeds and says what to trim
PIN_MAX_CHARS = 4_000  # one pinned text
PINS_MAX = 50  # pinned texts of one session
TASK_DEPTH_MAX = 4  # tasks inside tasks; deeper ones are plans, which belong in the notepad
LEDGER_TOKENS = 300  # of a finished task's ledger
LEDGER_SAID_TOKENS = 600  # of what the user said in it; that is kept before all else

# Sessions and their tree
SESSION_NAME_CHARS = 120  # of a request by which a session is named
SESSION_MAX_CHARS = 200  # a session id or name
SESSION_DEPTH_MAX = 3  # children of children of children; deeper, it is no longer clear who asked for what
SESSION_CHILDREN_MAX = 10  # children of one session at work at once: more than a model can follow
AGENT_STEPS_MAX = 200  # model calls of one run: long work passes, an endless loop ends
CAPSULE_ITEMS = 20  # references, files or failures each that come with the result of a sub-session
CAPSULE_ITEM_CHARS = 300
RESULT_MAX_CHARS = 20_000  # what a child reports; the long part belongs in an output
WAIT_MAX_SECONDS = 60  # one wait for children, so that no caller's own time limit passes first
ADAPTER_SESSIONS = 64  # conversations an adapter keeps open; an older one is read from the store again

# Tenants, tokens and people
OWN_TENANT = ".limpet"  # of data without a tenant, such as tokens; names of tenants cannot begin with a dot
PROJECT_NAME_CHARS = 200  # of a project or a tenant that comes over the network
TOKEN_NAME_CHARS = 100  # who a token is for; it is in the history of every change
TOKEN_USE_NOTED_MS = 3_600_000  # precision of a token's last use: an hour, so that most calls cost no write
TOKEN_TRUST_MS = 500  # how long a token is cached after its lookup; a revoked one ends within a second
TOKEN_CHANGES_READ = 20  # the last changes of tokens, read twice a second; if all are new, the cache is emptied
SIGN_IN_MS = 12 * 3_600_000  # how long a person stays signed in: a working day
SIGN_IN_CODE_MS = 12 * 3_600_000  # how long the address that `serve` prints can be used, once

# History, audit and purge
HISTORY_SHOWN = 50  # changes in one reply unless asked otherwise
AUDIT_STALE_DAYS = 90  # a quarter: an entry untouched for so long may no longer be true
AUDIT_COMPARED = 20_000  # texts that an audit compares with each other: some seconds and 100 MB
AUDIT_CHARS = 256 << 20  # characters an audit searches for secrets: some ten seconds
AUDIT_OUTPUTS = 5_000  # outputs an audit reads, the last used first, each with its preview
PURGE_BATCH = 200  # entries or changes in one transaction of a purge: other writers wait that long

# The store
LOCK_WAIT_SECONDS = 30.0  # a writer holds the lock for milliseconds; longer means a stopped process
LOCK_NOTE_SECONDS = 0.5  # a wait that lasts longer is noted for the processes that come after
SIDE_WAIT_SECONDS = 0.05  # for what a read writes down on the side; an answer matters more
CLOSE_WAIT_SECONDS = 1.0  # to copy the log into the database when a store is closed; the next process can do it too
SQLITE_BUSY_MS = 10_000  # backstop for programs that write the file without our lock
RESERVE_BYTES = 4 << 20  # kept free beside the store, so that things can be deleted when the disk is full
RESERVE_LEAST_BYTES = 192 << 10  # less would not hold the log of one deletion
RESERVE_MARGIN_BYTES = 64 << 10  # left beside a reserve that is made again: shared memory takes 32 KiB
WAL_CHECKPOINT_PAGES = 4_000  # 16 MB of log before it is folded back into the database: hot pages are written once
WAL_SCARCE_BYTES = 80 << 20  # with less space on the disk, the log is kept short
WAL_SCARCE_PAGES = 250  # 1 MB: less than the reserve, which must hold what the database grows by
WAL_KEEP_BYTES = 20 << 20  # what the log file shrinks to after that; shrinking it every time would cost an fsync
IMPORT_LINE_MAX_BYTES = 8 << 20  # one line of an import: the longest entry many times over
IMPORT_AHEAD_MS = 7 * 86_400_000  # how late a time in an import may be: another machine's clock may be ahead
IMPORT_EXACT_AHEAD_MS = 100 * 366 * 86_400_000  # the same of one's own export: a clock can have been wrong by years
IMPORT_CHANGES_MAX = 10**12  # versions and changes in an import: a thousand each second for thirty years
IMPORT_DIGITS = 15  # of a time in a key: more are beyond every time, and slow to read

# Outputs
OUTPUT_MAX_BYTES = 64 << 20  # one output; more does not fit the memory of small machines several times over
OUTPUT_CHUNK_BYTES = 128 << 10  # read to show one line: even two of them take less than 1 ms, and 256 KiB save 7 %
OUTPUT_ID_CHARS = 12  # hexadecimal digits of an id: short to quote, and a clash needs millions of outputs
OUTPUT_NAME_MIN_CHARS = 8  # digits that may stand for an id; fewer are more likely a slip than a choice
OUTPUT_READ_TOKENS = 2_000  # one answer of read_output: a page, not the book
OUTPUT_READ_MOST = 10_000  # tokens of one answer at most
OUTPUT_QUERY_TOKENS = 600  # the answer to a plain question: the lines that matter and little around them
OUTPUT_PRUNE_MOST = 50  # outputs pruned while one is stored, so that no call pays for a complete clean-up
OUTPUT_CALL_CHARS = 1_000  # of a call, stored to say how to get its result again
OUTPUT_DIFF_BYTES = 1 << 20  # results up to this size are compared with the last one of the same call
OUTPUT_DIFF_LINES = 400  # lines between the first and the last difference; more is not a small change
OUTPUT_DIFF_LINE_CHARS = 300  # a longer changed line cannot be read at a glance
OUTPUT_READS_NOTED = 16  # reads of an output that a session remembers, to notice when it goes round in circles
OUTPUT_READS_ALIKE = 3  # the read of the same part that is answered with a hint
ADAPT_FREE_TOKENS = 50_000  # with so much of the window free, thresholds are as they are set
ADAPT_DOWN = 4  # a threshold is divided by this at most: below it a reference costs more than it saves
ADAPT_UP = 16  # … and multiplied by this at most, to about 16,000 tokens

# The dashboard
OUTPUT_SHOWN_BYTES = 262_144  # of an output on one page: what a browser draws without delay
DASHBOARD_PAGE = 50  # rows of a list, or steps of a session, on one page: quick to draw, and more than is read at once
DASHBOARD_SESSIONS = 100  # the newest sessions in the tree of the overview
LIVE_STREAMS = 64  # open pages that a process keeps up to date; further ones are correct but do not update
LIVE_EACH = 12  # of them for one token or user, so that one cannot take all; browsers open six at once
LIVE_POLL_SECONDS = 1.0  # how often an open page is compared with the store: two small reads
LIVE_STREAM_SECONDS = 300  # after which a browser connects again, so that no stream stays open for ever

# The sandbox
SANDBOX_CODE_MAX_CHARS = 100_000  # one run; longer than what any agent writes at once
SANDBOX_OUTPUT_TOKENS = 2_000  # of printed text or a result that enter the window, as for one page of an output
SANDBOX_PRINTED_BYTES = 4 << 20  # printed by one run: enough to be an output of its own, far from filling the memory
SANDBOX_RESULT_CHARS = 4 << 20  # of a value that leaves the sandbox, as text; it may be vastly larger than inside
SANDBOX_ITEM_CHARS = 8  # the weight of each item of such a value, so that walking it takes half a second at most
SANDBOX_RESULT_DEPTH = 100  # lists in lists; JSON parsers on the other side have such bounds too
SANDBOX_INTEGER_BITS = 10_000  # about 3,000 digits; from 4,300 on Python refuses to write them
SANDBOX_DEPTH = 500  # calls inside calls, in the code
SANDBOX_CALLS = 2_000  # of outputs and session.notepad in one run; a loop over more lines reads them at once
SANDBOX_WAIT_SECONDS = 30.0  # for all these calls together: their time is not counted as the code's
SANDBOX_AT_ONCE = 4  # runs of one process; each may take its full share of memory

# Messages and the window
MESSAGE_TEXT_MAX_CHARS = 40_000  # of a message that are searchable; longer ones are mostly data, and indexing costs
MESSAGES_READ = 1_000_000  # messages of one session, read when a process continues it; more than any session has
CLEAR_RESULT_CHARS = 600  # about 150 tokens: the line that replaces a cleared result is a third of that
FACTS_KEPT = 400  # of one kind that a fold passes on to the next; all of them stay in the messages
SUMMARY_MAX_TOKENS = 12_000  # of any summary: past this it is read as little as what it replaces
ADDENDUM_PERCENT = 25  # of a summary's budget, reserved for what the checks find missing
FOLDS_READ = 10_000  # folds and tasks of one session; each covers several messages

# The journal
JOURNAL_MAX_BYTES = 8 << 20  # a journal is for reading; a file this big is something else
JOURNAL_START_BYTES = 256 << 10  # a bigger journal is named at the start of a session, not read: the rest must not wait
JOURNAL_STATES = 512  # texts of the journal in its log, to merge from: an editor's buffer may be that many saves old
JOURNAL_STATES_BYTES = 16 << 20  # of all of them together: reading the log builds each
JOURNAL_LOG_BYTES = 8 << 20  # of the log: past this, old texts are dropped
JOURNAL_KNOWN = 2_048  # digests of dropped texts that are still recognised
JOURNAL_SETTLE_SECONDS = 1.0  # how long to wait for an editor that is just saving
JOURNAL_CONTEST_SECONDS = 10.0  # how long one change goes on merging saves that keep coming
JOURNAL_DISPLACED_SECONDS = 60  # how long a displaced file is watched for an editor that still has it open
JOURNAL_DISPLACED = 64  # files that are watched so
JOURNAL_LATE_SECONDS = 0.02  # the same wait where a displaced file cannot be kept: most editors save within it
JOURNAL_FIELD_MAX_CHARS = 2_000  # one field of an entry; longer text belongs in a file or an output
JOURNAL_QUOTE_MAX_LINES = 20  # lines of a quote: evidence is read, not scrolled
JOURNAL_SCENARIOS = 3  # test scenarios of a decision: the usual case, an edge, a failure
JOURNAL_SOURCE_MAX_BYTES = 8 << 20  # a file that evidence names; bigger ones are data, not source
JOURNAL_QUICK_BYTES = 512 << 10  # a file that evidence names, when a session waits for its start
JOURNAL_GIT_ASKED = 50  # pieces of evidence of one verification about which git is asked: each takes two processes
JOURNAL_LEVEL_1_LEAST = 60  # tokens: below this, three decisions can no longer be distinguished

# Hooks and files of coding agents
HOOK_CONTEXT_CHARS = 9_500  # of context from one hook: past 10,000 clients move it to a file or drop it
HOOK_INPUT_BYTES = 64 << 20  # one event on standard input, with a complete tool result in it
HOOK_END_SECONDS = 2.5  # at the end of a session: one client ends every hook after three
HOOK_LOG_BYTES = 256 << 10  # of the log of failures in hooks; then a new one starts beside the old
CLIENT_CONFIG_BYTES = 64 << 20  # of an agent's configuration file; some agents keep their history in it
TRANSCRIPT_BYTES = 4 << 20  # of a client's transcript, read from its end: a second's work
TRANSCRIPT_HEAD_LINES = 50  # of a client's file, read to learn which project it belongs to
UNREAD_NAMED = 20  # unreadable lines of a transcript that are named; the rest is counted
CHECKPOINT_TOKENS = 600  # of a conversation, stored before a client compacts it

# Files of other memory tools
PEER_FILE_MAX_BYTES = 256 << 20  # one file of another memory tool: it is read as one JSON text
CHATS_MAX_BYTES = 1 << 30  # the conversations in the export of a chat program: read as one JSON text
PEER_NOTE_MAX_BYTES = 4 << 20  # one file in a folder of another memory tool: a long book
PEER_FILES_MAX = 100_000  # files of such a folder
PEER_FOLDERS_DEEP = 32  # folders within folders there; deeper is a mistake
PEER_PART_CHARS = 8  # of a key, for the number of a part where a text is too long for one entry

# Search and recall
QUERY_MAX_CHARS = 10_000  # longer than any question; bounds the work of a search
OUTPUT_PIECE_BYTES = 4_096  # of an output that recall finds as one unit: about a screen
OUTPUT_INDEX_BYTES = 2 << 20  # of one output that recall can find: the first and the last half of it
OUTPUT_CATCH_UP_BYTES = 32 << 20  # that one recall may index before it answers: some seconds; the rest is counted
RECALL_LIMIT_DEFAULT = 10  # matches of recall unless asked otherwise
RECALL_LIMIT_MAX = 50  # matches of recall at most
RECALL_BUDGET_TOKENS = 1_200  # one answer of recall: ten snippets and their metadata
RECALL_SNIPPET_WORDS = 60  # of one match: enough to see whether it is worth reading
RECALL_POOL = 80  # candidates of one question; more find next to nothing and cost time
RECALL_COMMON = 400  # texts of a word that are followed, some 0.1 ms; a more common word is looked up beside rarer ones
RECALL_FOLLOWED = 4_000  # texts of more common words that are followed where the index is small: some 2 ms together
VECTORS_CATCH_UP = 5_000  # texts that one recall may embed before it answers: one to five seconds, once
INSTRUCTIONS_TOKENS = 155  # of the core profile, as estimated: they are paid for in every request
