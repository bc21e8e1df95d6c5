"""What several rooms need and none of them is about: random seeds, data sets, progress, sizes, facts of the machine."""
