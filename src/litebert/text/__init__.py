"""Text to ids and back: cleaning, tokenizers, sentences."""
