"""One feed: what to serve now, refresh, single flight, background walks."""
