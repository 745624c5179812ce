"""URLs, dates and markup as feeds write them."""
