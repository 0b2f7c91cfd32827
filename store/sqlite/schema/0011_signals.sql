-- What people ask of running attempts, and how far those say that they are.
-- Older programs may go on using the store: they neither signal nor show it.

-- The last signal that an instance's attempt was sent.
CREATE TABLE signal (
    instance_id INTEGER PRIMARY KEY,
    attempt     INTEGER NOT NULL,
    signal      TEXT    NOT NULL,
    who         TEXT    NOT NULL,
    asked_ms    INTEGER NOT NULL,
    answered_ms INTEGER,         -- NULL: not yet
    refused     TEXT,            -- why it was not done
    paused_ms   INTEGER,         -- it stands still since
    paused_by   TEXT
);

CREATE INDEX signal_open ON signal (instance_id) WHERE answered_ms IS NULL OR paused_ms IS NOT NULL;

-- How far an instance's attempt was when it last said so.
CREATE TABLE progress (
    instance_id INTEGER PRIMARY KEY,
    attempt     INTEGER NOT NULL,
    at_ms       INTEGER NOT NULL,
    percent     INTEGER,         -- in hundredths; NULL: it did not say
    text        TEXT
);
