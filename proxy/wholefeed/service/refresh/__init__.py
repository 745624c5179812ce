"""One refresh: what is decided of it is carried out here; at most one a feed."""
