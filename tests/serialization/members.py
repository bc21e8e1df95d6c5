"""Everything that a model's config may name: an example of each, and the config of a model that holds it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import pydtconv
from pydtconv import constraints, initializers, layers, losses, metrics, ops, optimizers, regularizers
from pydtconv.ops.operations import card_of_class
from pydtconv.optimizers import schedules
from tests.layers.test_against_keras import CASES
from tests.serialization.calls import IMAGES, INTEGERS, PICTURES, SEQUENCES, VECTORS, WAVES, call_of, shapes_in
from tests.serialization.operators import FIELDS, INPUTS, STATIC, TWO


@dataclasses.dataclass(frozen=True)
class Member:
    """A class by the kind of its place in a config, with arguments that work.

    shapes: of the inputs, without the batch.  args: of the call of a function, as in calls.py; of an operator those
    behind the inputs.
    """

    kind: str
    module: str
    name: str
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    shapes: tuple[tuple[int, ...], ...] = (IMAGES,)
    args: tuple[Any, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.name}"

    @property
    def target(self) -> Any:
        """What takes the arguments."""
        if self.kind == "function":
            return _functions()[self.name]
        room = schedules if self.kind == "schedule" else getattr(pydtconv, self.module)
        return getattr(room, self.name)

    def arguments(self) -> list[str]:
        """Names of the arguments that a config of it may have."""
        if self.kind == "function":
            return [*inspect.signature(self.target).parameters]
        if self.kind == "operator":
            return [field.name for field in dataclasses.fields(self.target)]
        names: dict[str, None] = {}
        for cls in self.target.__mro__:
            if "__init__" in vars(cls) and cls.__module__.startswith("pydtconv."):
                parameters = inspect.signature(cls.__init__).parameters.values()
                names.update({p.name: None for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)})
        return [name for name in names if name not in ("self", "args", "kwargs")]

    def data(self, **changed: Any) -> dict[str, Any]:
        """The member itself, as a config has it."""
        return {
            "module": {"schedule": "keras.optimizers.schedules"}.get(self.kind, f"keras.{self.module}"),
            "class_name": self.name,
            "config": {**self.config, **changed},
            "registered_name": None,
        }

    def model(self, **changed: Any) -> dict[str, Any]:
        """config.json of a model that holds the member, with some arguments changed."""
        return _MODELS[self.kind](self, changed)


def network(
    layer: dict[str, Any], shapes: tuple[tuple[int, ...], ...], call: Any = None, dtype: str = "float32"
) -> dict[str, Any]:
    """A functional model of one operation; call: its arguments in place of a tensor, or a list of several."""
    made, tensors = [], []
    for i, shape in enumerate(shapes):
        config = {"batch_shape": [None, *shape], "dtype": dtype, "name": f"x{i}"}
        source = {"module": "keras.layers", "class_name": "InputLayer", "config": config}
        made.append({**source, "name": f"x{i}", "inbound_nodes": []})
        tensors.append({"class_name": "__keras_tensor__", "config": {"keras_history": [f"x{i}", 0, 0]}})
    args = [tensors[0] if len(tensors) == 1 else tensors] if call is None else call(tensors)
    made.append({**layer, "name": "it", "inbound_nodes": [{"args": args, "kwargs": {}}]})
    config = {
        "name": "net",
        "layers": made,
        "input_layers": [[f"x{i}", 0, 0] for i in range(len(shapes))],
        "output_layers": ["it", 0, 0],
    }
    return {"module": "keras.src.models.functional", "class_name": "Functional", "config": config}


def compiled(**arguments: Any) -> dict[str, Any]:
    config = {"units": 3, "name": "it", "activation": "softmax"}
    dense = {"module": "keras.layers", "class_name": "Dense", "config": config}
    return {
        **network(dense, (VECTORS,)),
        "compile_config": {"optimizer": "sgd", "loss": "mse", **arguments},
    }


def _of_layer(member: Member, changed: dict[str, Any]) -> dict[str, Any]:
    data = member.data(**changed)
    if member.name in (
        "StringLookup",
        "TextVectorization",
        "Hashing",
        "HashedCrossing",
    ):  # of arrays alone, in a model that is not built
        config = {"name": "net", "layers": [data]}
        return {"module": "keras", "class_name": "Sequential", "config": config}
    if member.name == "InputLayer":
        made = [{**data, "name": "it", "inbound_nodes": []}]
        config = {"name": "net", "layers": made, "input_layers": ["it", 0, 0], "output_layers": ["it", 0, 0]}
        return {"module": "keras.src.models.functional", "class_name": "Functional", "config": config}
    separate = member.name in ("MultiHeadAttention", "GroupedQueryAttention", "GroupQueryAttention")
    return network(data, member.shapes, (lambda tensors: tensors) if separate else None)


def _of_function(member: Member, changed: dict[str, Any]) -> dict[str, Any]:
    parameters = [name for name in inspect.signature(member.target).parameters if name not in member.config]
    places = dict(zip(parameters, range(len(member.args)), strict=False))
    given = {name: value for name, value in {**member.config, **changed}.items() if name not in places}
    data = {"module": "keras.src.ops.any", "class_name": member.name, "config": given}

    def call(tensors: list[Any]) -> list[Any]:
        left = iter(tensors)
        args = [_filled(each, left) for each in member.args]
        for name in changed.keys() & places.keys():
            args[places[name]] = changed[name]
        return args

    whole = member.target.__name__ in INTEGERS or member.target.__name__.startswith("bitwise")
    return network(data, member.shapes, call, "int32" if whole else "float32")


def _filled(arg: Any, tensors: Iterator[Any]) -> Any:
    if isinstance(arg, tuple):
        return next(tensors)
    return [_filled(each, tensors) for each in arg] if shapes_in(arg) else arg


def _of_operator(member: Member, changed: dict[str, Any]) -> dict[str, Any]:
    config = {"name": "it", **member.config, **changed}
    data = {"module": "pydtconv.ops", "class_name": member.name, "config": config, "registered_name": None}
    return network(data, member.shapes, lambda tensors: [*tensors, *member.args])


def _of_dense(argument: str, member: Member, changed: dict[str, Any]) -> dict[str, Any]:
    config = {"units": 6, "name": "it", argument: member.data(**changed)}
    return network({"module": "keras.layers", "class_name": "Dense", "config": config}, member.shapes)


_MODELS = {
    "layer": _of_layer,
    "function": _of_function,
    "operator": _of_operator,
    "initializer": functools.partial(_of_dense, "kernel_initializer"),
    "regularizer": functools.partial(_of_dense, "kernel_regularizer"),
    "constraint": functools.partial(_of_dense, "kernel_constraint"),
    "loss": lambda member, changed: compiled(loss=member.data(**changed)),
    "metric": lambda member, changed: compiled(
        metrics=[member.data(**changed)], loss="sparse_categorical_crossentropy" if "Sparse" in member.name else "mse"
    ),
    "optimizer": lambda member, changed: compiled(optimizer=member.data(**changed)),
    "schedule": lambda member, changed: compiled(
        optimizer={
            "module": "keras.optimizers",
            "class_name": "SGD",
            "config": {"learning_rate": member.data(**changed)},
            "registered_name": None,
        }
    ),
}

_DENSE = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 3}, "registered_name": None}
_GRU = {**_DENSE, "class_name": "GRU"}
_GRU_CELL = {**_DENSE, "class_name": "GRUCell"}
_RELU = {"module": "builtins", "class_name": "function", "config": "relu", "registered_name": "relu"}
#: layers that have no case beside Keras, or several kinds of inputs
_LAYERS: dict[str, tuple[dict[str, Any], tuple[tuple[int, ...], ...]]] = {
    "CategoryEncoding": ({"num_tokens": 5}, (VECTORS,)),
    "CenterCrop": ({"height": 3, "width": 4}, (IMAGES,)),
    "Discretization": ({"bin_boundaries": [0.0, 0.5]}, (VECTORS,)),
    "Embedding": ({"input_dim": 7, "output_dim": 3}, (VECTORS,)),
    "ReversibleEmbedding": ({"input_dim": 7, "output_dim": 3}, (VECTORS,)),
    "HashedCrossing": ({"num_bins": 5}, (VECTORS,)),
    "Hashing": ({"num_bins": 5}, (VECTORS,)),
    "IntegerLookup": ({"vocabulary": [1, 2, 5]}, (VECTORS,)),
    "StringLookup": ({"vocabulary": ["a", "b"]}, (VECTORS,)),
    "TextVectorization": ({"vocabulary": ["a", "b"]}, (VECTORS,)),
    "MelSpectrogram": ({"fft_length": 16, "num_mel_bins": 4, "sampling_rate": 100}, (WAVES,)),
    "STFTSpectrogram": ({"frame_length": 8}, ((64, 1),)),
    "Pipeline": ({"layers": [_DENSE, _DENSE]}, (VECTORS,)),
    "TimeDistributed": ({"layer": _DENSE}, (SEQUENCES,)),
    "SpectralNormalization": ({"layer": _DENSE}, (VECTORS,)),
    **{name: ({"units": 3}, (SEQUENCES,)) for name in ("SimpleRNN", "LSTM", "GRU")},
    **{f"ConvLSTM{rank}D": ({"filters": 2, "kernel_size": 3}, ((3, *[5] * rank, 2),)) for rank in (1, 2, 3)},
    "RNN": ({"cell": _GRU_CELL}, (SEQUENCES,)),
    "Bidirectional": ({"layer": _GRU}, (SEQUENCES,)),
    "Wrapper": ({"layer": _DENSE}, (VECTORS,)),
    "GaussianDropout": ({"rate": 0.5}, (IMAGES,)),
    "AlphaDropout": ({"rate": 0.5}, (IMAGES,)),
    "MaxNumBoundingBoxes": ({"max_number": 3}, (SEQUENCES,)),
    "RandomCrop": ({"height": 3, "width": 4}, (IMAGES,)),
    "Resizing": ({"height": 3, "width": 4}, (IMAGES,)),
    "Lambda": ({"function": _RELU}, (VECTORS,)),
    "RandomBrightness": ({"factor": 0.2}, (PICTURES,)),
    "RandomContrast": ({"factor": 0.2}, (PICTURES,)),
    "RandomColorDegeneration": ({"factor": 0.2}, (PICTURES,)),
    "RandomHue": ({"factor": 0.2}, (PICTURES,)),
    "RandomPosterization": ({"factor": 4}, (PICTURES,)),
    "RandomSaturation": ({"factor": 0.2}, (PICTURES,)),
    "RandomSharpness": ({"factor": 0.2}, (PICTURES,)),
    "RandomRotation": ({"factor": 0.2}, (PICTURES,)),
    "RandomTranslation": ({"height_factor": 0.2, "width_factor": 0.2}, (PICTURES,)),
    "RandomZoom": ({"height_factor": 0.2}, (PICTURES,)),
}
#: no layers that a model could hold, or ones of the user's own code
_NO_LAYERS = (
    "InputSpec", "Layer", "NumpyLayer", "Input", "SimpleRNNCell", "LSTMCell", "GRUCell", "StackedRNNCells",
)  # fmt: skip


def _layers() -> Iterator[Member]:
    cases = {getattr(layers, case.name): case for case in reversed(CASES)}
    for name in layers.__all__:
        cls = getattr(layers, name)
        if not inspect.isclass(cls) or name in _NO_LAYERS or cls.__name__ != name:
            continue
        if name in _LAYERS:
            config, shapes = _LAYERS[name]
        elif cls is layers.InputLayer:
            config, shapes = {"batch_shape": [None, *VECTORS]}, ()
        elif cls in cases:
            config, shapes = cases[cls].arguments, tuple(shape[1:] for shape in cases[cls].shapes)
        else:
            config, shapes = {}, (PICTURES,)
        yield Member("layer", "layers", name, {**config, "name": "it"}, shapes)


@functools.cache
def _functions() -> dict[str, Any]:
    """Functions of `ops`, by the names that classes of Keras's operations would have."""
    found = {}
    for place in (ops, ops.image):
        for name in dir(place):
            function = getattr(place, name)
            if inspect.isfunction(function) and not name.startswith("_"):
                found["".join(part.capitalize() for part in name.split("_")).replace("3d", "3D")] = function
    return found


