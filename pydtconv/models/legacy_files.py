"""`.h5` files of whole models and of weights, as Keras 2 wrote them and Keras 3 does with `model.save("net.h5")`.

Attributes hold the config and the arguments of compile, groups the weights: those of a layer in a group of its name,
trainable ones first.  Nothing of a file is run; what is read is checked before anything is changed.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pydtconv import losses, metrics, optimizers
from pydtconv._version import __version__
from pydtconv.files.hdf5 import array_of, attribute_of, dataset_at, group_at, opened, writing
from pydtconv.files.reading import BadFileError, check_regular, parsing, unpacked_limit
from pydtconv.files.whole_file import write_whole
from pydtconv.graph.ir.variable import Variable, as_stored
from pydtconv.interchange.named_weights import STRICT, Leeway
from pydtconv.layers.base.locks import turn_of
from pydtconv.ops.operations import card_of_class
from pydtconv.serialization.budget import limited_memory
from pydtconv.serialization.objects import deserialize_keras_object, reading_shared, serialize_keras_object, with_shared
from pydtconv.serialization.registry import custom_object_scope, get_registered_object
from pydtconv.serialization.values import parsed
from pydtconv.support.uninterrupted import uninterrupted

if TYPE_CHECKING:
    import h5py

#: bytes that HDF5 takes in one attribute; longer lists of names are cut into several
_ATTRIBUTE_LIMIT = 64512
_TOP = "top_level_model_weights"


# -- reading -----------------------------------------------------------------------------------------------------------


def is_legacy(h5: h5py.File) -> bool:
    """Whether a file has weights in the old layout, alone or of a whole model."""
    return "layer_names" in h5.attrs or "layer_names0" in h5.attrs or "model_weights" in h5


def load_legacy_model(path: Path, custom_objects: Mapping[str, Any] | None, compile: bool) -> Any:
    """The model of an `.h5` file.  Raises BadFileError naming the file and what is wrong with it."""
    check_regular(path)
    with parsing(path, "an '.h5' file of a whole model"), opened(path, "an '.h5' file of a whole model") as h5:
        config = _json(h5, "model_config")
        if config is None:
            raise BadFileError("expected a whole model, found weights alone: build the model and use load_weights")
        with limited_memory(unpacked_limit(path.stat().st_size)), reading_shared():
            model = deserialize_keras_object(modern(config), custom_objects)
        read_legacy_weights(model, h5, str(path))
        training = _json(h5, "training_config")
        if compile and training is not None and _compiles(model, training, custom_objects or {}, str(path)):
            _read_optimizer(model, h5, str(path))
    return model


def _compiles(model: Any, training: Any, custom_objects: Mapping[str, Any], name: str) -> bool:
    """Compiles with the arguments of a file; a warning says why where that cannot be done, and the model stays."""
    try:
        with custom_object_scope(custom_objects):
            _compile(model, training)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        warnings.warn(f"{name}: the model is not compiled: {type(error).__name__}: {error}", stacklevel=4)
        return False
    return True


def _json(h5: h5py.File, name: str) -> Any:
    text = attribute_of(h5, name)
    if text is None:
        return None
    return parsed(text.decode() if isinstance(text, bytes) else str(text))


def read_legacy_weights(
    model: Any, h5: h5py.File, name: str, leeway: Leeway = STRICT, by_name: bool = False
) -> list[str]:
    """Weights in the old layout into a built model: layer by layer in their order, or by the layers' names.

    Raises ValueError naming layer, expected and found shapes, before anything is changed.  Returns the layers that
    keep their weights by the leeway, and why.
    """
    group = h5 if "model_weights" not in h5 else group_at(h5, "model_weights")
    assert group is not None
    stored = {layer: names_in(group_at(group, layer), "weight_names") for layer in names_in(group, "layer_names")}
    pairs: list[tuple[Any, str]] = []
    if by_name:
        pairs = [(layer, layer.name) for layer in dict.fromkeys(model.layers) if layer.name in stored]
    else:
        ours = [layer for layer in dict.fromkeys(model.layers) if layer.variables]
        theirs = [layer for layer, weights in stored.items() if weights]
        if not len(ours) <= len(theirs) <= len(ours) + leeway.more:
            more = f" and at most {leeway.more} more" if leeway.more else ""
            raise ValueError(f"{name}: expected weights of {len(ours)} layers{more}, found those of {len(theirs)}")
        if leeway.known_names and {layer.name for layer in ours} == set(theirs[: len(ours)]):
            theirs = [layer.name for layer in ours]
        pairs = list(zip(ours, theirs, strict=False))
    wanted = [(layer, _as_named(_in_old_order(layer), stored[key]), key, stored[key]) for layer, key in pairs]
    top = group_at(group, _TOP) if _TOP in group else None
    if top is not None and names_in(top, "weight_names"):
        wanted.append((model, list(model._pydt_own_variables()), _TOP, names_in(top, "weight_names")))
    fitting: list[tuple[Variable, h5py.Dataset]] = []
    problems: list[str] = []
    left: list[str] = []
    for layer, variables, key, names in wanted:
        held = group_at(group, key)
        datasets = [dataset_at(held, weight) for weight in names]
        problem = _mismatch(variables, datasets)
        if leeway.known_names and layer is not model:
            problem = misplaced(layer.name, key, stored) or problem
        if problem:
            where = "the model itself" if layer is model else f"layer {layer.name!r} ({type(layer).__name__})"
            (left if leeway.layers(layer) else problems).append(f"{where}: {problem}")
        else:
            fitting.extend(zip(variables, datasets, strict=True))
    if problems:
        raise ValueError(f"{name} does not fit the model {model.name!r}:\n" + "\n".join(problems[:5]))
    found = as_stored(name, ((variable, array_of(dataset)) for variable, dataset in fitting), stacklevel=7)
    with turn_of(model).taken(), uninterrupted():
        for variable, value in found:
            variable.assign(value)
    return left


def misplaced(name: str, found: str, names: Container[str]) -> str | None:
    """Where a file has another layer than that of this name, which it has elsewhere.  Numbers of names may differ."""
    same = re.sub(r"_\d+$", "", name) == re.sub(r"_\d+$", "", found)
    return None if same or name not in names else f"expected its weights, found those of {found!r} in its place"


def _in_old_order(layer: Any) -> list[Variable]:
    return [*layer.trainable_variables, *layer.non_trainable_variables]


def _as_named(variables: list[Variable], names: list[str]) -> list[Variable]:
    """The variables in the order of their names in a file, where it has just those; else as they are."""
    ours = {variable.path: variable for variable in variables}
    theirs = [name.removesuffix(":0") for name in names]
    same = len(ours) == len(variables) == len(theirs) and ours.keys() == set(theirs)
    return [ours[name] for name in theirs] if same else variables


def _mismatch(variables: list[Variable], datasets: list[h5py.Dataset]) -> str | None:
    if len(variables) != len(datasets):
        return f"expected {len(variables)} variables, found {len(datasets)}"
    for variable, dataset in zip(variables, datasets, strict=True):
        if dataset.shape != variable.shape:
            return f"{variable.name}: expected shape {variable.shape}, found {dataset.shape}"
    return None


def names_in(group: h5py.Group | None, attribute: str) -> list[str]:
    """A list of names, which may be cut into several attributes."""
    if group is None:
        raise BadFileError(f"expected a group that has {attribute}, found none")
    whole = attribute_of(group, attribute)
    parts = [] if whole is None else [whole]
    while whole is None and (part := attribute_of(group, f"{attribute}{len(parts)}")) is not None:
        parts.append(part)
    return [name.decode() if isinstance(name, bytes) else str(name) for part in parts for name in np.ravel(part)]


def decayed(rate: float, decay: float) -> dict[str, Any]:
    """The arguments of an optimizer for Keras 2's decay: a schedule of its rate."""
    return {"learning_rate": optimizers.schedules.InverseTimeDecay(rate, 1, decay)}


