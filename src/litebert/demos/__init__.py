"""`litebert demo`: from raw text to a compared model, on film reviews (film_reviews.py)."""
