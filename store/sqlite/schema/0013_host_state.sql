-- What axd knows of its plugins and of itself, also for when it is down. Older
-- programs tell none of it.

-- Handlers of the plugin that another one has, for people; NULL none.
ALTER TABLE host_plugin ADD COLUMN shadowed TEXT;

-- Since when the plugin is quarantined, and when it is started again; NULL: not.
ALTER TABLE host_plugin ADD COLUMN quarantined_ms INTEGER;
ALTER TABLE host_plugin ADD COLUMN retry_ms INTEGER;

-- How the host keeps the processes of attempts together, and what is wrong with
-- its data folder, for people; NULL: not told, nothing.
ALTER TABLE host ADD COLUMN containment TEXT;
ALTER TABLE host ADD COLUMN data_problem TEXT;
