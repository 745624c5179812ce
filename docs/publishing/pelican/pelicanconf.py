"""To be added to a site's pelicanconf.py."""

PLUGIN_PATHS = ["plugins"]
PLUGINS = ["feed_archives"]
THEME_TEMPLATES_OVERRIDES = ["templates"]
FEED_ALL_ATOM = CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = AUTHOR_FEED_ATOM = AUTHOR_FEED_RSS = None

FEED_ID = "tag:example.org,2020:blog"  # of the feed, and the beginning of every entry's id: never change it
FEED_SLICE = 10  # entries of an archive document: never change it
