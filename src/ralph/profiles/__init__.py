"""The five ways of working, each a Policy: they differ here and nowhere else."""
