"""`GradientTape`: records what runs within it and gives gradients of results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pydtconv import hooks, ops, tree
from pydtconv.dtypes import FLOATING, name_of, real
from pydtconv.engine.workspace import default
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.graph import current_graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.loops.explicit import explicit_gradients
from pydtconv.loops.recorded_tensor import Handle
from pydtconv.loops.recording import Recording


@hooks.tape.fill
class GradientTape:
    """Records what layers and `pydtconv.ops` compute within a `with` block, as `tf.GradientTape`.

        with GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    persistent: whether `gradient` may be called more than once.  watch_accessed_variables: whether trainable variables
    are watched by themselves; else those given to `watch` are.

    `gradient` inside another tape's block gives gradients that can be differentiated again, where each operator on the
    way has a rule for that (see docs/guides/custom-loops.md); others are refused by name.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._accessed = watch_accessed_variables
        self._recording: Recording | None = None
        self._spans: list[tuple[int, int]] = []
        self._start: int | None = None
        self._owns = False
        self._used = False
        self._watched: dict[int, Any] = {}

    # --- recording --------------------------------------------------------------------------------------------------
    def __enter__(self) -> GradientTape:
        if self._start is not None:
            raise ValueError("GradientTape: it is recording already")
        graph = current_graph()
        if graph is not None and not isinstance(graph, Recording):
            raise NotImplementedError(
                "GradientTape inside a layer's call, a loss or compute_loss: take gradients in train_step, or in a "
                "function of its own"
            )
        self._owns = graph is None
        if graph is None:
            graph = Recording(default(), traced=False) if self._recording is None else self._recording
            tracing.begin(graph)
        self._recording = graph
        self._start = len(graph.nodes)
        graph.open_tapes.append(self)
        graph.tapes.add(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._end_span()
        assert self._recording is not None
        self._recording.open_tapes.remove(self)
        if self._owns:
            tracing.end()

    def _end_span(self) -> None:
        assert self._recording is not None
        if self._start is not None:
            self._spans.append((self._start, len(self._recording.nodes)))
        self._start = None

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """What runs within is not differentiated."""
        if self._start is None or self._recording is None:
            raise ValueError("GradientTape.stop_recording: expected to be inside the tape's block")
        self._end_span()
        try:
            yield
        finally:
            self._start = len(self._recording.nodes)

    def reset(self) -> None:
        """Forgets what was recorded."""
        self._spans, self._used = [], False
        if self._start is not None and self._recording is not None:
            self._start = len(self._recording.nodes)

    def watch(self, tensor: Any) -> None:
        """Lets gradients by a tensor be taken: an array, a variable, or what layers and ops gave."""
        if self._recording is None:
            raise ValueError("GradientTape.watch: expected to be inside the tape's block")
        for leaf in tree.flatten(tensor):
            if not isinstance(leaf, (Handle, Variable, np.ndarray)):
                raise TypeError(f"GradientTape.watch: expected a tensor, an array or a variable, got {leaf!r}")
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind != "f":
                raise ValueError(f"GradientTape.watch: expected floating-point numbers, got {leaf.dtype}")
            self._watched[id(leaf)] = leaf
            if isinstance(leaf, np.ndarray):
                self._recording.watched[id(leaf)] = leaf
                self._recording.feed(leaf)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables that were watched, in the order of their first use."""
        if self._recording is None:
            return ()
        used = [tensor.variable for tensor in self._recording.parameters if tensor.variable is not None]
        return tuple(variable for variable in used if self._watches(variable) and variable.trainable)

    @property
    def is_over(self) -> bool:
        """Whether it has given the gradients that it gives, and its block is over."""
        return self.is_spent and self._start is None

    @property
    def is_spent(self) -> bool:
        """Whether it has given the gradients that it gives."""
        return self._used and not self._persistent

    def _watches(self, source: Any) -> bool:
        return self._accessed or not isinstance(source, Variable) or id(source) in self._watched

    # --- gradients --------------------------------------------------------------------------------------------------
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = "none",
    ) -> Any:
        """Gradients of the sum of target's elements, in the structure of sources; None by what it does not depend on.

        target: a tensor, or a structure of them, whose gradients are added.  sources: variables, tensors, arrays that
        are watched.  output_gradients: for each target what its elements are weighed with.
        unconnected_gradients: "none", or "zero" for zeros in the place of None.
        """
        recording = self._begin("gradient", unconnected_gradients)
        spans = [*self._spans, *([] if self._start is None else [(self._start, len(recording.nodes))])]
        targets = tree.flatten(target)
        self._check_targets("gradient", targets)
        if output_gradients is not None:
            targets, spans = self._weighed(targets, tree.flatten(output_gradients), spans)
        gradients = self._find(targets, tree.flatten(sources), spans)
        if str(unconnected_gradients) == "zero":
            kept = zip(gradients, tree.flatten(sources), strict=True)
            gradients = [_zeros(source.shape, source) if each is None else each for each, source in kept]
        return tree.pack_sequence_as(sources, gradients)

    def _begin(self, name: str, unconnected_gradients: Any) -> Recording:
        """The recording, of which gradients are about to be taken.  Raises where they cannot be."""
        if self._recording is None:
            raise ValueError(f"GradientTape.{name}: nothing was recorded")
        if self._used and not self._persistent:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
            )
        if str(unconnected_gradients) not in ("none", "zero"):
            raise ValueError(f"unconnected_gradients: expected 'none' or 'zero', got {unconnected_gradients!r}")
        self._used = True
        return self._recording

    def _check_targets(self, name: str, targets: Any) -> None:
        """Raises ValueError for what NumPy computed of an array that is watched, which nobody has recorded."""
        plain = any(type(leaf) is np.ndarray for leaf in self._watched.values())
        for target in targets:
            if plain and isinstance(target, (np.ndarray, np.generic)) and id(target) not in self._watched:
                raise ValueError(
                    f"GradientTape.{name}: target: expected what layers or ops gave inside the tape's block, got a "
                    "NumPy array: NumPy's own arithmetic on a watched array is not recorded"
                )

    def _find(self, targets: Any, sources: Any, spans: Any) -> list[Any]:
        """The gradient of the sum of all targets by each source; None where there is none."""
        recording = self._recording
        assert recording is not None
        flat = [source if self._watches(source) else None for source in sources]
        asked = [source for source in flat if source is not None]
        ends = len(recording.nodes) if self._start is not None else max((stop for _, stop in spans), default=0)
        others = [other._start for other in recording.open_tapes if other is not self]
        inside_another = any(start is not None and start < ends for start in others)
        find = explicit_gradients if inside_another else Recording.differentiate
        with _going_on(recording):
            found = iter(find(recording, targets, asked, spans))
        return [None if source is None else next(found) for source in flat]

    def _weighed(self, targets: Any, weights: Any, spans: Any) -> tuple[list[Any], list[tuple[int, int]]]:
        assert self._recording is not None
        if len(targets) != len(weights):
            raise ValueError(f"output_gradients: expected one for each of {len(targets)} targets, got {len(weights)}")
        start = len(self._recording.nodes)
        with _going_on(self._recording):
            weighed = [x if w is None else ops.multiply(x, w) for x, w in zip(targets, weights, strict=True)]
        return weighed, [*spans, (start, len(self._recording.nodes))]

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = "none",
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of each element of target by each of sources: shape target.shape + source.shape.

        There is one pass backward for each element.  The last two arguments, TensorFlow's, say nothing here.
        """
        recording = self._begin("jacobian", unconnected_gradients)
        self._check_targets("jacobian", [target])
        shape = _known_shape("jacobian", target)
        count = math.prod(shape)
        rows = (np.eye(1, count, i, dtype="float32").reshape(shape) for i in range(count))
        found = self._rows(target, tree.flatten(sources), rows)
        with _going_on(recording):
            stacked = [
                _zero(unconnected_gradients, (*shape, *source.shape), source)
                if parts[0] is None
                else ops.reshape(ops.stack(parts, axis=0), (*shape, *parts[0].shape))
                for parts, source in zip(found, tree.flatten(sources), strict=True)
            ]
        return tree.pack_sequence_as(sources, stacked)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = "none",
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """As `jacobian`, sample by sample: shape (n, *target.shape[1:], *source.shape[1:]).

        Sample i of target must depend on sample i of source alone.
        """
        recording = self._begin("batch_jacobian", unconnected_gradients)
        self._check_targets("batch_jacobian", [target])
        shape, given = _known_shape("batch_jacobian", target), _known_shape("batch_jacobian", source)
        if not shape or not given or shape[0] != given[0]:
            raise ValueError(f"batch_jacobian: expected target and source of one batch size, got {shape}, {given}")
        count = math.prod(shape[1:])
        rows = (
            np.broadcast_to(np.eye(1, count, i, dtype="float32").reshape((1, *shape[1:])), shape).copy()
            for i in range(count)
        )
        (parts,) = self._rows(target, [source], rows)
        whole = (*shape, *given[1:])
        if parts[0] is None:
            return _zero(unconnected_gradients, whole, source)
        with _going_on(recording):
            return ops.reshape(ops.stack(parts, axis=1), whole)

    def _rows(self, target: Any, sources: Sequence[Any], rows: Iterable[np.ndarray]) -> list[list[Any]]:
        """For each source the gradients of target, weighed by each of the rows."""
        recording = self._recording
        assert recording is not None
        start = [] if self._start is None else [(self._start, len(recording.nodes))]
        found: list[list[Any]] = [[] for _ in sources]
        for row in rows:
            targets, spans = self._weighed([target], [row], [*self._spans, *start])
            for parts, gradient in zip(found, self._find(targets, sources, spans), strict=True):
                parts.append(gradient)
        return found


def _known_shape(name: str, tensor: Any) -> tuple[int, ...]:
    shape = getattr(tensor, "shape", None)
    if shape is None or None in shape or 0 in shape:
        raise ValueError(f"GradientTape.{name}: expected a tensor with elements, got {tensor!r}")
    return tuple(shape)


def _zero(unconnected_gradients: Any, shape: tuple[int, ...], source: Any) -> Any:
    return _zeros(shape, source) if str(unconnected_gradients) == "zero" else None


def _zeros(shape: tuple[int, ...], source: Any) -> np.ndarray:
    """What stands for no gradient by a source: of its dtype, where that is a float."""
    kind = name_of(source.dtype)
    return np.zeros(shape, real(kind) if kind in FLOATING else "float32")


@contextmanager
def _going_on(recording: Recording) -> Iterator[None]:
    """While operators go into a recording, whose block may be over."""
    tracing.begin(recording)
    try:
        yield
    finally:
        tracing.end()


@hooks.recording_of.fill
def _watching(arrays: Sequence[Any]) -> Recording | None:
    """What is recorded, where one of the arrays is watched."""
    graph = current_graph()
    if not isinstance(graph, Recording) or not graph.watched:
        return None
    graph.check_views(arrays)
    return graph if any(id(array) in graph.watched for array in arrays) else None


@hooks.recorded.fill
def _recorded(array: np.ndarray) -> Any:
    """The array as a tensor whose arithmetic is recorded, where a tape records."""
    graph = current_graph()
    return graph.fed(array) if isinstance(graph, Recording) and graph.open_tapes else array
