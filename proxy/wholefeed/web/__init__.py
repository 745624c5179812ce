"""From a reader's request to the bytes of its answer."""
