"""The drivers that fetch what the pure walk wants."""