def _compile(model: Any, training: Mapping[str, Any]) -> None:
    """Compiles with the arguments of a file, of either version of Keras."""
    given = dict(training)
    described = modern(given.pop("optimizer_config"))
    name = described["class_name"]
    own = get_registered_object(described.get("registered_name") or name) or get_registered_object(name)
    name = name.removeprefix("Custom>")
    cls = own or getattr(optimizers, name, None) or optimizers.get(name.lower()).__class__
    config = {key: value for key, value in described["config"].items() if key not in _FORGOTTEN}
    if "lr" in config:
        config["learning_rate"] = config.pop("lr")
    decay = described["config"].get("decay")
    if decay:  # Keras 2's own: rate / (1 + decay * iterations)
        if not isinstance(config["learning_rate"], (int, float)):
            raise BadFileError(f"decay: expected none beside a schedule of the learning rate, got {decay}")
        config |= decayed(config["learning_rate"], decay)
    optimizer = cls.from_config(config)
    arguments = {
        key: _revived(modern(given[key]), table)
        for key, table in (
            ("loss", losses),
            ("metrics", metrics),
            ("weighted_metrics", metrics),
            ("loss_weights", None),
        )
        if given.get(key) is not None
    }
    model.compile(optimizer=optimizer, **arguments)


#: arguments of Keras 2's optimizers that ours do not have
_FORGOTTEN = ("is_legacy_optimizer", "jit_compile", "decay")


