"""Scores: pure functions from truth and guess to numbers, and how sure these are."""
