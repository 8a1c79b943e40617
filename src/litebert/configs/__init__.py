"""Whole runs as TOML files: what they may say (`recipe.py`), and how they are read (`load.py`)."""
