"""Publishers with a history but no links to it: their evidence and their pages (rules R26 to R32)."""
