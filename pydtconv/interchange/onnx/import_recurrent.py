"""Rows of the table from ONNX to ours: recurrent layers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pydtconv import layers, ops
from pydtconv.interchange.onnx.call import Call, is_symbolic, row

#: our activations, by ONNX's in lower case
_ACTIVATIONS = {"tanh": "tanh", "sigmoid": "sigmoid", "relu": "relu", "softplus": "softplus", "softsign": "softsign"}


def _activations(call: Call, count: int, usual: list[str]) -> list[str]:
    """Those of one direction, which all directions have."""
    given = [name.lower() for name in call.attribute("activations") or usual]
    each = given[:count]
    if given[count:] not in ([], each) or any(name not in _ACTIVATIONS for name in each):
        raise call.error(f"activations: expected some of {', '.join(_ACTIVATIONS)}, as of {usual}, got {given}")
    return [_ACTIVATIONS[name] for name in each]


def _weights(call: Call, order: list[int]) -> tuple[list[list[np.ndarray]], int]:
    """Kernel, recurrent kernel and both biases of each direction in our order of gates, and the units."""
    w, r, b = call.constant(1, "W"), call.constant(2, "R"), call.constant(3, "B")
    assert w is not None
    assert r is not None
    units = r.shape[-1]
    columns = np.concatenate([np.arange(gate * units, (gate + 1) * units) for gate in order])
    if w.ndim != 3 or r.shape != (w.shape[0], len(columns), units) or w.shape[1] != len(columns):
        raise call.error(f"W, R: expected matrices of {len(order)} gates, got shapes {w.shape} and {r.shape}")
    call.expect("hidden_size", units, units)
    b = np.zeros((len(w), 2 * len(columns)), w.dtype) if b is None else b
    return [
        [w[i][columns].T, r[i][columns].T, b[i][: len(columns)][columns], b[i][len(columns) :][columns]]
        for i in range(len(w))
    ], units


def _check_inputs(call: Call) -> None:
    """Raises for what layers do not have: lengths that differ, states to start from, peepholes."""
    steps = call.x[0].shape[0]
    lengths = call.constant(4, "sequence_lens")
    if lengths is not None and (lengths != steps).any():
        raise call.error(f"sequence_lens: expected {steps}, that of all sequences, got {lengths}")
    for index, name in ((5, "initial_h"), (6, "initial_c"), (7, "P")):
        value = call.input(index)
        if is_symbolic(value) or (value is not None and np.any(value)):
            raise call.error(f"{name}: expected none, or zeros")
    call.expect("layout", 0)
    call.expect("clip", None)
    call.expect("input_forget", 0)
    for name in ("activation_alpha", "activation_beta"):
        call.expect(name, None)


def _outputs(call: Call, layer: Any, weights: list[list[np.ndarray]]) -> list[Any]:
    """Y (steps, directions, n, units), and the last states (directions, n, units)."""
    _check_inputs(call)
    direction = call.attribute("direction", "forward")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if backwards is None or len(backwards) != len(weights):
        raise call.error(f"direction: expected that of {len(weights)} matrices of weights, got {direction!r}")
    x, found = ops.transpose(call.x[0], (1, 0, 2)), []
    for back, own in zip(backwards, weights, strict=True):
        key = (*(name for name in call.node.input[1:4] if name), str(back))
        made = partial(layer, go_backwards=back, return_sequences=True, return_state=True)
        y, *states = call.make(made, key, x, own)
        found.append([ops.transpose(ops.flip(y, axis=1) if back else y, (1, 0, 2)), *states])
    return [ops.stack(parts, axis=1 if i == 0 else 0) for i, parts in enumerate(zip(*found, strict=True))]


@row("LSTM")
def _lstm(call: Call) -> Any:
    weights, units = _weights(call, [0, 2, 3, 1])
    gate, state, output = _activations(call, 3, ["sigmoid", "tanh", "tanh"])
    if state != output:
        raise call.error(f"activations: expected the same for both states, got {state} and {output}")
    layer = partial(layers.LSTM, units, state, gate)
    return _outputs(call, layer, [[kernel, r, b + own] for kernel, r, b, own in weights])


@row("GRU")
def _gru(call: Call) -> Any:
    weights, units = _weights(call, [0, 1, 2])
    gate, state = _activations(call, 2, ["sigmoid", "tanh"])
    after = bool(call.attribute("linear_before_reset", 0))
    layer = partial(layers.GRU, units, state, gate, reset_after=after)
    both = [[kernel, r, np.stack([b, own]) if after else b + own] for kernel, r, b, own in weights]
    return _outputs(call, layer, both)


@row("RNN")
def _rnn(call: Call) -> Any:
    weights, units = _weights(call, [0])
    (state,) = _activations(call, 1, ["tanh"])
    layer = partial(layers.SimpleRNN, units, state)
    return _outputs(call, layer, [[kernel, r, b + own] for kernel, r, b, own in weights])
