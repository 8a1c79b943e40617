"""Sentences to samples: input formats, windows of documents, the stream of samples."""
