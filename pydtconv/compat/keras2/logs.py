"""Results of epochs by their old names: `acc` where there is `accuracy`, `lr` where there is `learning_rate`."""

from __future__ import annotations

import string
from typing import Any

from pydtconv.compat.keras2 import noticed

#: pairs of ends of names, of which the one stands for the other where that is not there
PAIRS = (
    ("acc", "accuracy"), ("lr", "learning_rate"), ("mse", "mean_squared_error"), ("mae", "mean_absolute_error"),
    ("mape", "mean_absolute_percentage_error"), ("msle", "mean_squared_logarithmic_error"),
)  # fmt: skip


class Results(dict[str, Any]):
    """Results by name, which are also found under the other name of the metric.  Copies and pickles are plain dicts."""

    def there(self, name: Any) -> str | None:
        """The name of the pair that the results have; None where they have neither."""
        for pair in PAIRS:
            for asked, other in (pair, pair[::-1]):
                if isinstance(name, str) and (name == asked or name.endswith(f"_{asked}")):
                    found = name.removesuffix(asked) + other
                    if self.keys() >= {found}:
                        return found
        return None

    def __missing__(self, name: Any) -> Any:
        found = self.there(name)
        if found is None:
            raise KeyError(name)
        noticed.once(f"result {name}", f"the result {name!r} is not there: {found!r} is taken")
        return self[found]

    def __contains__(self, name: Any) -> bool:
        return super().__contains__(name) or self.there(name) is not None

    def get(self, name: Any, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401  (which would call this)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def filled(text: str, logs: dict[str, Any]) -> dict[str, Any]:
    """The results, and those that a file's name asks for under another name."""
    asked = [field.split(".")[0].split("[")[0] for _, field, _, _ in string.Formatter().parse(text) if field]
    logs, results = dict(logs), Results(logs)
    return {**logs, **{name: results[name] for name in asked if name not in logs and name in results}}
