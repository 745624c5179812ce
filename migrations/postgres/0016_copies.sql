-- 0016: each copy of an entry bears how much of its text it has (rule R10): a full one goes before one that is not.
-- What was stored before is judged when its body is read again, which the next refresh of its feed does.

-- 0: it was cut short; 1: it has no full content; 2: it has (wholefeed.core.merge.Fullness); NULL: nobody has looked.
ALTER TABLE entry ADD COLUMN fullness smallint CHECK (fullness IN (0, 1, 2));
