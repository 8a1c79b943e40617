"""Raw text to batches: preparation, the store, samples, the loader."""
