-- What people do to ended instances, and keys of triggers. Older programs may go
-- on using the store: they do not show verdicts, and know no keys.

-- A person's verdict; NULL is none. Whose retry an instance is, its slot_key tells.
ALTER TABLE instance ADD COLUMN verdict TEXT;

-- What a trigger with a key made. It outlives the instance.
CREATE TABLE trigger_key (
    object_id   INTEGER NOT NULL,
    key         TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL,
    instance_id INTEGER NOT NULL,
    due_ms      INTEGER NOT NULL,
    slot_key    TEXT    NOT NULL,
    PRIMARY KEY (object_id, key)
) WITHOUT ROWID;

CREATE INDEX trigger_key_at ON trigger_key (at_ms);
