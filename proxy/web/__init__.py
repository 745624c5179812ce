"""The HTTP interface: handlers read the request, call the service once, and answer."""
