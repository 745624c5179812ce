"""The database of the service: an interface, two engines, and tables."""