def _revived(value: Any, table: Any) -> Any:
    """Losses and metrics of a config: names stay, configs become objects."""
    if isinstance(value, dict) and "class_name" in value:
        config = value.get("config")
        if isinstance(config, dict) and config.get("reduction") == "auto":  # Keras 2's name of the default
            value = {**value, "config": {**config, "reduction": "sum_over_batch_size"}}
        if value["class_name"] in ("MeanMetricWrapper", "LossFunctionWrapper"):
            return _around_function(value, table)
        return table.deserialize(value)
    if isinstance(value, dict):
        return {key: _revived(item, table) for key, item in value.items()}
    if isinstance(value, list):
        return [_revived(item, table) for item in value]
    return value


def _around_function(value: Mapping[str, Any], table: Any) -> Any:
    """A loss or metric of a function, of which Keras 2 writes the name."""
    config = dict(value["config"])
    name = config.get("fn")
    if isinstance(name, str):
        config["fn"] = get_registered_object(name) or getattr(table, name, None)
        if not callable(config["fn"]):
            raise ValueError(f"unknown function {name!r}: pass custom_objects={{{name!r}: ...}}")
    return getattr(table, value["class_name"]).from_config(config)


def _read_optimizer(model: Any, h5: h5py.File, name: str) -> None:
    group = group_at(h5, "optimizer_weights") if "optimizer_weights" in h5 else None
    if group is None:
        return
    optimizer = model.optimizer
    optimizer.ready(model.trainable_variables)
    datasets = [dataset_at(group, weight) for weight in names_in(group, "weight_names")]
    problem = _mismatch(optimizer.variables, datasets)
    if problem:
        warnings.warn(f"{name}: the optimizer's state was skipped: {problem}", stacklevel=4)
        return
    found = as_stored(name, zip(optimizer.variables, map(array_of, datasets), strict=True))
    optimizer.load_own_variables({str(i): value for i, (_, value) in enumerate(found)})


# -- configs of Keras 2 ------------------------------------------------------------------------------------------------


