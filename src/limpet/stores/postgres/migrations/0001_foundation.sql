-- Everything kept is an entry. Every primary key begins with tenant and project.
-- Texts are compared byte by byte (COLLATE "C"), so that every server orders and matches them like the embedded store.

-- Which migrations have run: always one row. It has no key, only the rule that there is no second row.
CREATE TABLE limpet_schema (
    version integer NOT NULL,
    migrated_at timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX limpet_schema_one_row ON limpet_schema ((true));

-- One row a project: the number of its last change and the last time stamp it gave out, so that neither goes back.
-- Every writer locks this row first; that is what puts the writers of a project in line.
CREATE TABLE projects (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    clock bigint NOT NULL,
    PRIMARY KEY (tenant, project)
);

-- `folded` is the text as substring search compares it, `terms` what the word index holds (see text/words.py).
CREATE TABLE entries (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    tags text COLLATE "C" NOT NULL,
    done boolean NOT NULL,
    pinned boolean NOT NULL,
    origin text COLLATE "C" NOT NULL,
    extra text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    hash bytea NOT NULL,
    folded text COLLATE "C" NOT NULL,
    terms tsvector NOT NULL,
    PRIMARY KEY (tenant, project, kind, key)
);

CREATE INDEX entries_recent ON entries (tenant, project, kind, session, updated_at, key);

CREATE INDEX entries_newest ON entries (tenant, project, kind, updated_at, key);

CREATE INDEX entries_terms ON entries USING gin (terms);

-- The trigram index makes substring search fast in large stores. It needs an extension that comes with PostgreSQL but
-- that this user may not be allowed to switch on. Without it, every search reads the project and finds the same.
DO $$
DECLARE
    home text;
BEGIN
    BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm;
    EXCEPTION
        WHEN insufficient_privilege OR undefined_file OR feature_not_supported THEN NULL;
    END;
    SELECT quote_ident(n.nspname) INTO home
        FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace
        WHERE x.extname = 'pg_trgm' AND has_schema_privilege(n.oid, 'USAGE');
    IF home IS NOT NULL THEN
        EXECUTE format('CREATE INDEX entries_folded ON entries USING gin (folded %s.gin_trgm_ops)', home);
    END IF;
END
$$;

CREATE TABLE entry_tags (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, project, kind, tag, key)
);

-- Counts that replies show after every write, so that they cost a look-up and not a scan. The empty session is the
-- whole project, the empty tag is every entry. A label is the spelling a tag was first given.
CREATE TABLE tallies (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (tenant, project, kind, session, tag)
);

-- One row a change. It keeps what the entry was before; what it became is the next row's "before", or the entry.
CREATE TABLE events (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    by text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    detail text COLLATE "C" NOT NULL,
    before text COLLATE "C",
    PRIMARY KEY (tenant, project, seq)
);

CREATE UNIQUE INDEX events_of_entry ON events (tenant, project, kind, key, version);
