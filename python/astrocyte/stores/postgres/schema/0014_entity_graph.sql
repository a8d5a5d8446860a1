INSERT INTO entity_graph_progress VALUES (1, 0);

-- Links come without a key where they come together.
CREATE FUNCTION entity_link_numbered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.link_key := nextval(pg_get_serial_sequence('entity_links', 'link_key'));
    RETURN NEW;
END $$;
CREATE TRIGGER entity_link_numbered BEFORE INSERT ON entity_links FOR EACH ROW
WHEN (NEW.link_key IS NULL) EXECUTE FUNCTION entity_link_numbered();

CREATE FUNCTION entity_mentioned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM memories m WHERE m.row_key = NEW.row_key AND m.known_until IS NULL AND m.forgotten_at IS NULL)
    THEN
        UPDATE graph_entities SET mention_count = mention_count + 1 WHERE entity_key = NEW.entity_key;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER entity_mentioned AFTER INSERT ON entity_mentions FOR EACH ROW EXECUTE FUNCTION entity_mentioned();

CREATE FUNCTION entity_unmentioned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM memories m WHERE m.row_key = OLD.row_key AND m.known_until IS NULL AND m.forgotten_at IS NULL)
    THEN
        UPDATE graph_entities SET mention_count = mention_count - 1 WHERE entity_key = OLD.entity_key;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER entity_unmentioned AFTER DELETE ON entity_mentions FOR EACH ROW EXECUTE FUNCTION entity_unmentioned();

-- direction is -1 where a version ended, 1 where it came back.
CREATE FUNCTION entity_mentions_counted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    direction bigint := CASE WHEN NEW.known_until IS NULL AND NEW.forgotten_at IS NULL THEN 1 ELSE -1 END;
BEGIN
    UPDATE graph_entities SET mention_count = mention_count + direction
        * (SELECT count(*) FROM entity_mentions n WHERE n.row_key = NEW.row_key AND n.entity_key = graph_entities.entity_key)
    WHERE entity_key IN (SELECT n.entity_key FROM entity_mentions n WHERE n.row_key = NEW.row_key);
    RETURN NULL;
END $$;
CREATE TRIGGER entity_mentions_counted AFTER UPDATE OF known_until, forgotten_at ON memories FOR EACH ROW
WHEN ((OLD.known_until IS NULL AND OLD.forgotten_at IS NULL) <> (NEW.known_until IS NULL AND NEW.forgotten_at IS NULL))
EXECUTE FUNCTION entity_mentions_counted();
