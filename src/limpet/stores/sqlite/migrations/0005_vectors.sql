-- What texts are about, as vectors, for recall. They are made when somebody asks, not when a text is written: a write must
-- not wait, and the model that makes them is an extra that need not be there. A text is known by its rowid in `entries`.

-- What is kept together has one number, and numbers only grow, so that a process can ask for what is new to it.
CREATE TABLE vectors (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    number INTEGER NOT NULL,
    doc INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, project, number, doc)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX vectors_doc ON vectors (doc);

-- Texts whose vectors are still to be made: written in the transaction that writes the text.
CREATE TABLE vectors_waiting (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    doc INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, doc)
) STRICT, WITHOUT ROWID;

-- The model that made the vectors of a project, and the number given last. Vectors of another model cannot be compared.
CREATE TABLE vector_models (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    model TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (tenant, project)
) STRICT, WITHOUT ROWID;

INSERT INTO vectors_waiting SELECT tenant, project, rowid FROM entries WHERE content <> '';
