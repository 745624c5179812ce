"""The path of a walk: next document, end, replaced documents (R2, R4, R6, R15, R17, R18, R23, R24)."""