def modern(data: Any) -> Any:
    """A config of Keras 2, or of Keras 3's old format, as Keras 3's: modules, shapes, calls and dtypes."""
    if isinstance(data, list):
        return [modern(item) for item in data]
    if not isinstance(data, dict):
        return data
    if not ("class_name" in data and "config" in data) or str(data["class_name"]).startswith("__"):
        return {key: modern(value) for key, value in data.items()}
    name, config = data["class_name"], data["config"]
    if name in ("Policy", "DTypePolicy", "PolicyV1"):
        return config["name"] if name != "DTypePolicy" else data
    if name == "Sequential" and isinstance(config, list):  # before Keras 2.2.3
        config = {"name": "sequential", "layers": config}
    old = isinstance(config, dict) and any(_is_old_call(layer) for layer in config.get("layers") or [])
    config = modern(config)
    if old:  # one input or output was a list of one
        for key in ("input_layers", "output_layers"):
            if len(config[key]) == 1:
                (config[key],) = config[key]
    if isinstance(config, dict):
        config = _renamed(name, config)
    made = {**data, "class_name": {"Model": "Functional"}.get(name, name), "config": config}
    made.setdefault("module", "keras.src.ops" if _is_operation(data) else "keras")
    if "inbound_nodes" in data:
        made["inbound_nodes"] = [_call(node) for node in data["inbound_nodes"]]
    return made