def _function_members() -> Iterator[Member]:
    for class_name, function in _functions().items():
        args, config = call_of(function)
        yield Member("function", "ops", class_name, config, tuple(shapes_in(args)), tuple(args))


def _operators() -> Iterator[Member]:
    for name, cls in vars(ops).items():
        if inspect.isclass(cls) and issubclass(cls, ops.Op) and dataclasses.is_dataclass(cls) and name != "TableOp":
            shapes, args = INPUTS.get(name, ((IMAGES,) * (2 if name in TWO else 1), ()))
            yield Member("operator", "ops", name, FIELDS.get(name, {}), shapes, args)
    for function, static in STATIC.items():
        config = {"function": function, "static": [list(pair) for pair in static.items()]}
        yield Member("operator", "ops", "TableOp", config)


_PUBLIC = (
    ("initializer", initializers, initializers.Initializer),
    ("regularizer", regularizers, regularizers.Regularizer),
    ("constraint", constraints, constraints.Constraint),
    ("loss", losses, losses.Loss),
    ("metric", metrics, metrics.Metric),
    ("optimizer", optimizers, optimizers.Optimizer),
    ("schedule", schedules, schedules.LearningRateSchedule),
)
_CONFIGS: dict[str, dict[str, Any]] = {
    "CosineDecay": {"initial_learning_rate": 0.1, "decay_steps": 5},
    "CosineDecayRestarts": {"initial_learning_rate": 0.1, "first_decay_steps": 5},
    "ExponentialDecay": {"initial_learning_rate": 0.1, "decay_steps": 5, "decay_rate": 0.5},
    "InverseTimeDecay": {"initial_learning_rate": 0.1, "decay_steps": 5, "decay_rate": 0.5},
    "PolynomialDecay": {"initial_learning_rate": 0.1, "decay_steps": 5},
    "PiecewiseConstantDecay": {"boundaries": [2], "values": [0.1, 0.2]},
    "LinearScaling": {"learning_rate": 0.1, "factor": 2.0, "warmup_steps": 3},
    "IoU": {"num_classes": 3, "target_class_ids": [0]},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0]},
    "MeanIoU": {"num_classes": 3},
    "OneHotMeanIoU": {"num_classes": 3},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
    "LossScaleOptimizer": {"inner_optimizer": {"module": "keras.optimizers", "class_name": "SGD", "config": {}}},
}


