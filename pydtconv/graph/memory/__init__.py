"""Memory: which tensors share a storage, where storages lie in the arena, and the flat arrays of parameters."""
