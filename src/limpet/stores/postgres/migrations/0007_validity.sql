-- What no longer holds: when an entry expires, and whether another one has replaced it. Both are in `extra`, which has a
-- checksum; these columns repeat them, so that lists and counts can ask for them. Earlier versions wrote neither.
ALTER TABLE entries ADD COLUMN expires_at bigint;

ALTER TABLE entries ADD COLUMN replaced boolean NOT NULL DEFAULT false;

CREATE INDEX entries_expiring ON entries (tenant, project, kind, expires_at) WHERE expires_at IS NOT NULL;

-- Writes that came with a key of the caller's, so that a repeated call is answered with the first one's changes. `call`
-- is a digest of the operation and its arguments, `seqs` are the changes, and the counts are those of the first answer.
CREATE TABLE retries (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    call text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    seqs text COLLATE "C" NOT NULL,
    total bigint NOT NULL,
    tags bigint NOT NULL,
    PRIMARY KEY (tenant, project, key)
);

CREATE INDEX retries_at ON retries (tenant, project, at);

-- How often an entry was opened or called useful. Like the calls around outputs, it is written without waiting for the disk.
CREATE TABLE uses (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    what text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant, project, kind, key, what)
);

SELECT limpet_protect('retries');
SELECT limpet_protect('uses');
