"""Schedule: the steps of forward and backward, in their order, and what is recomputed."""
