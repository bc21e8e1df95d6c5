"""Functions of `keras.ops` as tables: a row for each, NumPy's function and its gradient."""
