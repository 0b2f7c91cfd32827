-- The last reading of the clocks that was believed. Older programs neither read
-- nor write it; what they leave behind is at worst an old mark.
ALTER TABLE meta ADD COLUMN clock_ms INTEGER;
ALTER TABLE meta ADD COLUMN clock_elapsed_ms INTEGER;
ALTER TABLE meta ADD COLUMN clock_kernel TEXT;
ALTER TABLE meta ADD COLUMN clock_former_ms INTEGER;
