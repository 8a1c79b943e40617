"""Documents to shards, in parallel, and stoppable anywhere."""
