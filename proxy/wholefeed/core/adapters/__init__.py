"""Publishers whose history is there and not linked: who they are, what to ask for (rules R26 to R32)."""
