"""What a refresh does next, told what is stored and what came."""
