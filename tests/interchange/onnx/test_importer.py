"""`saving.load_onnx`: ONNX's own single-node models, networks that PyTorch writes, and files that are refused."""

import os
import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import applications, saving
from pydtconv.interchange.onnx import importer
from pydtconv.interchange.onnx.call import ROWS
from tests.interchange.onnx_files import loaded_and_expected, made, node, normal, onnx, vector
from tests.torchvision_models import import_torchvision

#: reasons for which cases of operators that we have may be refused
REFUSED = (
    "is not supported",
    "past_key",
    "qk_matmul_output_mode",
    "select_last_index",
    "exclusive",
    "training_mode",
    "axis: expected 1",
    "group: expected 1",
    "slope: expected one that the batch shares",
    "known but for the batch",
    "no antialias and no crop",
    "keep_aspect_ratio_policy",
    "it is constant",
    "parts of 1 or more",
    "nothing is left of shape",
    "each letter once",
    "shape: expected one for",
    "layout: expected 0",
    "P: expected none, or zeros",
)


def cases(kinds):
    """ONNX's models whose nodes are all of these kinds, with an input that is an array of numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        for case in collect_testcases(None):
            found = {node.op_type for node in case.model.graph.node}
            (inputs, outputs), *_ = case.data_sets
            if not found <= kinds or case.name.endswith("_expanded"):  # the same functions, made of others
                continue
            inputs, outputs = list(map(np.asarray, inputs)), list(map(np.asarray, outputs))
            tensors = all(info.type.HasField("tensor_type") for info in case.model.graph.input)
            if tensors and inputs and inputs[0].ndim and all(x.dtype.kind in "fiub" for x in (*inputs, *outputs)):
                yield case, inputs, outputs


def run(case, inputs, path):
    """The first input goes in, the others are constants of the file."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for info, x in list(zip(model.graph.input, inputs, strict=True))[1:]:
        model.graph.initializer.append(onnx.numpy_helper.from_array(x, info.name))
    path.write_bytes(model.SerializeToString())
    results = saving.load_onnx(path)(inputs[0].astype("float32"))
    return results if isinstance(results, (list, tuple)) else [results]


def check_cases(kinds, path):
    passed, refused, wrong = set(), 0, []
    for case, inputs, outputs in cases(kinds):
        try:
            results = run(case, inputs, path)
        except ValueError as error:
            if not any(reason in str(error) for reason in REFUSED):
                wrong.append(f"{case.name}: {error}")
            refused += 1
            continue
        for got, expected in zip(results, outputs, strict=True):
            if got.shape != expected.shape or not np.allclose(got, expected, rtol=1e-3, atol=1e-4, equal_nan=True):
                wrong.append(case.name)
        passed |= {node.op_type for node in case.model.graph.node}
    # with align_corners the whole extent counts, as in ONNX Runtime and PyTorch; ONNX's own code has a fraction of it
    assert {name for name in wrong if "align_corners" not in name} == set()
    return passed, refused


@pytest.mark.slow
def test_all_of_onnx_own_models_of_operators_that_are_known(tmp_path):
    passed, refused = check_cases({*ROWS, "Constant"}, tmp_path / "node.onnx")
    # old, constant alone, or with outputs that are not supported
    untested = {"Upsample", "Shape", "Size", "Constant", "LayerNormalization"}
    assert set(ROWS) - passed <= untested
    assert refused < 160


