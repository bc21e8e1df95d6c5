"""What scripts written for Keras 1.2 to 2.3, and for `tf.keras` of TensorFlow 1 and 2, call otherwise than Keras 3.

Each room is a table: old modules, old arguments, old methods.  `install` puts them in place for `pydtconv run`, and
`uninstall` takes them back.  Each old name that a script uses warns once.
"""

from __future__ import annotations

from pydtconv.compat import patches
from pydtconv.compat.keras2 import (
    arguments,
    callbacks,
    compiled,
    extra,
    files,
    noticed,
    optimizers,
    tensors,
    training,
)


def install() -> None:
    """Lets the classes of pydtconv take old arguments, and have old methods, in this process."""
    for room in (arguments, optimizers, callbacks, extra, files, training, tensors, compiled):
        room.install()


def uninstall() -> None:
    """Takes back what `install` did."""
    patches.take_back()
    noticed.forget()
