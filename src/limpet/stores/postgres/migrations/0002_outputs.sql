-- Outputs: big results of tools, kept whole outside the window, by their content and each once in a project.

-- `line_starts` is a JSON list: the line that the first byte of each chunk belongs to. `hash` is over all columns but
-- `used_at` and `uses`, which move with every use and decide nothing but the order.
CREATE TABLE outputs (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    call text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    lines bigint NOT NULL,
    shape text COLLATE "C" NOT NULL,
    preview text COLLATE "C" NOT NULL,
    redacted bigint NOT NULL,
    created_at bigint NOT NULL,
    used_at bigint NOT NULL,
    uses bigint NOT NULL,
    stored bigint NOT NULL,
    chunk bigint NOT NULL,
    line_starts text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (tenant, project, id)
);

CREATE UNIQUE INDEX outputs_by_digest ON outputs (tenant, project, digest);

-- In the order of pruning, with all that pruning and the statistics ask for, so that they read no previews.
CREATE INDEX outputs_used ON outputs (tenant, project, used_at, id) INCLUDE (size, stored, created_at);

-- The bytes in pieces of outputs.chunk bytes, each compressed by itself (zstd). `hash` is over what is stored.
CREATE TABLE output_chunks (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    hash bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, project, id, number)
);

-- They are compressed already; the server need not try.
ALTER TABLE output_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

-- What the outputs were that are gone, as JSON. An id in here is never given to another content.
CREATE TABLE output_tombstones (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    gone_at bigint NOT NULL,
    what text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (tenant, project, id)
);
