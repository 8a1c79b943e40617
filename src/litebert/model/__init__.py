"""The encoder family: configuration, layers, encoder, heads, and the model folder."""
