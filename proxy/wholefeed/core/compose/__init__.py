"""Feed documents for readers: heads, entries, segments and views (R7, R16, R20 to R22)."""
