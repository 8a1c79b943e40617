"""Text to ids and back: normalization, tokenizers, sentences."""
