"""Files of tasks: published layouts (GLUE, SQuAD, RACE, CoNLL columns) and the user's own."""
