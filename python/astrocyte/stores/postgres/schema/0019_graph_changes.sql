-- The row gets a new number.
CREATE FUNCTION note_graph_change(of_bank bigint, of_kind text, of_key bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM graph_changes WHERE bank_key = of_bank AND kind = of_kind AND item_key = of_key;
    INSERT INTO graph_changes (bank_key, kind, item_key) VALUES (of_bank, of_kind, of_key);
END $$;

-- What statements insert into.
CREATE VIEW graph_changed AS SELECT bank_key, kind, item_key FROM graph_changes;

CREATE FUNCTION graph_change_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_graph_change(NEW.bank_key, NEW.kind, NEW.item_key);
    RETURN NEW;
END $$;
CREATE TRIGGER graph_change_noted INSTEAD OF INSERT ON graph_changed FOR EACH ROW
EXECUTE FUNCTION graph_change_noted();

-- As above, for an entity that came into sight, or went out of it, with its aliases and those links of callers that do
-- not themselves keep it in sight.
CREATE FUNCTION note_graph_sight(of_bank bigint, of_entity bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    link record;
BEGIN
    FOR link IN SELECT l.source_key FROM entity_links l
        WHERE l.target_key = of_entity AND l.link_type IN ('alias_of', 'distinct_from')
    LOOP PERFORM note_graph_change(of_bank, 'entity', link.source_key); END LOOP;
    FOR link IN SELECT l.target_key FROM entity_links l
        WHERE l.source_key = of_entity AND l.link_type IN ('alias_of', 'distinct_from')
    LOOP PERFORM note_graph_change(of_bank, 'entity', link.target_key); END LOOP;
    FOR link IN SELECT l.link_key FROM entity_links l
        WHERE l.source_key = of_entity AND l.origin = 'caller' AND l.link_type IN ('alias_of', 'distinct_from')
    LOOP PERFORM note_graph_change(of_bank, 'link', link.link_key); END LOOP;
    FOR link IN SELECT l.link_key FROM entity_links l
        WHERE l.target_key = of_entity AND l.origin = 'caller' AND l.link_type IN ('alias_of', 'distinct_from')
    LOOP PERFORM note_graph_change(of_bank, 'link', link.link_key); END LOOP;
    PERFORM note_graph_change(of_bank, 'entity', of_entity);
END $$;

-- A link of a caller may be all that an end is seen by.
CREATE FUNCTION note_graph_link(link entity_links) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    entity record;
BEGIN
    IF link.origin = 'caller' THEN
        PERFORM note_graph_change(link.bank_key, 'link', link.link_key);
    END IF;
    PERFORM note_graph_change(link.bank_key, 'entity', link.source_key);
    PERFORM note_graph_change(link.bank_key, 'entity', link.target_key);
    FOR entity IN SELECT bank_key, entity_key FROM graph_entities
        WHERE entity_key IN (link.source_key, link.target_key) AND mention_count = 0
    LOOP PERFORM note_graph_sight(entity.bank_key, entity.entity_key); END LOOP;
END $$;

CREATE FUNCTION graph_link_made() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_graph_link(NEW);
    RETURN NULL;
END $$;
CREATE TRIGGER graph_link_made AFTER INSERT ON entity_links FOR EACH ROW
WHEN (NEW.origin = 'caller' OR NEW.link_type = 'alias_of') EXECUTE FUNCTION graph_link_made();

CREATE FUNCTION graph_link_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_graph_link(OLD);
    RETURN NULL;
END $$;
CREATE TRIGGER graph_link_deleted AFTER DELETE ON entity_links FOR EACH ROW
WHEN (OLD.origin = 'caller' OR OLD.link_type = 'alias_of') EXECUTE FUNCTION graph_link_deleted();

CREATE FUNCTION graph_link_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_graph_change(NEW.bank_key, 'link', NEW.link_key);
    RETURN NULL;
END $$;
CREATE TRIGGER graph_link_changed AFTER UPDATE OF evidence, confidence, metadata ON entity_links FOR EACH ROW
WHEN (NEW.origin = 'caller') EXECUTE FUNCTION graph_link_changed();

CREATE FUNCTION graph_entity_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_graph_change(NEW.bank_key, 'entity', NEW.entity_key);
    RETURN NULL;
END $$;
CREATE TRIGGER graph_entity_changed AFTER UPDATE OF given_name, aliases, metadata ON graph_entities FOR EACH ROW
EXECUTE FUNCTION graph_entity_changed();

-- What is in the table already, and nothing else, may be in a store.
CREATE FUNCTION graph_entity_seen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM graph_changes c
        WHERE c.bank_key = NEW.bank_key AND c.kind = 'entity' AND c.item_key = NEW.entity_key)
    THEN
        PERFORM note_graph_sight(NEW.bank_key, NEW.entity_key);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER graph_entity_seen AFTER UPDATE OF mention_count ON graph_entities FOR EACH ROW
WHEN ((OLD.mention_count > 0) <> (NEW.mention_count > 0)) EXECUTE FUNCTION graph_entity_seen();

CREATE FUNCTION graph_entity_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM graph_changes c
        WHERE c.bank_key = OLD.bank_key AND c.kind = 'entity' AND c.item_key = OLD.entity_key)
    THEN
        PERFORM note_graph_change(OLD.bank_key, 'entity', OLD.entity_key);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER graph_entity_deleted AFTER DELETE ON graph_entities FOR EACH ROW EXECUTE FUNCTION graph_entity_deleted();

-- Aliases that a version states are those of its memory.
CREATE FUNCTION graph_alias_seen() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    link record;
BEGIN
    FOR link IN SELECT l.bank_key, l.source_key FROM entity_links l
        WHERE l.row_key = NEW.row_key AND l.link_type = 'alias_of'
    LOOP PERFORM note_graph_change(link.bank_key, 'entity', link.source_key); END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER graph_alias_seen AFTER UPDATE OF known_until, forgotten_at ON memories FOR EACH ROW
WHEN ((OLD.known_until IS NULL AND OLD.forgotten_at IS NULL) <> (NEW.known_until IS NULL AND NEW.forgotten_at IS NULL))
EXECUTE FUNCTION graph_alias_seen();
