"""`litebert demo`: the whole road, and what pretraining is worth at its end (road.py)."""
