"""JSON Feed, and the places of its values in the text."""
