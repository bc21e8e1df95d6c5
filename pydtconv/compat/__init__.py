"""Names of Keras 2 and of TensorFlow, for scripts that `pydtconv run` runs as they are."""
