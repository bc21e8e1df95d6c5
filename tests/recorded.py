"""Results of functions, metrics and schedules in few numbers, for where Keras is not installed to compare with.

`python -m tests.recorded` writes recorded.json anew: after the comparisons with Keras have passed.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import losses, metrics, ops, tree
from pydtconv.optimizers import schedules
from tests.losses import test_losses
from tests.metrics import test_metrics, test_more_against_keras
from tests.ops.keras_calls import calls_of
from tests.optimizers import test_schedules

FILE = Path(__file__).with_name("recorded.json")


def results() -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    """(name, what computes its results) of all."""
    for name in sorted(name for name in dir(ops) if inspect.isfunction(getattr(ops, name)) and name[0].islower()):
        function = getattr(ops, name)
        yield f"ops {name}", lambda f=function, n=name: [f(*args, **kwargs) for args, kwargs in calls_of(n, f)]
    for name, (options, y_true, y_pred) in test_metrics.CASES.items():
        metric = getattr(metrics, name.split("_")[0])
        yield (
            f"metrics {name}",
            lambda m=metric, o=options, y=(y_true, y_pred): [test_metrics.gathered(m(**o), *y, None)],
        )
    for name, calls in test_more_against_keras.CASES.items():
        metric = getattr(metrics, name)
        yield f"metrics {name}", lambda m=metric, c=calls: [updated(m, *each) for each in c]
    for name, calls in test_more_against_keras.LOSSES.items():
        loss = getattr(losses, name)
        yield f"losses {name}", lambda f=loss, c=calls: [np.asarray(f(*a, **k)(*y)) for a, k, *y in c]
    for name, (options, y_true, y_pred) in test_losses.CASES.items():
        loss = getattr(losses, name.split("_")[0])
        yield f"losses {name}", lambda f=loss, o=options, y=(y_true, y_pred): [np.asarray(f(**o)(*y))]
    for name, (kind, given) in test_schedules.CASES.items():
        schedule = getattr(schedules, kind)(*given)
        yield f"schedules {name}", lambda s=schedule: [np.array([float(s(step)) for step in range(25)])]


def updated(metric: Any, args: tuple, kwargs: dict, targets: Any, outputs: Any) -> Any:
    """The result over batches."""
    made = metric(*args, **kwargs)
    for y_true, y_pred in zip(targets, outputs, strict=True):
        made.update_state(y_true, y_pred)
    return made.result()


def digest(result: Any) -> tuple[float, float]:
    """A sum over all elements with a weight for each place, and that of their sizes; what is not finite counts 1."""
    total = size = 0.0
    for leaf in tree.flatten(result):
        values = np.nan_to_num(np.asarray(leaf).astype("complex128").ravel(), nan=1, posinf=1, neginf=1)
        weights = np.cos(np.arange(values.size))
        total += float((weights * (values.real + 0.5 * values.imag)).sum())
        size += float(np.abs(values).sum())
    return total, size


def main() -> None:
    found = {}
    for name, compute in results():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = [float(f"{digest(each)[0]:.7g}") for each in compute()]
        except KeyError as error:
            print(f"{name} is left out: calls_of knows no {error}")
    FILE.write_text(json.dumps({name: values for name, values in found.items() if values}, indent=0) + "\n")


if __name__ == "__main__":
    main()
