"""Which document next, when to stop, what was replaced (R2, R4, R6, R15, R17, R18, R23, R24)."""
