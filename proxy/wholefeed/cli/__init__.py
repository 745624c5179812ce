"""The command line: `wholefeed COMMAND`."""
