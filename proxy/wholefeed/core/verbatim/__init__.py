"""An entry cut out so that it means the same elsewhere (R22)."""
