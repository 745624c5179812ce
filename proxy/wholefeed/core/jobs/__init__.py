"""What is done with the bytes of a document, here or in another process: functions that know no I/O."""
