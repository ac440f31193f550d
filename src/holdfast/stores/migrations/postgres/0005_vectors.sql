-- What texts are about, as vectors, for recall. They are made when somebody asks, not when a text is written: a write must
-- not wait, and the model that makes them is an extra that need not be there. A text is known by its `doc` in `entries`.

-- Numbers only grow within a project, so that a process can ask for what is new to it.
CREATE TABLE vectors (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    doc bigint NOT NULL UNIQUE,
    body bytea NOT NULL
);

-- Texts whose vectors are still to be made: written in the transaction that writes the text.
CREATE TABLE vectors_waiting (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    doc bigint NOT NULL,
    PRIMARY KEY (tenant, project, doc)
);

-- The model that made the vectors of a project. Those of another one cannot be compared.
CREATE TABLE vector_models (
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, project)
);

INSERT INTO vectors_waiting SELECT tenant, project, doc FROM entries WHERE content <> '';
