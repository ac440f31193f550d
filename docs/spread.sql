-- One Holdfast over several PostgreSQL servers. Tenants are spread over them by a hash of their names: PostgreSQL's own
-- partitions, on other servers by way of postgres_fdw. Holdfast is given the address of one server, the coordinator, and
-- runs the same statements as on a single one; which server a row lives on is decided by PostgreSQL alone.
--
-- 1. On each node: a role that the coordinator comes as, and for each part it holds a schema with Holdfast's tables. The
--    coordinator decides who sees which row, so the role passes row-level security on the nodes.
--
--        CREATE ROLE holdfast_part LOGIN BYPASSRLS PASSWORD '…';
--        CREATE SCHEMA part_0 AUTHORIZATION holdfast_part;
--        $ holdfast doctor --store 'postgresql://holdfast_part@node0/holdfast?options=-csearch_path%3Dpart_0'
--
-- 2. On the coordinator, as a superuser: where the nodes are. Waiting must have an end on the nodes too.
--
--        CREATE EXTENSION postgres_fdw;
--        CREATE SERVER node0 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'node0', dbname 'holdfast',
--            options '-c lock_timeout=30000 -c statement_timeout=60000 -c idle_in_transaction_session_timeout=60000');
--        CREATE USER MAPPING FOR holdfast SERVER node0 OPTIONS (user 'holdfast_part', password '…');
--        GRANT USAGE ON FOREIGN SERVER node0 TO holdfast;
--
-- 3. On the coordinator, as the role that Holdfast uses, in a database in which it has made its tables and nothing else
--    (`holdfast doctor` makes them): this file, and then the parts, of which part n goes to the server named n-th,
--    beginning anew at the end of the list. Take several times more parts than servers: a part can be moved to another
--    server later (copy its schema, then ALTER FOREIGN TABLE), but their number is for good.
--
--        CALL holdfast_spread(ARRAY['node0', 'node1', 'node2'], 12);
--
-- After an upgrade of Holdfast with a new schema, do 1 and 3 for the tables that are new, before it is started.

CREATE PROCEDURE holdfast_spread(servers text[], parts integer) LANGUAGE plpgsql AS $$
DECLARE
    own CONSTANT text := $own$(tenant = substr(nullif(current_setting('holdfast.tenant', true), ''), 2)) IS TRUE$own$;
    whole record;
    numbered record;
    anything boolean;
BEGIN
    FOR whole IN
        SELECT c.oid, c.relname AS name FROM pg_class c
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
            WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
            ORDER BY c.relname
    LOOP
        PERFORM set_config('holdfast.unfiltered', 'on', true);
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', whole.name) INTO anything;
        PERFORM set_config('holdfast.unfiltered', 'off', true);
        IF anything THEN
            RAISE EXCEPTION 'table % is not empty; spread an empty store and import into it', whole.name;
        END IF;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', whole.name, whole.name || '_whole');
        EXECUTE format('CREATE TABLE %I (LIKE %I) PARTITION BY HASH (tenant)', whole.name, whole.name || '_whole');
        -- Numbers of texts are drawn here, so that they are in one order whichever server keeps the text.
        FOR numbered IN SELECT a.attname AS name FROM pg_attribute a WHERE a.attrelid = whole.oid AND a.attidentity <> ''
        LOOP
            EXECUTE format('CREATE SEQUENCE %I OWNED BY %I.%I', whole.name || '_numbers', whole.name, numbered.name);
            EXECUTE format('ALTER TABLE %I ALTER %I SET DEFAULT nextval(%L)', whole.name, numbered.name,
                           whole.name || '_numbers');
        END LOOP;
        EXECUTE format('DROP TABLE %I', whole.name || '_whole');
        PERFORM holdfast_protect(whole.name::regclass);
        -- The same rule, but not as a plain equation: PostgreSQL would put it together with what a statement itself asks
        -- of the tenant, and then send neither of them to the node, which would look through all of its tenants.
        EXECUTE format('ALTER POLICY own_tenant ON %I USING (%s)', whole.name, own);
        FOR part IN 0 .. parts - 1 LOOP
            EXECUTE format('CREATE FOREIGN TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s) '
                           'SERVER %I OPTIONS (schema_name %L, table_name %L)', whole.name || '_part_' || part, whole.name,
                           parts, part, servers[part % cardinality(servers) + 1], 'part_' || part, whole.name);
        END LOOP;
    END LOOP;
END
$$;