@pytest.mark.parametrize(
    ("name", "size", "free"),
    [
        pytest.param("resnet18", 64, True, marks=pytest.mark.slow),
        pytest.param("mobilenet_v3_small", 64, False, marks=pytest.mark.slow),
        pytest.param("densenet121", 64, True, marks=pytest.mark.slow),
        pytest.param("vgg16", 224, False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_torch_writes(name, size, free, tmp_path):
    torchvision, path = import_torchvision(), tmp_path / "net.onnx"
    import torch

    torch.manual_seed(0)
    network = getattr(torchvision.models, name)(weights=None).eval()
    if name == "vgg16":  # 102 M of its parameters are in one matrix
        network.classifier[0], network.classifier[3] = torch.nn.Linear(25088, 64), torch.nn.Linear(64, 4096)
    x = torch.randn(2, 3, size, size)
    axes = {} if free else {"dynamic_axes": {"x": {0: "n"}}}
    torch.onnx.export(network, (x,), str(path), dynamo=False, input_names=["x"], **axes)
    model = saving.load_onnx(path, free_batch=free)
    with torch.no_grad():
        expected = network(x).numpy()
    assert model.input_shape == (None, 3, size, size)
    np.testing.assert_allclose(model.predict(x.numpy(), verbose=0), expected, atol=1e-4, rtol=1e-4)
    if size > 64:
        return  # a step takes seconds
    model.compile("sgd", "mse")
    losses = model.fit(x.numpy(), np.zeros_like(expected), epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    "name", ["mnistconvnet", *(pytest.param(name, marks=pytest.mark.slow) for name in ("vit", "mobilenetv2"))]
)
def test_there_and_back(name, tmp_path):
    model = applications.build(name, (32, 32, 3), 5)
    model.export(tmp_path / "net.onnx", format="onnx")
    again = saving.load_onnx(tmp_path / "net.onnx")
    x = np.random.default_rng(0).random((3, 32, 32, 3), np.float32)
    np.testing.assert_allclose(again.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-5)
    again.compile("adam", "categorical_crossentropy")
    y = np.eye(5, dtype="float32")[:3]
    losses = again.fit(x, y, epochs=8, verbose=0).history["loss"]  # three samples: the first steps may go up
    assert losses[-1] < losses[0]
    again.save(tmp_path / "net.keras")
    third = keras.models.load_model(tmp_path / "net.keras")
    np.testing.assert_allclose(third.predict(x, verbose=0), again.predict(x, verbose=0), atol=1e-6)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: made([node("Foo")]), r"Foo \(node 'the_node'\): this operator is not supported"),
        (lambda: made([node("Relu", domain="com.acme")]), r"Relu .*: operators of 'com.acme' are not supported"),
        (lambda: made([node("Relu", ["z"])]), r"Relu .*: input 'z' is made by no node before it"),
        (lambda: made([node("Relu", speed=3)]), r"Relu .*: attribute speed=3 is not supported"),
        (lambda: made([]), r"output 'y': no node makes it"),
        (lambda: made([node("Relu")], shape=("n", "m")), r"input 'x': expected extents that are known but for"),
        (lambda: made([node("Reshape", ["x", "s"])], [vector("s", [3, -1])]), r"Reshape .*: shape: expected one for"),
        (
            lambda: made([onnx.helper.make_node("ConstantOfShape", ["s"], ["y"])], [vector("s", [1 << 40])]),
            r"ConstantOfShape .*: expected a constant of \d+ bytes at most, got shape",
        ),
        (
            lambda: made([node("Expand", ["s", "t"])], [vector("s", [1.0]), vector("t", [1 << 20, 1 << 20])]),
            r"Expand .*: expected a constant of \d+ bytes at most",
        ),
        (lambda: made([node("If", then_branch=made([]).graph)]), r"If .*: attribute then_branch is not supported"),
    ],
)
def test_refusals(build, message, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(build().SerializeToString())
    with pytest.raises(ValueError, match=rf"bad\.onnx: {message}"):
        saving.load_onnx(path)


def outside(path, location, **entries):
    tensor = vector("w", np.ones((4, 2), "float32"))
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    path.write_bytes(made([node("MatMul", ["x", "w"])], [tensor]).SerializeToString())


def test_data_of_another_file(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    weights = np.arange(8, dtype="float32").reshape(4, 2)
    (folder / "w.bin").write_bytes(b"\0" * 16 + weights.tobytes())
    outside(folder / "net.onnx", "w.bin", offset=16, length=32)
    x = np.eye(4, dtype="float32")
    np.testing.assert_array_equal(saving.load_onnx(folder / "net.onnx").predict(x, verbose=0), weights)
    (tmp_path / "secret").write_bytes(weights.tobytes())
    os.symlink(tmp_path / "secret", folder / "link")
    for location in ("../secret", str(tmp_path / "secret"), "link", "", "."):
        outside(folder / "net.onnx", location)
        with pytest.raises(ValueError, match=r"tensor 'w': expected its data in"):
            saving.load_onnx(folder / "net.onnx")
    for entries, message in (({"offset": 32}, "it ends after"), ({"length": 99}, "expected 32 bytes of data, got 99")):
        outside(folder / "net.onnx", "w.bin", **entries)
        with pytest.raises(ValueError, match=message):
            saving.load_onnx(folder / "net.onnx")


def test_damaged_files(tmp_path):
    """Every cut and some flipped bytes: a named error, or a model."""
    path = tmp_path / "net.onnx"
    data = made([node("MatMul", ["x", "w"])], [vector("w", np.ones((4, 2), "float32"))]).SerializeToString()
    rng = np.random.default_rng(0)
    refused, loaded = 0, 40
    for trial in range(40):
        bad = bytearray(data[: len(data) * trial // 20] if trial < 20 else data)
        for place in rng.integers(0, len(data), 0 if trial < 20 else 3):
            bad[place] = rng.integers(0, 256)
        path.write_bytes(bytes(bad))
        try:
            saving.load_onnx(path)
        except ValueError as error:
            refused += "net.onnx" in str(error)
            loaded -= 1
    assert refused == 40 - loaded > 15
    with pytest.raises(FileNotFoundError, match=r"load_onnx: there is no file"):
        saving.load_onnx(tmp_path / "none.onnx")


def test_every_row_is_reached():
    """Rows are entered when their modules are imported."""
    assert {"Conv", "Relu", "Resize"} <= set(ROWS)
    assert len(importer.TABLES) == 4


def test_networks_of_old_versions(tmp_path):
    """Before version 7 operands were broadcast by attributes, and networks said that they are not trained."""
    x, path = normal(1, 3, 4, 4), tmp_path / "net.onnx"
    for axis, shape in ((1, (3,)), (1, (3, 4)), (2, (4, 4)), (-1, (4,))):
        b = normal(*shape)
        found, _ = loaded_and_expected(path, "Add", {"b": b}, x, 6, broadcast=1, axis=axis, consumed_inputs=[0, 0])
        behind = 4 - axis % 4 - b.ndim
        np.testing.assert_allclose(found, x + b.reshape(*shape, *(1,) * behind), atol=1e-6)
    statistics = {name: np.abs(normal(3)) for name in ("scale", "bias", "mean", "var")}
    found, _ = loaded_and_expected(path, "BatchNormalization", statistics, x, 6, is_test=1)
    scale, bias, mean, var = (each[:, None, None] for each in statistics.values())
    np.testing.assert_allclose(found, scale * (x - mean) / np.sqrt(var + 1e-5) + bias, atol=1e-5)
    rows = normal(2, 5)
    found, expected = loaded_and_expected(path, "Gemm", {"w": normal(5, 4), "b": normal(4)}, rows, 6, broadcast=1)
    np.testing.assert_allclose(found, expected(), atol=1e-5)