def _renamed(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Arguments of layers under their new names."""
    shape = config.pop("batch_input_shape", None)
    if shape is not None and name == "InputLayer":
        config["batch_shape"] = shape
    elif shape is not None:
        config["input_shape"] = shape[1:]
    if name == "InputLayer":
        return {key: value for key, value in config.items() if key in ("batch_shape", "dtype", "name")}
    if name == "LeakyReLU" and "alpha" in config:
        config["negative_slope"] = float(np.asarray(config.pop("alpha")))
    if isinstance(config.get("axis"), list) and len(config["axis"]) == 1:
        (config["axis"],) = config["axis"]
    for key in ("batch_size", "ragged", "sparse", "time_major", "virtual_batch_size", "adjustment", "fused"):
        if config.get(key) in (None, False):
            config.pop(key, None)
    if name == "DepthwiseConv2D":  # of its base class
        for key in ("filters", "kernel_initializer", "kernel_regularizer", "kernel_constraint", "groups"):
            config.pop(key, None)
    return config


def _is_operation(data: dict[str, Any]) -> bool:
    """Whether it is a function of `keras.ops` in a model: only layers are trainable or not."""
    config, name = data["config"], data["class_name"]
    called = any(isinstance(node, dict) for node in data.get("inbound_nodes") or ())
    return called and isinstance(config, dict) and "trainable" not in config and card_of_class(str(name)) is not None


def _is_old_call(layer: Any) -> bool:
    nodes = layer.get("inbound_nodes") if isinstance(layer, dict) else None
    return isinstance(nodes, list) and bool(nodes) and isinstance(nodes[0], list)


def _call(node: Any) -> Any:
    """A call of a layer: Keras 2 lists (layer, call, output, arguments) of each input."""
    if isinstance(node, dict):
        return modern(node)
    whole = [_tensor(entry) for entry in node] if node and isinstance(node[0], list) else [_tensor(node)]
    kwargs = node[0][3] if node and isinstance(node[0], list) and len(node[0]) > 3 else {}
    return {"args": [whole[0] if len(whole) == 1 else whole], "kwargs": modern(kwargs)}


def _tensor(entry: Any) -> dict[str, Any]:
    return {"class_name": "__keras_tensor__", "config": {"keras_history": list(entry[:3])}}


# -- writing -----------------------------------------------------------------------------------------------------------


def save_legacy_model(model: Any, path: Path, include_optimizer: bool = True) -> None:
    """Writes a built model to an `.h5` file, whole or not at all, as Keras 3 does."""
    data = io.BytesIO()
    config = with_shared(lambda: {"class_name": type(model).__name__, "config": model.get_config()})
    nbytes = sum(variable.spec.nbytes for variable in model.variables)
    with turn_of(model).taken(), writing(data, nbytes) as h5:
        h5.attrs["keras_version"] = "3.0.0"
        h5.attrs["backend"] = f"pydtconv {__version__}"
        h5.attrs["model_config"] = _bytes(config)
        if include_optimizer and model.compiled:
            h5.attrs["training_config"] = _bytes(_training_config(model))
        _write_weights(model, h5.create_group("model_weights"))
        if include_optimizer and model.compiled and model.optimizer is not None and model.optimizer.built:
            optimizer = model.optimizer
            state: dict[str, Any] = {}
            optimizer.save_own_variables(state)
            arrays = ((f"{optimizer.name}/{key}", value) for key, value in state.items())
            _write_arrays(h5.create_group("optimizer_weights"), arrays)
    write_whole(path, lambda file: file.write(data.getvalue()), data.getbuffer().nbytes)


def save_legacy_weights(model: Any, path: Path) -> None:
    """Writes the weights of a built model to an HDF5 file, whole or not at all, as Keras 2 did."""
    data = io.BytesIO()
    with turn_of(model).taken(), writing(data, sum(variable.value.nbytes for variable in model.variables)) as h5:
        _write_weights(model, h5)
    write_whole(path, lambda file: file.write(data.getvalue()), data.getbuffer().nbytes)


def _write_weights(model: Any, group: h5py.Group) -> None:
    """The weights by layers, whose order is that of the model."""
    layers = list(dict.fromkeys(model.layers))
    named = dict(zip(_that_differ(layer.name for layer in layers), layers, strict=True))
    write_names(group, "layer_names", list(named))
    group.attrs["backend"] = b"pydtconv"
    group.attrs["keras_version"] = b"3.0.0"
    for name in sorted(named):
        _write_arrays(group.create_group(name), _paths(_in_old_order(named[name])))
    _write_arrays(group.create_group(_TOP), _paths(model._pydt_own_variables()))


def _bytes(data: Any) -> bytes:
    return json.dumps(serialize_keras_object(data)).encode()


def _training_config(model: Any) -> dict[str, Any]:
    config = dict(model.get_compile_config())
    optimizer = config.pop("optimizer")
    if not isinstance(optimizer, dict):
        optimizer = serialize_keras_object(model.optimizer)
    config["optimizer_config"] = {"class_name": optimizer["class_name"], "config": optimizer["config"]}
    return config


def _that_differ(names: Iterable[str]) -> Iterator[str]:
    """The names, with a number behind one that has been there."""
    seen: set[str] = set()
    for given in names:
        name, count = given, 1
        while name in seen:
            name, count = f"{given}_{count}", count + 1
        seen.add(name)
        yield name


def _paths(variables: list[Variable]) -> Iterator[tuple[str, np.ndarray]]:
    """Names that differ, and values."""
    for name, variable in zip(_that_differ(variable.path for variable in variables), variables, strict=True):
        yield name, np.asarray(variable.array)


def _write_arrays(group: h5py.Group, arrays: Any) -> None:
    named = list(arrays)
    write_names(group, "weight_names", [name for name, _ in named])
    for name, value in named:
        group.create_dataset(name, data=value)


def write_names(group: h5py.Group, attribute: str, names: list[str]) -> None:
    """A list of names, cut where HDF5 takes no longer one."""
    coded = [name.encode() for name in names]
    parts = 1
    while any(np.asarray(part).nbytes > _ATTRIBUTE_LIMIT for part in np.array_split(np.asarray(coded), parts) if coded):
        parts += 1
    if parts == 1:
        group.attrs[attribute] = np.array(coded, "S")  # of one length: HDF5 reads others slowly where they are damaged
        return
    for i, part in enumerate(np.array_split(np.asarray(coded), parts)):
        group.attrs[f"{attribute}{i}"] = part
