"""Subscription lists (OPML 2.0): their feeds' URLs found and changed in place, and lists made anew."""
