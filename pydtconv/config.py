"""Settings of the process: float type, image format, epsilon, threads, convolution variant and precision."""
