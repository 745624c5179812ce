"""Bounded GETs at publishers."""
