-- What no longer holds: when an entry expires, and whether another one has replaced it. Both are in `extra`, which has a
-- checksum; these columns are computed from it, so that lists and counts can ask for them. A damaged `extra` reads as
-- neither, and reading the entry itself reports the damage.
ALTER TABLE entries ADD COLUMN expires_at INTEGER AS (
    CASE WHEN instr(extra, '"expires_at":') AND json_valid(extra)
    THEN CASE json_type(extra, '$.expires_at') WHEN 'integer' THEN json_extract(extra, '$.expires_at') END END
) VIRTUAL;

ALTER TABLE entries ADD COLUMN replaced INTEGER AS (
    CASE WHEN instr(extra, '"replaced_by":') AND json_valid(extra)
    THEN json_type(extra, '$.replaced_by') IS NOT NULL ELSE 0 END
) VIRTUAL;

CREATE INDEX entries_expiring ON entries (tenant, project, kind, expires_at) WHERE expires_at IS NOT NULL;

-- Writes that came with a key of the caller's, so that a repeated call is answered with the first one's changes. `call`
-- is a digest of the operation and its arguments, `seqs` are the changes, and the counts are those of the first answer.
CREATE TABLE retries (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    key TEXT NOT NULL,
    call TEXT NOT NULL,
    at INTEGER NOT NULL,
    seqs TEXT NOT NULL,
    total INTEGER NOT NULL,
    tags INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX retries_at ON retries (tenant, project, at);

-- How often an entry was opened or called useful. Like the calls around outputs, it is written without waiting for the disk.
CREATE TABLE uses (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    what TEXT NOT NULL,
    count INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, kind, key, what)
) STRICT, WITHOUT ROWID;
