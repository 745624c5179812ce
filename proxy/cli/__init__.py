"""The command line: `wholefeed COMMAND`, the same as `python -m proxy COMMAND`."""
