"""Which copy stays (R8, R10, R19)."""
