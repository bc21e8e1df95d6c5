"""Models as onnxruntime runs them."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")


def run(path, *inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {info.name: x for info, x in zip(session.get_inputs(), inputs, strict=True)})


def check(model, path, *shapes, tolerance=1e-4):
    """Two batch sizes, and the checker of the format."""
    model.export(path, format="onnx")
    onnx.checker.check_model(str(path))
    for batch in (1, 3):
        x = [np.random.default_rng(batch).normal(size=(batch, *shape)).astype("float32") for shape in shapes]
        expected = model.predict(x if len(x) > 1 else x[0], verbose=0)
        got = run(path, *x)
        for a, b in zip(got, expected if isinstance(expected, list) else [expected], strict=True):
            np.testing.assert_allclose(a, b, atol=tolerance, rtol=tolerance)
