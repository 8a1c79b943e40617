"""The HTTP service on the inference engine, and the playground. Needs no trainer."""
