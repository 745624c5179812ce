"""One bounded GET: target, guard, host, exchange, decoding, failure."""
