"""Objects as plain data and back, in Keras's format; files of models are written in `pydtconv.models`.

registry.py      names that users register for their own classes and functions
objects.py       an object as plain data, and the object of such data
lambdas.py       the code of lambda functions, which is taken from a file only where safe mode is off
values.py        what the values of a config may be, checked before anything is made of them
budget.py        a limit on the bytes of what a file describes
built_ins.py     the built-in objects of one kind by name, for arguments such as `kernel_initializer="zeros"`
configurable.py  configs of layers and other objects from the arguments of their constructors

Public under Keras's names in `pydtconv.saving`, which stands above the models.
"""
