-- sealing is 1 from the first start of a server that encrypts new banks.
INSERT INTO store_values VALUES ('sealing', 0);
