-- What texts are about, as vectors, for recall. They are made when somebody asks, not when a text is written: a write must
-- not wait, and the model that makes them is an extra that need not be there. A text is known by its rowid in `entries`.

-- Numbers only grow, so that a process can ask for what is new to it.
CREATE TABLE vectors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    doc INTEGER NOT NULL UNIQUE,
    body BLOB NOT NULL
) STRICT;

-- Texts whose vectors are still to be made: written in the transaction that writes the text.
CREATE TABLE vectors_waiting (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    doc INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, doc)
) STRICT, WITHOUT ROWID;

-- The model that made the vectors of a project. Those of another one cannot be compared.
CREATE TABLE vector_models (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    model TEXT NOT NULL,
    PRIMARY KEY (tenant, project)
) STRICT, WITHOUT ROWID;

INSERT INTO vectors_waiting SELECT tenant, project, rowid FROM entries WHERE content <> '';
