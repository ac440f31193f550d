-- One Limpet over several PostgreSQL servers. Tenants are spread over them by a hash of their names: PostgreSQL's own
-- partitions, on other servers by way of postgres_fdw. Limpet is given the address of one server, the coordinator, and
-- runs the same statements as on a single one; which server a row lives on is decided by PostgreSQL alone.
--
-- 1. On each node: a role that the coordinator comes as, and for each part it holds a schema with Limpet's tables. The
--    coordinator decides who sees which row, so the role passes row-level security on the nodes.
--
--        CREATE ROLE limpet_part LOGIN BYPASSRLS PASSWORD '…';
--        CREATE SCHEMA part_0 AUTHORIZATION limpet_part;
--        $ limpet doctor --store 'postgresql://limpet_part@node0/limpet?options=-csearch_path%3Dpart_0'
--
-- 2. On the coordinator, as a superuser: where the nodes are. Waiting must have an end on the nodes too.
--
--        CREATE EXTENSION postgres_fdw;
--        CREATE SERVER node0 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'node0', dbname 'limpet',
--            options '-c lock_timeout=30000 -c statement_timeout=60000 -c idle_in_transaction_session_timeout=60000');
--        CREATE USER MAPPING FOR limpet SERVER node0 OPTIONS (user 'limpet_part', password '…');
--        GRANT USAGE ON FOREIGN SERVER node0 TO limpet;
--
-- 3. On the coordinator, as the role that Limpet uses, in a database in which it has made its tables and nothing else
--    (`limpet doctor` makes them): this file, and then the parts, of which part n goes to the server named n-th,
--    beginning anew at the end of the list. Take several times more parts than servers: a part can be moved to another
--    server later (copy its schema, then ALTER FOREIGN TABLE), but their number is for good.
--
--        CALL limpet_spread(ARRAY['node0', 'node1', 'node2'], 12);
--
-- A new schema, after an upgrade of Limpet. It refuses to open the store of an older one that is spread, and changes
-- nothing in it. The coordinator holds no rows, so it is made anew over the same parts, and no row is moved:
--
-- 1. Stop every Limpet that uses the store, and take a base backup of each node.
-- 2. On each node, for each part, with the new version: `limpet doctor --store '…search_path%3Dpart_0'`, as above. It
--    brings the part to the new schema; if it is stopped in between, run it again.
-- 3. On the coordinator, in a new database: 2 and 3 from above with the same servers in the same order and the same number
--    of parts. The procedure refuses parts of another schema, and goes on counting where the parts end.
-- 4. Give Limpet the address of the new database; drop the old one when all is well.

CREATE OR REPLACE PROCEDURE limpet_spread(servers text[], parts integer) LANGUAGE plpgsql AS $$
DECLARE
    own CONSTANT text := $own$(tenant = substr(nullif(current_setting('limpet.tenant', true), ''), 2)) IS TRUE$own$;
    tables CONSTANT text[] := ARRAY(
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
            WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY c.relname);
    here CONSTANT integer := (SELECT version FROM limpet_schema);
    name text;
    numbered text;
    server text;
    there integer;
    wrong boolean;
BEGIN
    PERFORM set_config('limpet.unfiltered', 'on', true);
    FOREACH name IN ARRAY tables LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', name) INTO wrong;
        IF wrong THEN
            RAISE EXCEPTION 'table % is not empty; spread an empty store, and restore a backup into it', name;
        END IF;
    END LOOP;
    FOR part IN 0 .. parts - 1 LOOP
        server := servers[part % cardinality(servers) + 1];
        EXECUTE format('CREATE FOREIGN TABLE limpet_schema_part (version integer) SERVER %I '
                       'OPTIONS (schema_name %L, table_name %L)', server, 'part_' || part, 'limpet_schema');
        EXECUTE 'SELECT version FROM limpet_schema_part' INTO there;
        IF there IS DISTINCT FROM here THEN
            RAISE EXCEPTION 'part_% has schema %, and this database %; run `limpet doctor` on the part', part, there, here;
        END IF;
        EXECUTE 'DROP FOREIGN TABLE limpet_schema_part';
    END LOOP;
    FOREACH name IN ARRAY tables LOOP
        EXECUTE format('ALTER TABLE %I RENAME TO %I', name, name || '_whole');
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS) PARTITION BY HASH (tenant)', name, name || '_whole');
        FOR part IN 0 .. parts - 1 LOOP
            server := servers[part % cardinality(servers) + 1];
            EXECUTE format('CREATE FOREIGN TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s) '
                           'SERVER %I OPTIONS (schema_name %L, table_name %L)', name || '_part_' || part, name,
                           parts, part, server, 'part_' || part, name);
            -- Parts that hold something already must be the same ones as before. The hash is worked out here.
            IF name = 'projects' THEN
                EXECUTE format('WITH held AS MATERIALIZED (SELECT tenant FROM %I) SELECT EXISTS (SELECT FROM held '
                               'WHERE NOT satisfies_hash_partition(%L::regclass, %s, %s, tenant))',
                               name || '_part_' || part, name, parts, part) INTO wrong;
                IF wrong THEN
                    RAISE EXCEPTION 'part_% holds tenants of another part; take as many parts as there were before', part;
                END IF;
            END IF;
        END LOOP;
        -- Numbers of texts are drawn here, so that they are in one order whichever server keeps the text. They go on after
        -- those that are in the parts.
        FOR numbered IN
            SELECT a.attname FROM pg_attribute a WHERE a.attrelid = (name || '_whole')::regclass AND a.attidentity <> ''
        LOOP
            EXECUTE format('CREATE SEQUENCE %I OWNED BY %I.%I', name || '_numbers', name, numbered);
            EXECUTE format('ALTER TABLE %I ALTER %I SET DEFAULT nextval(%L)', name, numbered, name || '_numbers');
            FOR part IN 0 .. parts - 1 LOOP
                EXECUTE format('SELECT setval(%L, greatest(nextval(%L), max(%I) + 1), false) FROM %I', name || '_numbers',
                               name || '_numbers', numbered, name || '_part_' || part);
            END LOOP;
        END LOOP;
        EXECUTE format('DROP TABLE %I', name || '_whole');
        PERFORM limpet_protect(name::regclass);
        -- The same rule, but not as a plain equation: PostgreSQL would put it together with what a statement itself asks
        -- of the tenant, and then send neither of them to the node, which would look through all of its tenants.
        EXECUTE format('ALTER POLICY own_tenant ON %I USING (%s)', name, own);
    END LOOP;
    PERFORM set_config('limpet.unfiltered', 'off', true);
END
$$;
