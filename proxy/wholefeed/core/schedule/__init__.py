"""When anything is asked again (R13, R14, RFC 9111, moves, polls)."""
