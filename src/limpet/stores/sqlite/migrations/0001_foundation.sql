-- Everything kept is an entry. Every primary key begins with tenant and project.

-- One row a project: the number of its last change and the last time stamp it gave out, so that neither goes back.
CREATE TABLE projects (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    seq INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    PRIMARY KEY (tenant, project)
) STRICT, WITHOUT ROWID;

-- The word index knows an entry by its rowid. VACUUM keeps rowids of tables that have an index; a test watches over it.
CREATE TABLE entries (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    session TEXT NOT NULL,
    content TEXT NOT NULL,
    tags TEXT NOT NULL,
    done INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    origin TEXT NOT NULL,
    extra TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (tenant, project, kind, key)
) STRICT;

CREATE INDEX entries_recent ON entries (tenant, project, kind, session, updated_at, key);

-- Counts that replies show after every write, so that they cost a look-up and not a scan. The empty session is the
-- whole project, the empty tag is every entry. A label is the spelling a tag was first given.
CREATE TABLE tallies (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    kind TEXT NOT NULL,
    session TEXT NOT NULL,
    tag TEXT NOT NULL,
    label TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, kind, session, tag)
) STRICT, WITHOUT ROWID;

-- One row a change. It keeps what the entry was before; what it became is the next row's "before", or the entry.
CREATE TABLE events (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    operation TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    detail TEXT NOT NULL,
    before TEXT,
    PRIMARY KEY (tenant, project, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX events_of_entry ON events (tenant, project, kind, key, version);

-- The word index. It is fed words and marks of tags separated by spaces, so the plainest tokenizer is right.
CREATE VIRTUAL TABLE terms USING fts5(text, content='', contentless_delete=1, tokenize='ascii');

-- Endings of every word ever indexed: finds the words that contain a piece. It holds no entry and names no owner.
CREATE TABLE pieces (
    piece TEXT NOT NULL,
    word TEXT NOT NULL,
    PRIMARY KEY (piece, word)
) STRICT, WITHOUT ROWID;
