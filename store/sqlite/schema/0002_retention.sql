-- Retention and backups. Older programs may go on using the store: they neither
-- read nor need these, but an older doctor reports slots that retention removed.

-- Slots up to it are not checked: what accounted for them may be deleted.
ALTER TABLE object ADD COLUMN checked_from INTEGER;

-- Set in a backup; the first opening for writing gives it an incarnation of its own.
ALTER TABLE meta ADD COLUMN copied_ms INTEGER;
