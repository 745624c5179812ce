"""How politely one host is asked."""
