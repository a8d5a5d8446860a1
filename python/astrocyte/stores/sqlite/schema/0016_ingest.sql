-- Receipts of accepted webhook deliveries, so that none is accepted twice. delivery_key and digest are keyed digests.
-- signed_at is in seconds, expires_at in milliseconds; without it, a receipt stays.
CREATE TABLE webhook_receipts (
    source_id    TEXT    NOT NULL,
    delivery_key BLOB    NOT NULL,
    digest       BLOB    NOT NULL,
    signed_at    INTEGER NOT NULL,
    expires_at   INTEGER,
    PRIMARY KEY (source_id, delivery_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_receipts_expiry ON webhook_receipts (expires_at) WHERE expires_at IS NOT NULL;
