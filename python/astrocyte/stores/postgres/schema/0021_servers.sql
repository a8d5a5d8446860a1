-- Servers of one database are numbered as they start. Rows of `told` say when they were written, by the database's clock
-- in milliseconds: a server that cannot reach the database for a while finds what it missed.
CREATE SEQUENCE server_numbers;
ALTER TABLE told ADD COLUMN told_at bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
