-- Where each word stands: which text, and at which place in it. A view of the word index that stores nothing itself.
CREATE VIRTUAL TABLE terms_at USING fts5vocab('terms', 'instance');

-- Kept outputs in pieces, for recall. They are indexed when somebody asks, not when an output is kept: keeping must be
-- fast, and most outputs are never asked about. An output without a row in here waits to be indexed. The index knows a
-- piece by its rowid.
CREATE TABLE output_pieces (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    start INTEGER NOT NULL,
    size INTEGER NOT NULL,
    line INTEGER NOT NULL,
    head TEXT NOT NULL,
    PRIMARY KEY (tenant, project, id, start)
) STRICT;

CREATE VIRTUAL TABLE output_terms USING fts5(text, content='', contentless_delete=1, tokenize='ascii');

CREATE VIRTUAL TABLE output_terms_at USING fts5vocab('output_terms', 'instance');
