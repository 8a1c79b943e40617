"""Readers: tables, JSON, columns of words and plain text out of files, whatever the task."""
