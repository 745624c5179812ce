-- 0010: the version of each document's format, so that a feed keeps its own where all documents have it.
-- Documents that were stored before have none until their bodies are read again.

ALTER TABLE document ADD COLUMN version TEXT NOT NULL DEFAULT '';  -- of the format, as the document says
