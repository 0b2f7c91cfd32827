-- freeze_after. Older programs may go on using the store: they count no failures
-- and freeze nothing.

ALTER TABLE task ADD COLUMN failure_streak INTEGER NOT NULL DEFAULT 0; -- finally failed instances in a row
ALTER TABLE task ADD COLUMN freeze_after INTEGER NOT NULL DEFAULT 0;   -- so many freeze it; 0 never
