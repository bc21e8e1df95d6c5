"""Images in C: lists of changes."""
