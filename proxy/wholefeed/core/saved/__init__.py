"""Files of feed readers, with the entries that they saved (I4)."""
