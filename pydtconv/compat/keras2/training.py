"""Old methods and arguments of models; which weights train is fixed by `compile`, as Keras 1 to 2.3 had it."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pydtconv import ops, saving, tree
from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.compat.keras2.arguments import Rows, dropped, only, refused, translated
from pydtconv.compat.keras2.callbacks import show_validation
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor
from pydtconv.models.model import Model
from pydtconv.models.sequential import Sequential
from pydtconv.support.dataset import PyDataset
from pydtconv.trainers.data_adapters.arrays import class_weights as of_classes
from pydtconv.trainers.data_adapters.arrays import to_arrays
from pydtconv.trainers.trainer import Trainer

#: arguments of queues and workers, which change no result
_QUEUES: Rows = dict.fromkeys(
    ("max_queue_size", "max_q_size", "workers", "nb_worker", "use_multiprocessing", "pickle_safe", "wait_time"), dropped
)


ROWS: dict[str, Rows] = {
    "fit": {
        "nb_epoch": "epochs", **_QUEUES,
    },
    "compile": {
        "sample_weight_mode": only(None, "temporal"), "target_tensors": only(None), "class_mode": dropped,
        "experimental_run_tf_function": dropped, "distribute": only(None), "cloning": dropped,
    },
    "evaluate": _QUEUES,
    "predict": _QUEUES,
}  # fmt: skip
#: arguments that Keras 2 took as they came, and that count batches
_COUNTS = ("steps_per_epoch", "validation_steps", "steps")


def whole(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments; counts that are no whole numbers go up, as a loop below them ends."""
    return {k: math.ceil(v) if k in _COUNTS and isinstance(v, (float, np.number)) else v for k, v in kwargs.items()}


def batches_of(name: str, generator: Any, samples: Any) -> tuple[Any, int | None]:
    """The generator, and how many of its batches have so many samples, by the size of its first one."""
    if samples is None or isinstance(generator, (tuple, list)):  # arrays, of which Keras 1 took all
        return generator, None
    size = getattr(generator, "batch_size", None)
    if size is None:
        generator = iter(generator)
        first = next(generator)
        size = len(tree.flatten(first)[0])
        generator = itertools.chain([first], generator)
    noticed.once(name, f"{name} is an old argument: write steps, {math.ceil(samples / size)} batches of {size} samples")
    return generator, math.ceil(samples / size)


def _taken(kwargs: dict[str, Any], *pairs: tuple[str, str, str]) -> dict[str, Any]:
    """Arguments that count samples as such that count batches.  pairs: old name, new name, name of the generator."""
    for old, new, generator in pairs:
        if old in kwargs:
            kwargs[generator], kwargs[new] = batches_of(old, kwargs[generator], kwargs.pop(old))
    return kwargs


def going_round(source: Any, steps: Any) -> Any:
    """A data set that is asked for more batches than it has, as a generator that begins again, as Keras 2 went on."""
    if not isinstance(source, PyDataset) or steps is None or not 0 < len(source) < steps:  # type: ignore[arg-type]
        return source

    def batches() -> Iterator[Any]:
        while True:
            yield from (source[i] for i in range(len(source)))  # type: ignore[arg-type]
            source.on_epoch_end()

    return batches()


#: methods on generators: their arguments by place, what they are now, and which count samples
_GENERATORS: dict[str, tuple[tuple[str, ...], str, tuple[tuple[str, str, str], ...]]] = {
    "fit_generator": (
        (
            "generator", "steps_per_epoch", "epochs", "verbose", "callbacks", "validation_data", "validation_steps",
        ),
        "fit",
        (
            ("samples_per_epoch", "steps_per_epoch", "generator"),
            ("nb_val_samples", "validation_steps", "validation_data"),
        ),
    ),
    "evaluate_generator": (("generator", "steps"), "evaluate", (("val_samples", "steps", "generator"),)),
    "predict_generator": (("generator", "steps"), "predict", (("val_samples", "steps", "generator"),)),
}  # fmt: skip
#: arguments that say that a call is Keras 1's, whose second place counts samples
_OF_KERAS_1 = ("nb_epoch", "nb_val_samples", "nb_worker", "max_q_size", "pickle_safe")


