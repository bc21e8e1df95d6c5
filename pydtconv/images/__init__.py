"""Images in C: lists of changes (steps), and arrays sampled between their elements (places)."""
