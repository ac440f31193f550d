-- Every key begins with the tenant. In a file of one's own this decides nothing; it is the same in both stores.
DROP INDEX vectors_doc;

CREATE UNIQUE INDEX vectors_doc ON vectors (tenant, doc);
