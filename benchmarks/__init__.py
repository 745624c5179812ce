"""What README and docs quote, each runnable by one command."""
