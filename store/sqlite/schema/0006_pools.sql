-- The pools that an axd has, for what waits for one. Older programs may go on
-- using the store: they do not tell pools.

-- JSON, places by pool; NULL was written by an older program.
ALTER TABLE host ADD COLUMN pools TEXT;
