"""Published tasks: where their files are, how they are scored, and how predictions are sent in."""
