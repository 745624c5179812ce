"""From a reader's request to the bytes of the answer."""
