-- 0019: what a feed calls itself is kept beside what is published of it, so that lists of feeds read no heads; and heads
-- have 256 KiB at most (rule R21).

-- NULL: published before that was kept, or never; what reads lists fills it in
ALTER TABLE feed ADD COLUMN title text;
ALTER TABLE feed ADD COLUMN site text NOT NULL DEFAULT '';

-- What is longer is made anew, within the limit, when the feed is refreshed: its document counts as read by another
-- parser.
UPDATE document SET parser_version = 0
WHERE role = 'subscription' AND feed IN (SELECT id FROM feed WHERE length(head) > 262144);
