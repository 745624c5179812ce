"""Histories in publishers' HTML pages (H2 to H6)."""
