-- Up to where a task's slots may have instances although they are after its
-- last_slot: a clock that was ahead was set back. NULL: it never was. Older
-- programs may go on using the store.
ALTER TABLE object ADD COLUMN rewound_from INTEGER;
