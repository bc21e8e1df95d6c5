"""`tf.data.Options`, which a script may set and which change nothing here."""

from __future__ import annotations


class Options:
    """Options of a data set, which change nothing here."""

    def __init__(self) -> None:
        self.deterministic: bool | None = None
        self.autotune, self.experimental_distribute = Settings(), Settings()
        self.experimental_optimization, self.threading = Settings(), Settings()

    def merge(self, options: Options) -> Options:
        """Options with those of another object where that has some."""
        found = Options()
        for one in (self, options):
            vars(found).update({name: value for name, value in vars(one).items() if value is not None})
        return found


class Settings:
    """Settings of any name, None where they were not set."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)

    def __init__(self, **kwargs: object) -> None:
        vars(self).update(kwargs)


class Policies:
    """Names of policies, which change nothing."""

    AUTO, FILE, DATA, HINT, OFF = 0, 1, 2, 3, -1
    DEFAULT, HILL_CLIMB, GRADIENT_DESCENT, MAX_PARALLELISM = 0, 1, 2, 3
    WARN, IGNORE, FAIL = 0, 1, 2
