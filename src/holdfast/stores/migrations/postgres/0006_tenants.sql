-- Every key begins with the tenant, so that a tenant's rows can live on any server; and every row is shown to, and
-- taken from, its own tenant only, also when a statement of ours forgets to ask for it.

DROP INDEX entries_doc;

CREATE UNIQUE INDEX entries_doc ON entries (tenant, doc);

DROP INDEX output_pieces_doc;

CREATE UNIQUE INDEX output_pieces_doc ON output_pieces (tenant, doc);

DROP INDEX vectors_doc;

CREATE UNIQUE INDEX vectors_doc ON vectors (tenant, doc);

-- Whether this statement may read the rows of every tenant: the health check does, and searches that answer with numbers
-- alone. No index for words or substrings can be used under row-level security, because what compares them is not known
-- to keep what it sees to itself. So a search asks for numbers like this, and reads what they stand for under the rule.
--
-- It is called immutable although it reads a setting, so that it is worked out while a statement is planned, and a plan
-- is made with the rule or without it. Statements that may read everything are never kept prepared, so that no plan is
-- used twice. Nothing is ever written by way of it.
CREATE FUNCTION holdfast_unfiltered() RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN current_setting('holdfast.unfiltered', true) IS NOT DISTINCT FROM 'on';
END
$$;

-- Shows each row of a table to its own tenant only, to the owner of the table too. A connection that has not said which
-- tenant it works for sees nothing. That is why the name comes after a sign: a setting that nobody made, or that ended with
-- its transaction, is empty, and a tenant's name may be empty too. A later migration calls this for every new table with a tenant; one that moves rows
-- says NO FORCE ROW LEVEL SECURITY first and FORCE afterwards.
CREATE FUNCTION holdfast_protect(protected regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own CONSTANT text := 'tenant = substr(nullif(current_setting(''holdfast.tenant'', true), ''''), 2)';
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', protected);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', protected);
    EXECUTE format('CREATE POLICY own_tenant ON %s USING (%s) WITH CHECK (%s)', protected, own, own);
    EXECUTE format('CREATE POLICY unfiltered ON %s FOR SELECT USING (holdfast_unfiltered())', protected);
END
$$;

SELECT holdfast_protect('projects');
SELECT holdfast_protect('entries');
SELECT holdfast_protect('entry_tags');
SELECT holdfast_protect('tallies');
SELECT holdfast_protect('events');
SELECT holdfast_protect('outputs');
SELECT holdfast_protect('output_chunks');
SELECT holdfast_protect('output_tombstones');
SELECT holdfast_protect('output_pieces');
SELECT holdfast_protect('output_calls');
SELECT holdfast_protect('output_reads');
SELECT holdfast_protect('output_savings');
SELECT holdfast_protect('vectors');
SELECT holdfast_protect('vectors_waiting');
SELECT holdfast_protect('vector_models');
