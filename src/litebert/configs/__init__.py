"""Whole runs as TOML files: what they may say (`schema.py`), and how they are read (`load.py`)."""
