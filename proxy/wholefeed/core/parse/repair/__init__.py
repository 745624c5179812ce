"""The repair pass: documents that are not well-formed, made so (docs/design.md#repair; docs/repair.md)."""
