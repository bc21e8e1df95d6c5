"""Activations as ONNX nodes: each row of the table, run by onnxruntime."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import ops
from pydtconv.interchange.onnx.exporter import export_onnx
from pydtconv.ops.kinds import KINDS
from tests.interchange.onnx_sessions import run


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_activations(kind, tmp_path):
    inputs = keras.Input((40,))
    model = keras.Model(inputs, ops.Activation(kind)(inputs))
    export_onnx(model, tmp_path / "net.onnx")
    x = np.linspace(0.1 if kind in ("log", "sqrt", "power") else -4, 4, 40, dtype="float32")[None]
    np.testing.assert_allclose(run(tmp_path / "net.onnx", x)[0], model.predict(x, verbose=0), atol=2e-6, rtol=1e-5)
