"""Politeness towards publishers, host by host."""
