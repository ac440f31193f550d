-- What happens around outputs: calls that are repeated, reads that go round in circles, and what all of it saved.
-- None of it is what somebody entrusted to us, so it is written without waiting for the disk and carries no checksums:
-- a call that is not found here is answered like a new one, and a digest decides whether a result is the same.

-- The last result of every call of a session. `call` is a hash over the tool and its arguments, after masking.
CREATE TABLE output_calls (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    id TEXT NOT NULL,
    digest TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, session, call)
) STRICT, WITHOUT ROWID;

CREATE INDEX output_calls_at ON output_calls (tenant, project, at);

-- The latest reads of an output in a session, as a short JSON list.
CREATE TABLE output_reads (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    reads TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, session, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX output_reads_at ON output_reads (tenant, project, at);

-- Counts, and tokens by the tokenizer that is named with them.
CREATE TABLE output_savings (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    tool TEXT NOT NULL,
    tokenizer TEXT NOT NULL,
    calls INTEGER NOT NULL,
    kept INTEGER NOT NULL,
    repeats INTEGER NOT NULL,
    reads INTEGER NOT NULL,
    observed INTEGER NOT NULL,
    returned INTEGER NOT NULL,
    read_back INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, session, tool, tokenizer)
) STRICT, WITHOUT ROWID;
