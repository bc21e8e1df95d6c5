"""TensorFlow 1's sessions, which scripts set up around Keras: accepted, and nothing is done."""

from __future__ import annotations

from typing import Any

from pydtconv.compat.keras2 import noticed
from pydtconv.compat.keras2.arguments import refused


class Settings:
    """Attributes of any name, as deep as a script sets them."""

    def __init__(self, *_: Any, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__[name] = Settings()
        return found

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        """There is nothing to close."""


class Session(Settings):
    """A session; what it is asked to run must be a value already."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()
        noticed.once("Session", "sessions of TensorFlow 1 are not here: the lines mean nothing")

    def as_default(self) -> Any:
        """The session itself."""
        return self

    def close(self) -> None:
        """There is nothing to close."""

    def run(self, fetches: Any, feed_dict: Any = None, **_: Any) -> Any:
        """None for what initializes variables.  Raises NotImplementedError for tensors."""
        if fetches is None or isinstance(fetches, Settings):
            return None
        if feed_dict is not None or not hasattr(fetches, "__array__"):
            raise NotImplementedError("Session.run is not here: write a Model or keras.backend.function")
        return fetches


def _settings(*_: Any, **__: Any) -> Settings:
    return Settings()


def top() -> dict[str, Any]:
    """Names of TensorFlow 1, in `tensorflow` and `tensorflow.compat.v1`."""
    from pydtconv.support.random import set_random_seed

    nothing = (
        "disable_eager_execution", "disable_v2_behavior", "enable_eager_execution", "enable_v2_behavior",
        "reset_default_graph",
    )  # fmt: skip
    return {
        **dict.fromkeys(("ConfigProto", "GPUOptions", "RunOptions", "get_default_graph", "Graph"), _settings),
        **dict.fromkeys(("Session", "InteractiveSession"), Session),
        **dict.fromkeys(("global_variables_initializer", "initialize_all_variables"), lambda: None),
        "local_variables_initializer": lambda: None,
        **dict.fromkeys(nothing, lambda *_, **__: None),
        "get_default_session": Session,
        "logging": Logging(),
        "placeholder": refused("tf.placeholder", "write keras.Input"),
        "set_random_seed": set_random_seed,
    }


class Logging:
    """`tf.logging`."""

    DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50

    def set_verbosity(self, level: Any) -> None:
        """There is nothing that logs."""


RegisterGradient = refused("tf.RegisterGradient", "write a function with tf.custom_gradient, or a layer of your own")
