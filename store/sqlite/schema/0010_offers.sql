-- What hosts offer. Older programs may go on using the store: they do not know
-- of plugins.

-- Handlers with the schemas that bodies are checked with.
CREATE TABLE handler_schema (
    host     TEXT    NOT NULL,
    handler  TEXT    NOT NULL,
    executor TEXT    NOT NULL,
    hash     TEXT    NOT NULL,
    schema   TEXT    NOT NULL, -- JSON
    PRIMARY KEY (host, handler)
) WITHOUT ROWID;

-- Plugins, those that do not run too.
CREATE TABLE host_plugin (
    host    TEXT NOT NULL,
    name    TEXT NOT NULL, -- '' is the folder as a whole
    path    TEXT NOT NULL,
    sha256  TEXT,
    problem TEXT,          -- NULL: it runs
    PRIMARY KEY (host, name, path)
) WITHOUT ROWID;

-- When a host told last; NULL never.
ALTER TABLE host ADD COLUMN offered_ms INTEGER;