def _on_generator(name: str) -> Callable[..., Any]:
    places, method, counted = _GENERATORS[name]

    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        noticed.once(name, f"{name} is an old method: write {method}, which takes generators")
        if len(args) > 1 and any(old in kwargs for old in _OF_KERAS_1):
            kwargs[counted[0][0]] = args[1]
            args = (args[0], *args[2:]) if len(args) == 2 else args
        kwargs.update(zip((each for each in places if each not in kwargs), args, strict=False))
        kwargs = _taken(kwargs, *counted)
        for _, steps, source in counted:
            kwargs.update({source: going_round(kwargs[source], kwargs.get(steps))} if source in kwargs else {})
        kwargs.setdefault("verbose", int(method == "fit"))
        return getattr(self, method)(kwargs.pop("generator"), **kwargs)

    function.__name__ = name
    return function


def predict_classes(self: Any, x: Any, batch_size: int | None = None, verbose: Any = 0, **kwargs: Any) -> np.ndarray:
    """The likeliest class of each sample; of one probability, whether it is above a half."""
    noticed.once("predict_classes", "predict_classes is an old method: write predict(x).argmax(axis=-1)")
    scores = np.asarray(self.predict(x, batch_size=batch_size, verbose=verbose, **kwargs))
    return scores.argmax(axis=-1) if scores.shape[-1] > 1 else (scores > 0.5).astype("int32")


def predict_proba(self: Any, x: Any, batch_size: int | None = None, verbose: Any = 0, **kwargs: Any) -> Any:
    """What `predict` gives."""
    noticed.once("predict_proba", "predict_proba is an old method: write predict")
    return self.predict(x, batch_size=batch_size, verbose=verbose, **kwargs)


# -- which weights train -----------------------------------------------------------------------------------------------


def _all_layers(layer: Layer) -> list[Layer]:
    """A layer and those inside, each before its own."""
    found: dict[int, Layer] = {}

    def walk(one: Layer) -> None:
        if id(one) not in found:
            found[id(one)] = one
            for inner in one._pydt_layers:
                walk(inner)

    walk(layer)
    return list(found.values())


def _of_each_output(metrics: Any, outputs: int) -> Any:
    """A list that is not one for each output, as one: Keras 2 gave all its metrics to every output."""
    flat = isinstance(metrics, (list, tuple)) and not any(isinstance(each, (list, tuple, dict)) for each in metrics)
    if outputs == 1 or not metrics or not flat or len(metrics) == outputs:
        return metrics
    noticed.once("metrics", f"compile: metrics={metrics!r} is of every output: write a list for each")
    return [list(metrics)] * outputs


def _is_of_metrics(value: Any) -> bool:
    """Whether the third argument of `compile`, which Keras 3 takes as weights of losses, is metrics."""
    return any(not isinstance(each, (int, float, np.number)) for each in tree.flatten(value) if each is not None)


