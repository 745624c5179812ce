"""wholefeed: serve a feed's whole history to readers that know only single documents."""

__version__ = "0.1.0"
