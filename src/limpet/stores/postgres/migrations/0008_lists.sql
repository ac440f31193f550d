-- Rows of every tenant are counted here, so their protection is off for a moment.
ALTER TABLE entries NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tallies NO FORCE ROW LEVEL SECURITY;

-- How many entries are done, so that lists of open ones are counted without reading them.
INSERT INTO tallies SELECT tenant, project, 'done ' || kind, '', '', '', count(*) FROM entries WHERE done GROUP BY tenant, project, kind;

INSERT INTO tallies SELECT tenant, project, 'done ' || kind, session, '', '', count(*) FROM entries
WHERE done AND session <> '' GROUP BY tenant, project, kind, session;

ALTER TABLE entries FORCE ROW LEVEL SECURITY;
ALTER TABLE tallies FORCE ROW LEVEL SECURITY;
