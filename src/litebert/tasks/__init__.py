"""Tasks: what a pretrained encoder is fine-tuned for, measured on and used for."""
