"""The repair pass: documents that are not well-formed, made so (design, section 5; docs/repair.md)."""
