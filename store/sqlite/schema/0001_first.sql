-- The tables of a store. Instants are ms since epoch UTC; NULL is "none" or
-- "not yet". Statuses, kinds and reasons are stored as their words.

CREATE TABLE meta (
    only             INTEGER PRIMARY KEY CHECK (only = 1),
    store_id         TEXT    NOT NULL,
    incarnation      TEXT    NOT NULL,
    schema_version   INTEGER NOT NULL,
    min_reader       INTEGER NOT NULL, -- the oldest schema version whose programs may open it
    min_program      TEXT    NOT NULL, -- the oldest ax that knows min_reader
    serial           INTEGER NOT NULL, -- rises with each apply of any stack
    next_instance_id INTEGER NOT NULL,
    tzdata           TEXT,
    created_ms       INTEGER NOT NULL
);

CREATE TABLE stack (
    id     INTEGER PRIMARY KEY,
    name   TEXT    NOT NULL UNIQUE,
    serial INTEGER NOT NULL,
    origin TEXT
);

CREATE TABLE revision (
    id          INTEGER PRIMARY KEY,
    apply_id    TEXT    NOT NULL UNIQUE,
    stack_id    INTEGER NOT NULL,
    serial      INTEGER NOT NULL, -- of the stack after this apply
    at_ms       INTEGER NOT NULL,
    who         TEXT,
    host        TEXT,
    origin      TEXT,
    git_remote  TEXT,
    git_commit  TEXT,
    git_dirty   INTEGER NOT NULL,
    plan_hash   TEXT,
    config_hash TEXT,
    message     TEXT,
    added       INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    deleted     INTEGER NOT NULL,
    UNIQUE (stack_id, serial)
);

-- A name made again revives its id, so names are unique with deleted ones too.
CREATE TABLE object (
    id          INTEGER PRIMARY KEY,
    stack_id    INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    version     INTEGER NOT NULL, -- the latest
    defined     INTEGER NOT NULL, -- the latest that was no deletion
    hash        TEXT    NOT NULL, -- of version "defined"
    deleted_ms  INTEGER,
    fingerprint TEXT,             -- of the schedule that next_fire_time was computed from
    UNIQUE (stack_id, kind, name)
);

CREATE TABLE definition (
    object_id    INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    revision_id  INTEGER NOT NULL,
    effective_ms INTEGER NOT NULL,
    hash         TEXT,
    body         TEXT,            -- canonical JSON; NULL is a deletion
    PRIMARY KEY (object_id, version)
) WITHOUT ROWID;

-- The hot row, narrow: each claim and each end of an attempt writes it.
CREATE TABLE task (
    object_id      INTEGER PRIMARY KEY,
    next_fire_time INTEGER,
    last_slot      INTEGER,
    lock_version   INTEGER NOT NULL,
    active         INTEGER NOT NULL, -- attempts handed over and not stopped
    waiting        INTEGER NOT NULL, -- pending instances
    max_active     INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    enabled        INTEGER NOT NULL,
    hold           TEXT,             -- paused, frozen; table hold has the rest
    overlap        TEXT    NOT NULL
);

-- What can fire, soonest first. A deleted task has no next_fire_time.
CREATE INDEX task_due ON task (next_fire_time)
    WHERE next_fire_time IS NOT NULL AND enabled = 1 AND hold IS NULL;

CREATE TABLE hold (
    task_id  INTEGER PRIMARY KEY,
    kind     TEXT    NOT NULL,
    who      TEXT    NOT NULL,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER,
    reason   TEXT
);

CREATE INDEX hold_until ON hold (until_ms) WHERE until_ms IS NOT NULL;

-- The ledger. Its key leads with due_ms, so that new rows are appended.
CREATE TABLE instance (
    due_ms         INTEGER NOT NULL,
    task_id        INTEGER NOT NULL,
    slot_key       TEXT    NOT NULL,
    id             INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    kind           TEXT    NOT NULL,
    status         TEXT    NOT NULL,
    attempt        INTEGER NOT NULL,
    not_before_ms  INTEGER NOT NULL,
    claimed_ms     INTEGER NOT NULL,
    assigned_ms    INTEGER,
    handed_ms      INTEGER,
    started_ms     INTEGER,
    ended_ms       INTEGER,
    stopped_ms     INTEGER,
    deadline_ms    INTEGER,
    host           TEXT,
    boot           TEXT,
    executor       TEXT,
    reason         TEXT,
    cancel_by      TEXT,
    output_bytes   INTEGER,
    output_dropped INTEGER,
    error_class    TEXT,
    error          TEXT,
    output         TEXT,
    PRIMARY KEY (due_ms, task_id, slot_key)
) WITHOUT ROWID;

CREATE UNIQUE INDEX instance_id ON instance (id);
CREATE INDEX instance_pending ON instance (not_before_ms, id) WHERE status = 'pending';
CREATE INDEX instance_waiting ON instance (task_id, due_ms, id) WHERE status = 'pending';
CREATE INDEX instance_open ON instance (host) WHERE handed_ms IS NOT NULL AND stopped_ms IS NULL;

-- Stretches of slots that were not run and have no row of their own.
CREATE TABLE skipped (
    id      INTEGER PRIMARY KEY,
    task_id INTEGER NOT NULL,
    from_ms INTEGER NOT NULL,
    to_ms   INTEGER NOT NULL,
    slots   INTEGER,             -- NULL: over 1,000, counted when shown
    reason  TEXT    NOT NULL,
    version INTEGER NOT NULL
);

CREATE INDEX skipped_task ON skipped (task_id, from_ms);

-- Attempts that were followed by another one.
CREATE TABLE attempt (
    instance_id INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    host        TEXT,
    executor    TEXT,
    status      TEXT    NOT NULL,
    error_class TEXT,
    error       TEXT,
    handed_ms   INTEGER,
    started_ms  INTEGER,
    ended_ms    INTEGER,
    stopped_ms  INTEGER,
    PRIMARY KEY (instance_id, attempt)
) WITHOUT ROWID;

-- The life line beyond the happy path.
CREATE TABLE transition (
    instance_id INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    at_ms       INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    from_status TEXT,            -- NULL: birth
    to_status   TEXT    NOT NULL,
    actor       TEXT    NOT NULL,
    cause       TEXT    NOT NULL,
    detail      TEXT,
    PRIMARY KEY (instance_id, seq)
) WITHOUT ROWID;

CREATE TABLE host (
    name       TEXT    PRIMARY KEY,
    boot       TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    data_dir   TEXT,
    listen     TEXT,
    version    TEXT,
    tzdata     TEXT,
    handlers   TEXT,             -- JSON list
    started_ms INTEGER NOT NULL,
    left_ms    INTEGER
) WITHOUT ROWID;
