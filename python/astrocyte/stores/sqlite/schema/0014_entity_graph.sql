-- The entity graph of each bank: entities, their mentions, links between them. Mentions and stated links are derived from
-- memories, belong to versions by row_key, and can be derived again; names, aliases, metadata and links of callers cannot.

-- entity_id is the type and the normalised name. mention_count counts mentions in current versions that are not
-- forgotten; the triggers below keep it. unresolved is 1 while its aliases have to be looked for by rules, else NULL;
-- judged is 1 once a language model was asked for them, else NULL. aliases and metadata are JSON.
CREATE TABLE graph_entities (
    entity_key    INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_key      INTEGER NOT NULL,
    entity_id     TEXT    NOT NULL,
    entity_type   TEXT    NOT NULL,
    mention_count INTEGER NOT NULL DEFAULT 0,
    given_name    TEXT,
    aliases       TEXT    NOT NULL DEFAULT '[]',
    metadata      TEXT    NOT NULL DEFAULT '{}',
    revision      INTEGER NOT NULL DEFAULT 1,
    unresolved    INTEGER,
    judged        INTEGER,
    UNIQUE (bank_key, entity_id)
) STRICT;

CREATE INDEX graph_entities_unresolved ON graph_entities (entity_key) WHERE unresolved = 1;
CREATE INDEX graph_entities_unjudged ON graph_entities (entity_key) WHERE judged IS NULL;

-- Where a version names an entity: characters of the content, or -1 for a name beside it, such as the speaker.
CREATE TABLE entity_mentions (
    row_key    INTEGER NOT NULL,
    entity_key INTEGER NOT NULL,
    first_char INTEGER NOT NULL,
    end_char   INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    confidence REAL    NOT NULL,
    PRIMARY KEY (row_key, entity_key, first_char)
) STRICT, WITHOUT ROWID;

CREATE INDEX entity_mentions_of ON entity_mentions (entity_key, row_key);

-- Words by which entities are searched for, and compared with each other.
CREATE TABLE entity_words (
    bank_key   INTEGER NOT NULL,
    word       TEXT    NOT NULL,
    entity_key INTEGER NOT NULL,
    PRIMARY KEY (bank_key, word, entity_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX entity_words_of ON entity_words (entity_key);

-- origin is memory (stated by the version row_key, evidence at its characters), resolution or model (two names of one
-- entity, by rules or a language model) or caller (evidence as given). metadata is JSON.
CREATE TABLE entity_links (
    link_key    INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_key    INTEGER NOT NULL,
    source_key  INTEGER NOT NULL,
    target_key  INTEGER NOT NULL,
    link_type   TEXT    NOT NULL,
    origin      TEXT    NOT NULL,
    row_key     INTEGER,
    first_char  INTEGER,
    end_char    INTEGER,
    evidence    TEXT    NOT NULL,
    confidence  REAL    NOT NULL,
    created_at  INTEGER NOT NULL,
    valid_from  INTEGER,
    valid_until INTEGER,
    metadata    TEXT    NOT NULL
) STRICT;

CREATE INDEX entity_links_from ON entity_links (source_key, link_type);
CREATE INDEX entity_links_to ON entity_links (target_key, link_type);
CREATE INDEX entity_links_stated ON entity_links (row_key) WHERE row_key IS NOT NULL;
CREATE INDEX entity_links_of_bank ON entity_links (bank_key, origin);

-- Versions up to this row key have their derived rows.
CREATE TABLE entity_graph_progress (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    row_key INTEGER NOT NULL
) STRICT;

INSERT INTO entity_graph_progress VALUES (1, 0);

-- Banks whose derived rows are being made again, and how far that is.
CREATE TABLE graph_rebuilds (
    bank_key      INTEGER PRIMARY KEY,
    row_key       INTEGER NOT NULL,
    until_row_key INTEGER NOT NULL
) STRICT;

CREATE TRIGGER entity_mentioned AFTER INSERT ON entity_mentions
WHEN EXISTS (SELECT 1 FROM memories m WHERE m.row_key = NEW.row_key AND m.known_until IS NULL AND m.forgotten_at IS NULL)
BEGIN
    UPDATE graph_entities SET mention_count = mention_count + 1 WHERE entity_key = NEW.entity_key;
END;

CREATE TRIGGER entity_unmentioned AFTER DELETE ON entity_mentions
WHEN EXISTS (SELECT 1 FROM memories m WHERE m.row_key = OLD.row_key AND m.known_until IS NULL AND m.forgotten_at IS NULL)
BEGIN
    UPDATE graph_entities SET mention_count = mention_count - 1 WHERE entity_key = OLD.entity_key;
END;

CREATE TRIGGER entity_mentions_ended AFTER UPDATE OF known_until, forgotten_at ON memories
WHEN (OLD.known_until IS NULL AND OLD.forgotten_at IS NULL) AND NOT (NEW.known_until IS NULL AND NEW.forgotten_at IS NULL)
BEGIN
    UPDATE graph_entities SET mention_count = mention_count
        - (SELECT count(*) FROM entity_mentions n WHERE n.row_key = NEW.row_key AND n.entity_key = graph_entities.entity_key)
    WHERE entity_key IN (SELECT n.entity_key FROM entity_mentions n WHERE n.row_key = NEW.row_key);
END;

CREATE TRIGGER entity_mentions_restored AFTER UPDATE OF known_until, forgotten_at ON memories
WHEN (NEW.known_until IS NULL AND NEW.forgotten_at IS NULL) AND NOT (OLD.known_until IS NULL AND OLD.forgotten_at IS NULL)
BEGIN
    UPDATE graph_entities SET mention_count = mention_count
        + (SELECT count(*) FROM entity_mentions n WHERE n.row_key = NEW.row_key AND n.entity_key = graph_entities.entity_key)
    WHERE entity_key IN (SELECT n.entity_key FROM entity_mentions n WHERE n.row_key = NEW.row_key);
END;
