"""Plan before paying: parameters, FLOPs, memory and time of a training run."""
