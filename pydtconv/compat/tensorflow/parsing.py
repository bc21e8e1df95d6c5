"""`tf.io`: the features of examples as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pydtconv.compat.tensorflow.arrays import array, in_bytes, name_of
from pydtconv.compat.tensorflow.examples import Example, Feature, SequenceExample
from pydtconv.compat.tensorflow.sparse import SparseTensor


class FixedLenFeature(NamedTuple):
    """A feature of one shape.  default_value: stands where a record lacks it."""

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values, which becomes a SparseTensor."""

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature of a shape behind a first axis of any extent."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


_LISTS = {"string": "bytes_list", "float32": "float_list", "int64": "int64_list"}


def _values(name: str, feature: Feature | None, dtype: Any) -> Any:
    """The values of a feature as a vector; None where there are none.  Raises ValueError for those of another dtype."""
    kind = name_of(dtype)
    if kind not in _LISTS:
        raise ValueError(f"feature {name!r}: dtype: expected tf.string, tf.float32 or tf.int64, got {kind}")
    which = None if feature is None else feature.WhichOneof("kind")
    if feature is None or which is None:
        return None
    if which != _LISTS[kind]:
        raise ValueError(f"feature {name!r}: expected data of {kind}, got a {which}")
    values = feature.values
    return in_bytes(values).reshape(-1) if kind == "string" else array(np.asarray(values, kind))


def _extents(spec: Any) -> list[int]:
    return [int(n) for n in np.reshape(spec.shape, -1)]


def _fixed(name: str, spec: FixedLenFeature, feature: Feature | None) -> Any:
    values, extents = _values(name, feature, spec.dtype), _extents(spec)
    if values is None:
        if spec.default_value is None:
            raise ValueError(f"feature {name!r} is required, but the example has none")
        return array(np.broadcast_to(array(spec.default_value, spec.dtype), extents).copy())
    if values.size != int(np.prod(extents)):
        raise ValueError(
            f"feature {name!r}: expected {int(np.prod(extents))} values of shape {extents}, got {values.size}"
        )
    return values.reshape(extents)


def _sequence(name: str, spec: FixedLenSequenceFeature, feature: Feature | None) -> Any:
    values, extents = _values(name, feature, spec.dtype), _extents(spec)
    if values is None and not spec.allow_missing:
        raise ValueError(f"feature {name!r} is required, but the example has none")
    found = array([], spec.dtype) if values is None else values
    if found.size % max(int(np.prod(extents)), 1):
        raise ValueError(f"feature {name!r}: expected values of shape {extents} each, got {found.size} of them")
    return found.reshape(-1, *extents)


def _sparse(name: str, spec: VarLenFeature, features: list[Feature | None]) -> SparseTensor:
    """The values of each example as a row."""
    rows = [_values(name, each, spec.dtype) for each in features]
    sizes = [0 if row is None else row.size for row in rows]
    places = np.array([(i, j) for i, size in enumerate(sizes) for j in range(size)], "int64").reshape(-1, 2)
    there = [row.view(np.ndarray) for row in rows if row is not None]
    values = array(np.concatenate(there) if there else array([], spec.dtype), spec.dtype)
    return SparseTensor(places, values, (len(rows), max(sizes, default=0)))


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: Any = None
) -> Any:
    """The features of one serialized `Example` as tensors by name.

    Raises ValueError for bytes that are no example, and for a feature that is missing or is not as its spec says.
    """
    message = Example.FromString(serialized).features.feature
    return {key: _parsed(key, spec, message.get(key)) for key, spec in _checked(features).items()}


def _parsed(name: str, spec: Any, feature: Feature | None) -> Any:
    if isinstance(spec, FixedLenFeature):
        return _fixed(name, spec, feature)
    if isinstance(spec, FixedLenSequenceFeature):
        return _sequence(name, spec, feature)
    return _sparse(name, spec, [feature]).row(0)


def _checked(features: Mapping[str, Any] | None) -> Mapping[str, Any]:
    for name, spec in (features or {}).items():
        if not isinstance(spec, (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature)):
            raise NotImplementedError(
                f"feature {name!r}: expected FixedLenFeature, VarLenFeature or FixedLenSequenceFeature, got {spec!r}"
            )
    return features or {}


def parse_example(serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: Any = None) -> Any:
    """The features of serialized examples, stacked; sequences are padded at their ends."""
    if in_bytes(serialized).ndim == 0:
        return parse_single_example(serialized, features)
    messages = [Example.FromString(each).features.feature for each in in_bytes(serialized)]
    found = {}
    for key, spec in _checked(features).items():
        each = [message.get(key) for message in messages]
        if isinstance(spec, VarLenFeature):
            found[key] = _sparse(key, spec, each)
            continue
        rows = [_parsed(key, spec, feature) for feature in each]
        found[key] = _stacked(rows, spec)
    return found


def _stacked(rows: list[Any], spec: Any) -> Any:
    longest = max((len(row) for row in rows), default=0) if isinstance(spec, FixedLenSequenceFeature) else None
    if longest is not None:
        padding = (
            spec.default_value if spec.default_value is not None else b"" if name_of(spec.dtype) == "string" else 0
        )
        rows = [
            np.concatenate([row, np.full((longest - len(row), *row.shape[1:]), padding, row.dtype.as_numpy_dtype)])
            for row in rows
        ]
    return array(np.stack([row.view(np.ndarray) for row in rows])) if rows else array([], spec.dtype)


def parse_single_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None, example_name: Any = None,
    name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The features of a serialized `SequenceExample`, and those of its steps, along a first axis."""
    message = SequenceExample.FromString(serialized)
    context = {
        key: _parsed(key, spec, message.context.feature.get(key)) for key, spec in _checked(context_features).items()
    }
    steps = {}
    for key, spec in _checked(sequence_features).items():
        each = message.feature_lists.feature_list.get(key)
        if each is None and not getattr(spec, "allow_missing", True):
            raise ValueError(f"feature list {key!r} is required, but the example has none")
        features = [] if each is None else each.feature
        if isinstance(spec, VarLenFeature):
            steps[key] = _sparse(key, spec, list(features))
        else:
            rows = [_fixed(key, FixedLenFeature(spec.shape, spec.dtype), feature) for feature in features]
            steps[key] = array(np.stack(rows)) if rows else array([], spec.dtype).reshape(0, *_extents(spec))
    return context, steps


def table() -> dict[str, Any]:
    """These names of `tf.io`."""
    own = (
        FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, parse_single_example, parse_example,
        parse_single_sequence_example,
    )  # fmt: skip
    return {each.__name__: each for each in own}
