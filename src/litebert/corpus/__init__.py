"""Raw text to batches: sources, the store, samples, the loader."""
