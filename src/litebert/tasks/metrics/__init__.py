"""Metrics: pure functions of labels and predictions."""
