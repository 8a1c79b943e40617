"""Raw text from anywhere: files, archives, tables, pipes and datasets, as documents."""
