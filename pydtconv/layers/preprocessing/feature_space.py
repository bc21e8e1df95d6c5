"""`FeatureSpace`: columns of a table, each with a layer that prepares it, as one vector or as a dict of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from pydtconv import hooks, ops, tree
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.core import Identity
from pydtconv.layers.input_layer import Input
from pydtconv.layers.preprocessing.categories import CategoryEncoding, Discretization
from pydtconv.layers.preprocessing.hashing import HashedCrossing, Hashing
from pydtconv.layers.preprocessing.images import Normalization, Rescaling
from pydtconv.layers.preprocessing.lookups import IntegerLookup, StringLookup
from pydtconv.naming import auto_name
from pydtconv.serialization.configurable import builtin
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object

#: elements without axes that are put together where a layer adapts
_ROWS = 32


def _mode(kind: str, mode: str, modes: Sequence[str]) -> str:
    if mode not in modes:
        raise ValueError(f"{kind}: output_mode: expected one of {', '.join(modes)}, got {mode!r}")
    return mode


class Cross:
    """Features that are hashed together into crossing_dim bins; "one_hot" or "int"."""

    def __init__(self, feature_names: Sequence[str], crossing_dim: int, output_mode: str = "one_hot") -> None:
        self.feature_names = tuple(feature_names)
        self.crossing_dim = crossing_dim
        self.output_mode = _mode("Cross", output_mode, ("int", "one_hot"))

    @property
    def name(self) -> str:
        return "_X_".join(self.feature_names)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        names = ("feature_names", "crossing_dim", "output_mode")
        return {name: getattr(self, name) for name in names}


class Feature:
    """A column: its dtype, the layer that prepares it, and whether its classes become vectors ("one_hot")."""

    def __init__(self, dtype: str, preprocessor: Any, output_mode: str) -> None:
        self.dtype = dtype
        self.preprocessor = deserialize_keras_object(preprocessor) if isinstance(preprocessor, dict) else preprocessor
        self.output_mode = _mode("Feature", output_mode, ("int", "one_hot", "float"))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        preprocessor = serialize_keras_object(self.preprocessor)
        return {"dtype": self.dtype, "preprocessor": preprocessor, "output_mode": self.output_mode}


@builtin
class TFDIdentity(Identity):
    """A column as it is."""


class FeatureSpace(Layer):
    """The columns of a table, prepared and encoded: `space.adapt(data)`, then `space(data)`.

    features: by name, a kind ("float", "float_normalized", "float_rescaled", "float_discretized",
    "integer_categorical", "string_categorical", "integer_hashed", "string_hashed") or what the class method of that
    name, or `feature`, gives.  output_mode: "concat" gives one vector (n, width), first features, then crosses, each by
    name; "dict" one for each.  crosses: tuples of names, or what `cross` gives; crossing_dim: their bins.  hashing_dim,
    num_discretization_bins: of kinds that are named.

    Data is a dict of arrays (n,) or (n, 1), of one value each, or of symbolic tensors.  Raises ValueError for data
    before `adapt`, and for names that are no features or are missing.
    """

    def __init__(
        self,
        features: Mapping[str, Any],
        output_mode: str = "concat",
        crosses: Sequence[Any] | None = None,
        crossing_dim: int = 32,
        hashing_dim: int = 32,
        num_discretization_bins: int = 32,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        if not features:
            raise ValueError(f"FeatureSpace: features: expected one or more, got {features!r}")
        self.output_mode = _mode("FeatureSpace", output_mode, ("concat", "dict"))
        self.crossing_dim, self.hashing_dim = crossing_dim, hashing_dim
        self.num_discretization_bins = num_discretization_bins
        self.features = {key: self._feature(key, value) for key, value in features.items()}
        self.crosses = [self._cross(cross) for cross in crosses or ()]
        self.inputs = {key: Input(shape=(1,), dtype=each.dtype, name=key) for key, each in self.features.items()}
        self.preprocessors = {key: each.preprocessor for key, each in self.features.items()}
        self.crossers = {each.name: HashedCrossing(each.crossing_dim, name=each.name) for each in self.crosses}
        self.one_hot_encoders: dict[str, CategoryEncoding] = {}
        self.encoded_features: Any = None
        given = {key for key, value in features.items() if isinstance(value, Feature)}
        self._adaptable = [
            key
            for key, layer in self.preprocessors.items()
            if hasattr(layer, "adapt") and not (key in given and _is_set(layer))
        ]
        self._is_adapted = not self._adaptable

    def _feature(self, name: str, value: Any) -> Feature:
        if isinstance(value, dict):
            value = deserialize_keras_object(value)
        if isinstance(value, Feature):
            return value
        sizes = {"float_discretized": self.num_discretization_bins}
        sizes |= dict.fromkeys(("integer_hashed", "string_hashed"), self.hashing_dim)
        if value not in _KINDS:
            raise ValueError(f"FeatureSpace: {name}: expected a Feature or one of {', '.join(_KINDS)}, got {value!r}")
        found: Feature = getattr(self, value)(*([sizes[value]] if value in sizes else ()), name=name)
        return found

    def _cross(self, value: Any) -> Cross:
        value = deserialize_keras_object(value) if isinstance(value, dict) else value
        found = value if isinstance(value, Cross) else Cross(value, self.crossing_dim)
        unknown = [name for name in found.feature_names if name not in self.features]
        if unknown or not found.crossing_dim:
            raise ValueError(
                f"FeatureSpace: crosses: expected names of features and a crossing_dim, got {found.feature_names}, "
                f"{found.crossing_dim}"
            )
        return found

    # -- features ------------------------------------------------------------------------------------------------------

    @classmethod
    def cross(cls, feature_names: Sequence[str], crossing_dim: int, output_mode: str = "one_hot") -> Cross:
        """Features that are hashed together."""
        return Cross(feature_names, crossing_dim, output_mode)

    @classmethod
    def feature(cls, dtype: str, preprocessor: Any, output_mode: str) -> Feature:
        """A column that a layer of one's own prepares."""
        return Feature(dtype, preprocessor, output_mode)

    @classmethod
    def float_rescaled(cls, scale: Any = 1.0, offset: Any = 0.0, name: str | None = None) -> Feature:
        """Numbers times scale, plus offset."""
        return Feature("float32", Rescaling(scale, offset, name=_named("float_rescaled", name)), "float")

    @classmethod
    def float_normalized(cls, name: str | None = None) -> Feature:
        """Numbers with the mean 0 and the variance 1, as `adapt` has seen them."""
        return Feature("float32", Normalization(axis=-1, name=_named("float_normalized", name)), "float")

    @classmethod
    def float_discretized(
        cls, num_bins: int | None, bin_boundaries: Any = None, output_mode: str = "one_hot", name: str | None = None
    ) -> Feature:
        """The bins of numbers: of these boundaries, or as many as told, which `adapt` finds."""
        layer = Discretization(bin_boundaries, num_bins, name=_named("float_discretized", name))
        return Feature("float32", layer, output_mode)

    @classmethod
    def integer_categorical(
        cls,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        output_mode: str = "one_hot",
        name: str | None = None,
    ) -> Feature:
        """Integers as the indices of a vocabulary."""
        layer = IntegerLookup(max_tokens, num_oov_indices, name=_named("integer_categorical", name))
        return Feature("int32", layer, output_mode)

    @classmethod
    def string_categorical(
        cls,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        output_mode: str = "one_hot",
        name: str | None = None,
    ) -> Feature:
        """Strings as the indices of a vocabulary."""
        layer = StringLookup(max_tokens, num_oov_indices, name=_named("string_categorical", name))
        return Feature("string", layer, output_mode)

    @classmethod
    def string_hashed(cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None) -> Feature:
        """Strings as bins of their hash."""
        return Feature("string", Hashing(num_bins, name=_named("string_hashed", name)), output_mode)

    @classmethod
    def integer_hashed(cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None) -> Feature:
        """Integers as bins of their hash."""
        return Feature("int32", Hashing(num_bins, name=_named("integer_hashed", name)), output_mode)

    # -- use -----------------------------------------------------------------------------------------------------------

    def adapt(self, dataset: Any) -> None:
        """Lets the layers learn from a dict of arrays, or from data (of `tf.data`, or a list) that gives such dicts."""
        if not isinstance(dataset, Iterable) or isinstance(dataset, (str, bytes, np.ndarray, Iterator)):
            raise ValueError(
                "FeatureSpace.adapt: expected a dict of arrays, or data of dicts that can be read several times, got "
                f"{type(dataset).__name__}"
            )
        for name in self._adaptable:
            column = _column(dataset[name]) if isinstance(dataset, Mapping) else _Column(dataset, name)
            self.preprocessors[name].adapt(column)
        self._is_adapted = True
        self.encoded_features = None
        self.one_hot_encoders = {}
        self.get_encoded_features()

    def get_inputs(self) -> dict[str, Any]:
        """The symbolic inputs (n, 1) by name."""
        self.get_encoded_features()
        return self.inputs

    def get_encoded_features(self) -> Any:
        """What the inputs become, symbolic.  Raises ValueError before `adapt`."""
        if not self._is_adapted:
            raise ValueError(f"FeatureSpace {self.name!r}: expected adapt(data) before it is used")
        if self.encoded_features is None:
            self.encoded_features = self._encoded(self.inputs)
            self.built = True
        return self.encoded_features

    @hooks.returning
    def __call__(self, data: Any) -> Any:
        self.get_encoded_features()
        if not isinstance(data, Mapping) or data.keys() != self.features.keys():
            got = sorted(data) if isinstance(data, Mapping) else type(data).__name__
            raise ValueError(f"FeatureSpace {self.name!r}: expected a dict of {sorted(self.features)}, got {got}")
        columns = {name: self._values(name, value) for name, value in data.items()}
        is_one = any(not len(each.shape) for each in columns.values())
        found = self._encoded({name: _column(each) for name, each in columns.items()})
        return tree.map_structure(lambda y: ops.squeeze(y, 0) if y.shape[0] == 1 else y, found) if is_one else found

    def _values(self, name: str, value: Any) -> Any:
        if hasattr(value, "apply_op"):
            return value
        kind, array = self.features[name].dtype, np.asarray(value)
        return array.astype(kind) if kind.startswith("float") and array.dtype.kind in "biuf" else array

    def _encoded(self, columns: Mapping[str, Any]) -> Any:
        """The columns (n, 1), prepared, crossed and encoded."""
        prepared = {name: self.preprocessors[name](columns[name]) for name in sorted(columns)}
        crossers = sorted((each.name, each) for each in self.crosses)
        crossed = {name: self.crossers[name]([prepared[key] for key in each.feature_names]) for name, each in crossers}
        specs: dict[str, Feature | Cross] = {**self.features, **dict(crossers)}
        found = {name: self._vector(name, specs[name], y) for name, y in {**prepared, **crossed}.items()}
        if self.output_mode == "dict":
            return found
        for name, y in found.items():
            if not str(tree.flatten(y)[0].dtype).startswith(("float", "bfloat")):
                raise ValueError(
                    f"FeatureSpace {self.name!r}: {name}: expected floats where features are joined, got {y.dtype}: "
                    "take output_mode='dict', or 'one_hot' for the feature"
                )
        return ops.concatenate(list(found.values()), axis=-1)

    def _vector(self, name: str, spec: Feature | Cross, y: Any) -> Any:
        if spec.output_mode != "one_hot":
            return y
        if name not in self.one_hot_encoders:
            layer = self.crossers[name] if isinstance(spec, Cross) else self.preprocessors[name]
            if not str(tree.flatten(y)[0].dtype).startswith("int"):
                raise ValueError(f"FeatureSpace: {name}: expected integers for output_mode='one_hot', got {y.dtype}")
            self.one_hot_encoders[name] = CategoryEncoding(_classes(name, layer), output_mode="multi_hot")
        return self.one_hot_encoders[name](y)

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, filepath: str | Path | IO[bytes]) -> None:
        """Writes a `.keras` file, which `load_model` reads."""
        hooks.public_room("saving").save_model(self, filepath)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        names = ("output_mode", "crossing_dim", "hashing_dim", "num_discretization_bins")
        objects = {"features": self.features, "crosses": self.crosses}
        return {**serialize_keras_object(objects), **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The space of a config."""
        return cls(**config)

    def get_build_config(self) -> dict[str, Any] | None:
        """What the layers of the features are built from."""
        return {name: layer.get_build_config() or {} for name, layer in self.preprocessors.items()}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Builds the layers of the features, which have been adapted when the config was written."""
        for name, of_layer in config.items():
            if not self.preprocessors[name].built:
                self.preprocessors[name].build_from_config(of_layer)
        self._is_adapted = self.built = True

    @classmethod
    def float(cls, name: str | None = None) -> Feature:
        """Numbers as they are."""
        return Feature("float32", TFDIdentity(dtype="float32", name=_named("float", name)), "float")


_KINDS = (
    "float", "float_normalized", "float_rescaled", "float_discretized", "integer_categorical", "string_categorical",
    "integer_hashed", "string_hashed",
)  # fmt: skip


def _named(kind: str, name: str | None) -> str:
    return f"{name or auto_name(kind)}_preprocessor"


def _is_set(layer: Any) -> bool:
    """Whether a layer was made with what it would learn."""
    names = ("input_mean", "bin_boundaries", "vocabulary")
    return any(getattr(layer, name, None) is not None for name in names)


def _classes(name: str, layer: Any) -> int:
    """How many classes a layer gives."""
    found = layer.vocabulary_size() if isinstance(layer, (IntegerLookup, StringLookup)) else None
    if isinstance(layer, Discretization):
        found = len(layer.bin_boundaries or ()) + 1
    found = found or getattr(layer, "num_tokens", None) or getattr(layer, "num_bins", None)
    if found is None:
        raise ValueError(
            f"FeatureSpace: {name}: expected a layer of known classes for output_mode='one_hot', got "
            f"{type(layer).__name__}: take output_mode='int'"
        )
    return int(found)


def _column(values: Any) -> Any:
    """Values (n, 1) of () or (n,)."""
    values = values if hasattr(values, "apply_op") else np.asarray(values)
    if len(values.shape) > 1:
        return values
    return ops.reshape(values, (-1, 1)) if hasattr(values, "apply_op") else values.reshape(-1, 1)


class _Column:
    """One column of data that gives dicts, in batches (n, 1), as often as it is read."""

    def __init__(self, data: Iterable[Any], name: str) -> None:
        self.data, self.name = data, name

    def __iter__(self) -> Iterator[np.ndarray]:
        values = map(self._value, self.data)
        for value in values:
            rows = [value] if value.ndim else [value, *islice(values, _ROWS - 1)]
            yield _column(value if value.ndim else np.stack(rows))

    def _value(self, element: Any) -> np.ndarray:
        if not isinstance(element, Mapping) or self.name not in element:
            raise ValueError(f"FeatureSpace.adapt: expected dicts with {self.name!r}, got {type(element).__name__}")
        return np.asarray(element[self.name])
