"""Atom, RSS and RDF: the families that are XML."""
