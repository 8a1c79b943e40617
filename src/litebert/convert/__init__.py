"""Models in and out: Hugging Face folders and TensorFlow checkpoints."""
