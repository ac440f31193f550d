-- What texts are about, as vectors, for recall. They are made when somebody asks, not when a text is written: a write must
-- not wait, and the model that makes them is an extra that need not be there. A text is known by its `doc` in `entries`.

-- What is kept together has one number, and numbers only grow, so that a process can ask for what is new to it.
CREATE TABLE vectors (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    doc bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, project, number, doc)
);

CREATE UNIQUE INDEX vectors_doc ON vectors (doc);

-- Texts whose vectors are still to be made: written in the transaction that writes the text.
CREATE TABLE vectors_waiting (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    doc bigint NOT NULL,
    PRIMARY KEY (tenant, project, doc)
);

-- The model that made the vectors of a project, and the number given last. Vectors of another model cannot be compared.
CREATE TABLE vector_models (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (tenant, project)
);

INSERT INTO vectors_waiting SELECT tenant, project, doc FROM entries WHERE content <> '';
