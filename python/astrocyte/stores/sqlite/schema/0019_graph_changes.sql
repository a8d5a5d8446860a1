-- What of the entity graphs external graph stores have to look at again, in the order of changes: entities with fields
-- of callers, aliases or links of callers, and links of callers. Each has one row, with the number of its last change; a
-- row whose entity or link is gone, or hidden, tells stores to delete theirs. kind is entity (item_key is an entity_key),
-- link (a link_key) or refill (0: stores begin the bank anew, and everything that is there comes after it).
CREATE TABLE graph_changes (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_key INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    item_key INTEGER NOT NULL,
    UNIQUE (bank_key, kind, item_key)
) STRICT;

CREATE INDEX graph_changes_of_bank ON graph_changes (bank_key, number);

-- What there was before this table.
INSERT INTO graph_changes (bank_key, kind, item_key)
SELECT bank_key, 'entity', entity_key FROM graph_entities e
WHERE given_name IS NOT NULL OR aliases <> '[]' OR metadata <> '{}'
    OR EXISTS (SELECT 1 FROM entity_links l WHERE l.source_key = e.entity_key AND (l.origin = 'caller' OR l.link_type = 'alias_of'))
    OR EXISTS (SELECT 1 FROM entity_links l WHERE l.target_key = e.entity_key AND (l.origin = 'caller' OR l.link_type = 'alias_of'))
ORDER BY entity_key;

INSERT INTO graph_changes (bank_key, kind, item_key)
SELECT bank_key, 'link', link_key FROM entity_links WHERE origin = 'caller' ORDER BY link_key;

-- A view to insert into, so that each trigger says only what changed. The row gets a new number.
CREATE VIEW graph_changed AS SELECT bank_key, kind, item_key FROM graph_changes;

CREATE TRIGGER graph_change_noted INSTEAD OF INSERT ON graph_changed
BEGIN
    DELETE FROM graph_changes WHERE bank_key = NEW.bank_key AND kind = NEW.kind AND item_key = NEW.item_key;
    INSERT INTO graph_changes (bank_key, kind, item_key) VALUES (NEW.bank_key, NEW.kind, NEW.item_key);
END;

-- As above, for an entity that came into sight, or went out of it: with it go its aliases, and those links of callers that
-- do not themselves keep it in sight. What is held of the other ends may depend on these.
CREATE VIEW graph_sight AS SELECT bank_key, item_key AS entity_key FROM graph_changes;

CREATE TRIGGER graph_sight_noted INSTEAD OF INSERT ON graph_sight
BEGIN
    INSERT INTO graph_changed
        SELECT NEW.bank_key, 'entity', l.source_key FROM entity_links l
        WHERE l.target_key = NEW.entity_key AND l.link_type IN ('alias_of', 'distinct_from');
    INSERT INTO graph_changed
        SELECT NEW.bank_key, 'entity', l.target_key FROM entity_links l
        WHERE l.source_key = NEW.entity_key AND l.link_type IN ('alias_of', 'distinct_from');
    INSERT INTO graph_changed
        SELECT NEW.bank_key, 'link', l.link_key FROM entity_links l
        WHERE l.source_key = NEW.entity_key AND l.origin = 'caller' AND l.link_type IN ('alias_of', 'distinct_from');
    INSERT INTO graph_changed
        SELECT NEW.bank_key, 'link', l.link_key FROM entity_links l
        WHERE l.target_key = NEW.entity_key AND l.origin = 'caller' AND l.link_type IN ('alias_of', 'distinct_from');
    INSERT INTO graph_changed VALUES (NEW.bank_key, 'entity', NEW.entity_key);
END;

CREATE TRIGGER graph_link_made AFTER INSERT ON entity_links
WHEN NEW.origin = 'caller' OR NEW.link_type = 'alias_of'
BEGIN
    INSERT INTO graph_changed SELECT NEW.bank_key, 'link', NEW.link_key WHERE NEW.origin = 'caller';
    INSERT INTO graph_changed VALUES (NEW.bank_key, 'entity', NEW.source_key);
    INSERT INTO graph_changed VALUES (NEW.bank_key, 'entity', NEW.target_key);
    -- A link of a caller may be all that an end is seen by.
    INSERT INTO graph_sight
        SELECT bank_key, entity_key FROM graph_entities
        WHERE entity_key IN (NEW.source_key, NEW.target_key) AND mention_count = 0;
END;

CREATE TRIGGER graph_link_deleted AFTER DELETE ON entity_links
WHEN OLD.origin = 'caller' OR OLD.link_type = 'alias_of'
BEGIN
    INSERT INTO graph_changed SELECT OLD.bank_key, 'link', OLD.link_key WHERE OLD.origin = 'caller';
    INSERT INTO graph_changed VALUES (OLD.bank_key, 'entity', OLD.source_key);
    INSERT INTO graph_changed VALUES (OLD.bank_key, 'entity', OLD.target_key);
    INSERT INTO graph_sight
        SELECT bank_key, entity_key FROM graph_entities
        WHERE entity_key IN (OLD.source_key, OLD.target_key) AND mention_count = 0;
END;

CREATE TRIGGER graph_link_changed AFTER UPDATE OF evidence, confidence, metadata ON entity_links
WHEN NEW.origin = 'caller'
BEGIN
    INSERT INTO graph_changed VALUES (NEW.bank_key, 'link', NEW.link_key);
END;

CREATE TRIGGER graph_entity_changed AFTER UPDATE OF given_name, aliases, metadata ON graph_entities
BEGIN
    INSERT INTO graph_changed VALUES (NEW.bank_key, 'entity', NEW.entity_key);
END;

-- What is in the table already, and nothing else, may be in a store.
CREATE TRIGGER graph_entity_seen AFTER UPDATE OF mention_count ON graph_entities
WHEN (OLD.mention_count > 0) <> (NEW.mention_count > 0) AND EXISTS (
    SELECT 1 FROM graph_changes c
    WHERE c.bank_key = NEW.bank_key AND c.kind = 'entity' AND c.item_key = NEW.entity_key
)
BEGIN
    INSERT INTO graph_sight VALUES (NEW.bank_key, NEW.entity_key);
END;

CREATE TRIGGER graph_entity_deleted AFTER DELETE ON graph_entities
WHEN EXISTS (
    SELECT 1 FROM graph_changes c
    WHERE c.bank_key = OLD.bank_key AND c.kind = 'entity' AND c.item_key = OLD.entity_key
)
BEGIN
    INSERT INTO graph_changed VALUES (OLD.bank_key, 'entity', OLD.entity_key);
END;

-- Aliases that a version states are those of its memory.
CREATE TRIGGER graph_alias_seen AFTER UPDATE OF known_until, forgotten_at ON memories
WHEN (OLD.known_until IS NULL AND OLD.forgotten_at IS NULL) <> (NEW.known_until IS NULL AND NEW.forgotten_at IS NULL)
BEGIN
    INSERT INTO graph_changed
        SELECT l.bank_key, 'entity', l.source_key FROM entity_links l
        WHERE l.row_key = NEW.row_key AND l.link_type = 'alias_of';
END;
