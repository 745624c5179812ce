"""Processes for large documents, so that the event loop never waits for one."""
