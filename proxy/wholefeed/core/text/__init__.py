"""URLs, dates, and URLs as they may be shown."""
