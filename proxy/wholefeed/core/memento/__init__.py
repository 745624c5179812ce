"""A web archive's index and its copies, as far as they need no network (R33; RFC 7089)."""
