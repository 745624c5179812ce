"""The listening side: connections, clients, buckets, signatures, own addresses."""
