"""What every station stands on: settings, errors, files, the machine, batches, randomness."""
