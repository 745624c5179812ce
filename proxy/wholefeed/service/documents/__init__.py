"""One document: obtained, read, in its three shapes, remembered."""
