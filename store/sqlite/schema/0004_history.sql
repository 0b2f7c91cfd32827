-- What lists a task's instances without reading those of all others, and those
-- of a status. Older programs may go on using the store: they need neither, and
-- the trigger keeps the first right when they delete.

-- The ledger's keys in order of task. It is filled in the background, in sorted
-- batches, with all instances up to meta.history_to; later ones are read beside
-- it. Its order is not that in which instances are made, so to keep it in the
-- transaction of a firing would write a page for each.
CREATE TABLE history (
    task_id  INTEGER NOT NULL,
    due_ms   INTEGER NOT NULL,
    slot_key TEXT    NOT NULL,
    PRIMARY KEY (task_id, due_ms, slot_key)
) WITHOUT ROWID;

-- NULL: nothing is in it yet.
ALTER TABLE meta ADD COLUMN history_to INTEGER;

-- Deleted instances that history may still have, to be taken out in batches.
-- Until then nobody sees them, since all that history names is looked up.
CREATE TABLE history_gone (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    id       INTEGER NOT NULL,
    due_ms   INTEGER NOT NULL,
    task_id  INTEGER NOT NULL,
    slot_key TEXT    NOT NULL
);

CREATE TRIGGER instance_gone AFTER DELETE ON instance BEGIN
    INSERT INTO history_gone (id, due_ms, task_id, slot_key) VALUES (OLD.id, OLD.due_ms, OLD.task_id, OLD.slot_key);
END;

-- What did not end well, in the order of the ledger. A firing that succeeds does
-- not write it.
CREATE INDEX instance_status ON instance (status) WHERE status IN ('waiting', 'failed', 'timeout', 'skipped', 'cancelled');