def _compile(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    if len(args) > 2 and _is_of_metrics(args[2]):
        noticed.once("compile", "compile(optimizer, loss, metrics) is an old form: write metrics=")
        names = ("metrics", "loss_weights", "sample_weight_mode", "weighted_metrics", "target_tensors")
        args, kwargs = args[:2], {**dict(zip(names, args[2:], strict=False)), **kwargs}
    kwargs = translated("compile", ROWS["compile"], kwargs)
    if "metrics" in kwargs and self._pydt_network is not None:
        kwargs["metrics"] = _of_each_output(kwargs["metrics"], len(self.outputs))
    original(self, *args, **kwargs)
    object.__setattr__(self, "_pydt_trained", [(layer, layer.trainable) for layer in _all_layers(self)])


@contextmanager
def as_compiled(model: Any) -> Iterator[None]:
    """Within, the layers are frozen as they were when the model was compiled.

    So that of a discriminator that is compiled, then frozen for the model around it, both train what they were compiled
    with.
    """
    then = model.__dict__.get("_pydt_trained", ())
    now = [(layer, layer.trainable) for layer, _ in then]
    if all(a[1] == b[1] for a, b in zip(then, now, strict=True)):
        yield
        return
    noticed.once(
        "trainable",
        "trainable was set after compile: the model trains what it was compiled with, as in Keras 1 to 2.3; compile it "
        "again to change that",
    )
    _set(then)
    try:
        yield
    finally:
        _set(now)


def _set(states: Any) -> None:
    for layer, trainable in states:
        if layer.trainable != trainable:
            layer.trainable = trainable


def _fit(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    kwargs = whole(translated("fit", ROWS["fit"], kwargs))
    call = inspect.signature(original).bind_partial(self, *args, **kwargs)
    show_validation(call.arguments.get("callbacks"), call.arguments.get("validation_data"))
    _weigh(self, call.arguments)
    with as_compiled(self):
        return original(*call.args, **call.kwargs)


def _train(
    original: Any, self: Any, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, **kwargs: Any
) -> Any:
    given = {"y": y, "sample_weight": sample_weight, "class_weight": class_weight}
    _weigh(self, given)
    with as_compiled(self):
        return original(self, x, **given, **kwargs)


def _weigh(model: Any, given: dict[str, Any]) -> None:
    """Puts weights of classes as Keras 3 takes them: old ones are a list, or a dict by names, of those of each output.

    Of one output, all but a dict is passed over.  Raises ValueError where there are not as many as outputs.
    """
    weights, names = given.get("class_weight"), model.output_names if model._pydt_network is not None else [None]
    if weights is None:
        return
    if isinstance(weights, dict):
        each = [weights.get(name) for name in names] if any(name in weights for name in names) else [weights]
    else:
        each = list(weights) if isinstance(weights, (list, tuple)) else [weights]
    if len(names) == 1:
        if len(each) != 1 or not isinstance(each[0], dict):
            noticed.once(
                "class_weight",
                f"class_weight: expected a dict by the classes' numbers, got {type(weights).__name__}: it is passed "
                "over, as in Keras 2",
            )
            each = [None]
        given["class_weight"] = each[0]
    elif each[0] is not weights:
        noticed.once("class_weight", "class_weight of several outputs is old: write sample_weight")
        if len(each) != len(names) or given.get("y") is None or given.get("sample_weight") is not None:
            raise ValueError(
                f"class_weight: expected one for each of {len(names)} outputs, arrays y and no sample_weight, got "
                f"{len(each)}, {type(given.get('y')).__name__} and {type(given.get('sample_weight')).__name__}"
            )
        targets = [given["y"][name] for name in names] if isinstance(given["y"], dict) else given["y"]
        pairs = zip(to_arrays("y", list(targets)), each, strict=True)
        given["sample_weight"] = [of_classes(y, weight or {}) for y, weight in pairs]
        given["class_weight"] = None


def _counting(name: str) -> Callable[..., Any]:
    def wrapper(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, *args, **whole(translated(name, ROWS[name], kwargs)))

    return wrapper


# -- losses of symbolic tensors ----------------------------------------------------------------------------------------


@saving.register_keras_serializable(package="keras2")
class AddLoss(Layer):
    """Its first input, unchanged; adds the second one to the loss."""

    def call(self, inputs: Any) -> Any:
        output, loss = inputs
        self.add_loss(ops.mean(loss))
        return output


def _add_loss(original: Any, self: Any, losses: Any, inputs: Any = None) -> None:
    """Of a model that is made of symbolic tensors: what follows from them is a part of its loss."""
    symbolic = [loss for loss in tree.flatten(losses) if isinstance(loss, KerasTensor)]
    if not symbolic or self._pydt_network is None:
        original(self, losses)
        return
    noticed.once("add_loss", "add_loss of symbolic tensors is an old form: write it into the call of a layer")
    outputs = tree.flatten(self._pydt_network.outputs)
    for loss in symbolic:
        outputs[0] = AddLoss()([outputs[0], loss])
    self._pydt_set_network(self._pydt_network.inputs, outputs)


def _itself(self: Any) -> Any:
    noticed.once("model.model", "model.model is an old name of the Sequential itself")
    return self


def nothing(*_: Any, **__: Any) -> None:
    """What is done when it is needed."""


def methods() -> dict[str, Any]:
    """Old methods of every model."""
    without = ("_make_predict_function", "_make_train_function", "_make_test_function", "reset_states")
    return {
        **{name: _on_generator(name) for name in _GENERATORS},
        **dict.fromkeys(without, nothing),
        "to_yaml": refused("to_yaml", "write to_json"),
    }


def install() -> None:
    """Gives models their old methods and arguments."""
    for name, function in methods().items():
        patches.put(Model, name, function)
    for function in (predict_classes, predict_proba):
        patches.put(Sequential, function.__name__, function)
    patches.put(Sequential, "model", property(_itself))
    patches.around(Model, "add_loss", _add_loss)
    # on the class that has them: a model asks whether a subclass overrides them
    patches.around(Trainer, "compile", _compile)
    patches.around(Trainer, "fit", _fit)
    patches.around(Trainer, "train_on_batch", _train)
    for name in ("evaluate", "predict"):
        patches.around(Trainer, name, _counting(name))
