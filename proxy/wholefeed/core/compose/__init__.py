"""Head and entries to the document that is sent, its segments and views (R7, R16, R20 to R22)."""
