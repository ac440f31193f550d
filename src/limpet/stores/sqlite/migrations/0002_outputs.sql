-- Outputs: big results of tools, kept whole outside the window, by their content and each once in a project.

-- `line_starts` is a JSON list: the line that the first byte of each chunk belongs to. `hash` is over all columns but
-- `used_at` and `uses`, which move with every use and decide nothing but the order.
CREATE TABLE outputs (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    digest TEXT NOT NULL,
    tool TEXT NOT NULL,
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    size INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    shape TEXT NOT NULL,
    preview TEXT NOT NULL,
    redacted INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    line_starts TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

CREATE UNIQUE INDEX outputs_by_digest ON outputs (tenant, project, digest);

-- In the order of pruning, with all that pruning and the statistics ask for, so that they read no previews.
CREATE INDEX outputs_used ON outputs (tenant, project, used_at, id, size, stored, created_at);

-- The bytes in pieces of outputs.chunk bytes, each compressed by itself (zstd). `hash` is over what is stored.
-- Not WITHOUT ROWID, which is made for small rows.
CREATE TABLE output_chunks (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, project, id, number)
) STRICT;

-- What the outputs were that are gone, as JSON. An id in here is never given to another content.
CREATE TABLE output_tombstones (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    digest TEXT NOT NULL,
    gone_at INTEGER NOT NULL,
    what TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;
