"""The papers' tables as TOML files."""
