"""Arguments of functions and constructors, to compare with Keras's."""

import inspect


def arguments(callable_):
    """[(name, default)] of the arguments, without self and the variable ones."""
    function = callable_.__init__ if inspect.isclass(callable_) else callable_
    return [
        (name, None if parameter.default is inspect.Parameter.empty else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "args", "kwargs", "shared")
    ]
