-- Backfills. Older programs may go on using the store: they run the instances
-- that are made, and an older axd makes no more of them.

-- Its instances have the slot keys b:ID:DUE. Rows are never deleted, since their
-- ids must not be given twice.
CREATE TABLE backfill (
    id          INTEGER PRIMARY KEY,
    task_id     INTEGER NOT NULL,
    version     INTEGER NOT NULL, -- whose slots they are, and what runs
    from_ms     INTEGER NOT NULL,
    to_ms       INTEGER NOT NULL, -- the first instant after the range
    mode        TEXT    NOT NULL, -- missing, failed, all
    parallel    INTEGER NOT NULL,
    slots       INTEGER,          -- of the range; NULL: not counted
    who         TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL,
    state       TEXT    NOT NULL, -- running, paused, done, cancelled
    position_ms INTEGER NOT NULL, -- every slot before it is decided
    made        INTEGER NOT NULL,
    passed      INTEGER NOT NULL,
    by_who      TEXT,
    by_ms       INTEGER,
    reason      TEXT,
    ended_ms    INTEGER
);

CREATE INDEX backfill_task ON backfill (task_id);
CREATE INDEX backfill_open ON backfill (id) WHERE ended_ms IS NULL;
