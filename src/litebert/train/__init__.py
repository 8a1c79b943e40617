"""Training: optimizers, schedules, and the loop."""
