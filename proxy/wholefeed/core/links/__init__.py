"""What one document says about its feed (R0 to R6, R11, R12)."""
