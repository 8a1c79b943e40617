"""What the encoder learns from: masking, and the losses built on it."""
