"""Publishers with a history but no links to it (rules R26 to R32)."""
