-- Texts get a number in the order they came, so that what stands around one can be found.
ALTER TABLE entries ADD COLUMN doc bigint GENERATED ALWAYS AS IDENTITY;

CREATE UNIQUE INDEX entries_doc ON entries (doc);

-- Kept outputs in pieces, for recall. They are indexed when somebody asks, not when an output is kept: keeping must be
-- fast, and most outputs are never asked about. An output without a row in here waits to be indexed.
CREATE TABLE output_pieces (
    doc bigint GENERATED ALWAYS AS IDENTITY,
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    start bigint NOT NULL,
    size bigint NOT NULL,
    line bigint NOT NULL,
    head text COLLATE "C" NOT NULL,
    terms tsvector NOT NULL,
    PRIMARY KEY (tenant, project, id, start)
);

CREATE UNIQUE INDEX output_pieces_doc ON output_pieces (doc);

CREATE INDEX output_pieces_terms ON output_pieces USING gin (terms);
