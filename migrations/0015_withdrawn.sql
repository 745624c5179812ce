-- 0015: an identity is settled when its publisher takes it out of the chain (rule R8), not by whatever took its archive
-- document away: the mark is made then, and goes when a document holds the identity again.

-- 0: made before that was kept, for a reason that nobody knows. Such a mark counts while an archive is attached.
ALTER TABLE settled ADD COLUMN is_withdrawn INTEGER NOT NULL DEFAULT 0 CHECK (is_withdrawn IN (0, 1));

-- serves the repetition of the choice when the last archive leaves or the first one comes
CREATE INDEX settled_unknown ON settled (feed) WHERE is_withdrawn = 0;

-- What a detached archive document held was settled by its being there.
INSERT INTO settled (feed, identity, link, enclosure, content, enclosures)
SELECT e.feed, e.identity, k.link, k.enclosure, k.content, k.enclosures
FROM document AS d
JOIN entry AS e ON e.document = d.id
LEFT JOIN entry_key AS k ON k.document = e.document AND k.ordinal = e.ordinal
WHERE d.role = 'archive' AND d.rank IS NULL AND d.memento = ''
ON CONFLICT DO NOTHING;

DELETE FROM settled WHERE EXISTS (
    SELECT 1 FROM entry AS e JOIN document AS d ON d.id = e.document
    WHERE e.feed = settled.feed AND e.identity = settled.identity AND e.is_live >= 0
        AND d.role <> 'memory' AND d.memento = ''
);
