"""Whole runs as TOML files; `litebert.model.presets` reads them."""
