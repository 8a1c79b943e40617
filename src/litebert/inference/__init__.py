"""Inference: what a model folder says of examples and texts. Needs no trainer."""
