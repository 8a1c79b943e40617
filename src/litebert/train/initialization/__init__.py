"""Initial values counted from the corpus, for small models (docs/log.md has the measurements)."""
