"""Fine-tuning: recipes, seeds, runs, and the scores of several runs side by side."""
