-- What happens around outputs: calls that are repeated, reads that go round in circles, and what all of it saved.
-- None of it is what somebody entrusted to us, so it is written without waiting for the disk and carries no checksums:
-- a call that is not found here is answered like a new one, and a digest decides whether a result is the same.

-- The last result of every call of a session. `call` is a hash over the tool and its arguments, after masking.
CREATE TABLE output_calls (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    call text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant, project, session, call)
);

CREATE INDEX output_calls_at ON output_calls (tenant, project, at);

-- The latest reads of an output in a session, as a short JSON list.
CREATE TABLE output_reads (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    reads text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant, project, session, id)
);

CREATE INDEX output_reads_at ON output_reads (tenant, project, at);

-- Counts, and tokens by the tokenizer that is named with them.
CREATE TABLE output_savings (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    tokenizer text COLLATE "C" NOT NULL,
    calls bigint NOT NULL,
    kept bigint NOT NULL,
    repeats bigint NOT NULL,
    reads bigint NOT NULL,
    observed bigint NOT NULL,
    returned bigint NOT NULL,
    read_back bigint NOT NULL,
    PRIMARY KEY (tenant, project, session, tool, tokenizer)
);
