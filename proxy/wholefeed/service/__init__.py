"""One feed: what is served now, and what goes on in the background."""
