"""One refresh: refetch, walk, settle, publish; at most one a feed."""
