CREATE FUNCTION waiting_copies_come() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outboxes VALUES (NEW.engine, 1) ON CONFLICT (engine) DO UPDATE SET waiting = outboxes.waiting + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER waiting_copies_come AFTER INSERT ON waiting_copies
    FOR EACH ROW EXECUTE FUNCTION waiting_copies_come();

CREATE FUNCTION waiting_copies_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE outboxes SET waiting = waiting - 1 WHERE engine = OLD.engine;
    RETURN NULL;
END $$;
CREATE TRIGGER waiting_copies_go AFTER DELETE ON waiting_copies
    FOR EACH ROW EXECUTE FUNCTION waiting_copies_go();
