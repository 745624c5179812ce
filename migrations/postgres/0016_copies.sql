-- 0016: each copy of an entry bears how much of its text it has (rule R10): a full one goes before one that is not;
-- and a remembered one when it was made, where that counts: memory documents are written anew as they grow.
-- What was stored before is judged when its body is read again, which the next refresh of its feed does.

-- 0: it was cut short; 1: it has no full content; 2: it has (wholefeed.core.merge.Fullness); NULL: nobody has looked.
ALTER TABLE entry ADD COLUMN fullness smallint CHECK (fullness IN (0, 1, 2));
-- Of a remembered copy in a feed with pages that an adapter asked for: when the document was made that it stood in.
-- NULL: nobody knows; then it gives way to what its publisher has, all else being equal.
ALTER TABLE entry ADD COLUMN made_at double precision;
