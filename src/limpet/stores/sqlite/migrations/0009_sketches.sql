-- Which texts may say the same: a number for the longest words of each open note and memory, and beside it one for these
-- with the whole text (0 in the row of the words alone). What it finds is compared, so a number that stays is harmless.
CREATE TABLE sketches (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    near INTEGER NOT NULL,
    exact INTEGER NOT NULL,
    doc INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, near, exact, doc)
) STRICT, WITHOUT ROWID;

INSERT INTO sketches
SELECT tenant, project, sketch(kind, content, number, 0), sketch(kind, content, number, 1), rowid
FROM entries CROSS JOIN (SELECT 0 AS number UNION ALL SELECT 1)
WHERE kind IN ('note', 'memory') AND done = 0 AND sketch(kind, content, number, 0) IS NOT NULL;

-- New texts join the word index in batches, or before the next search: those with a greater number than this one wait.
-- It is derived data: what a power cut takes of it is done again.
CREATE TABLE indexed (last INTEGER NOT NULL) STRICT;

INSERT INTO indexed SELECT coalesce(max(rowid), 0) FROM entries;
