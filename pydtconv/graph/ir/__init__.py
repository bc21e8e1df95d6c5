"""The intermediate representation: variables, symbolic tensors, and the nodes between them."""
