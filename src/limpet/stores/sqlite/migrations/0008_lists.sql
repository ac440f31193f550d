-- Lists over all sessions are read in the order of an index.
CREATE INDEX entries_newest ON entries (tenant, project, kind, updated_at, key);

-- How many entries are done, so that lists of open ones are counted without reading them.
INSERT INTO tallies SELECT tenant, project, 'done ' || kind, '', '', '', count(*) FROM entries WHERE done = 1 GROUP BY tenant, project, kind;

INSERT INTO tallies SELECT tenant, project, 'done ' || kind, session, '', '', count(*) FROM entries
WHERE done = 1 AND session <> '' GROUP BY tenant, project, kind, session;

-- Two letters are found inside words too: the last two of each word join its longer endings.
INSERT OR IGNORE INTO pieces SELECT substr(word, -2), word FROM pieces WHERE piece = word AND length(word) > 2;
