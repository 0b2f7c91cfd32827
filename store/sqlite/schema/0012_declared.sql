-- How a plugin that runs has been declared otherwise since; NULL: as it runs. Older
-- programs tell it as a plugin that runs without fault.
ALTER TABLE host_plugin ADD COLUMN declared TEXT;
