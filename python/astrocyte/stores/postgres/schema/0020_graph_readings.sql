-- A version that is forgotten or replaced before the model read it does not wait; one that comes back does again.
CREATE FUNCTION graph_reading_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE graph_readings SET waiting = NULL WHERE row_key = NEW.row_key AND waiting = 1;
    RETURN NULL;
END $$;
CREATE TRIGGER graph_reading_ended AFTER UPDATE OF known_until, forgotten_at ON memories FOR EACH ROW
WHEN (NOT (NEW.known_until IS NULL AND NEW.forgotten_at IS NULL)) EXECUTE FUNCTION graph_reading_ended();

CREATE FUNCTION graph_reading_restored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE graph_readings SET waiting = 1 WHERE row_key = NEW.row_key AND revision = 0;
    RETURN NULL;
END $$;
CREATE TRIGGER graph_reading_restored AFTER UPDATE OF known_until, forgotten_at ON memories FOR EACH ROW
WHEN ((NEW.known_until IS NULL AND NEW.forgotten_at IS NULL) AND NOT (OLD.known_until IS NULL AND OLD.forgotten_at IS NULL))
EXECUTE FUNCTION graph_reading_restored();
