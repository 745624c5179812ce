"""What is kept, by the names of what the service wants."""
