"""What a script gets for `import tensorflow`, beside `tensorflow.keras`: the functions that scripts of vision use."""
