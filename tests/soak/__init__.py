"""Training that is killed, interrupted, stopped and starved of disk at random moments, for minutes or hours."""
