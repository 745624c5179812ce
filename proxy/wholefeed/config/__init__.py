"""Keys, rules, sources and text of the configuration."""
