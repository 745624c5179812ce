"""The HTTP interface described for programs."""