def _others() -> Iterator[Member]:
    for kind, module, base in _PUBLIC:
        for name, cls in sorted(vars(module).items()):
            if inspect.isclass(cls) and issubclass(cls, base) and cls is not base and cls.__name__ == name:
                yield Member(kind, module.__name__.split(".")[1], name, _CONFIGS.get(name, {}), (VECTORS,))


#: of arrays alone, or of values that are no tensors; bases of others; operators of the package's own graphs
_NO_EXAMPLE = (
    "Arange", "Bincount", "BroadcastTo", "Nonzero", "Polar", "ViewAsComplex", "ViewAsReal",
    "ElasticTransform", "Exchange", "NumpyOp", "Portion", "WeightedSum", "LossFunctionWrapper", "MeanMetricWrapper",
    "RandomInitializer", "STFT", "Wrapper", "_Norm", "CTC",
)  # fmt: skip


def has_example(member: Member) -> bool:
    """Whether a model that holds the member as it is works; functions that no file may name have none."""
    if member.kind == "function":
        card = card_of_class(member.name)
        return card is not None and not card.takes_functions and member.name not in _NO_EXAMPLE
    return member.name not in _NO_EXAMPLE


def members() -> list[Member]:
    return [*_layers(), *_function_members(), *_operators(), *_others()]
