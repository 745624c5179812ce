"""The command line: `wholefeed COMMAND`, the same as `python -m wholefeed COMMAND`."""
