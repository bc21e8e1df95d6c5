"""`saving.load_onnx`: ONNX's own single-node models, networks that PyTorch writes, and files that are refused."""

import os
import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import applications, saving
from pydtconv.interchange import onnx_import
from pydtconv.interchange.onnx_call import ROWS
from tests.torchvision_models import import_torchvision

onnx = pytest.importorskip("onnx", reason="needs onnx")
reference = pytest.importorskip("onnx.reference", reason="needs onnx")

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
    losses = again.fit(x, y, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    again.save(tmp_path / "net.keras")
    third = keras.models.load_model(tmp_path / "net.keras")
    np.testing.assert_allclose(third.predict(x, verbose=0), again.predict(x, verbose=0), atol=1e-6)


def made(nodes, constants=(), shape=("n", 4), opset=18):
    make = onnx.helper
    graph = make.make_graph(
        nodes,
        "g",
        [make.make_tensor_value_info("x", 1, shape)],
        [make.make_tensor_value_info("y", 1, None)],
        list(constants),
    )
    return make.make_model(graph, opset_imports=[make.make_opsetid("", opset)])


def node(kind, inputs=("x",), **attributes):
    return onnx.helper.make_node(kind, list(inputs), ["y"], name="the_node", **attributes)


def vector(name, values):
    return onnx.numpy_helper.from_array(np.asarray(values), name)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_constant_beside_the_batch(rows, tmp_path):
    """As networks have it whose class token was expanded to a batch of 2."""
    token = np.tile(np.arange(3, dtype="float32"), (rows, 1))
    path = tmp_path / "net.onnx"
    model = made([node("Concat", ["t", "x"], axis=1)], [vector("t", token)], shape=(2, 4))
    path.write_bytes(model.SerializeToString())
    loaded = saving.load_onnx(path, free_batch=True)
    x = np.ones((5, 4), "float32")
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), np.hstack([np.tile(token[:1], (5, 1)), x]))


@pytest.mark.parametrize(("kind", "counted"), [("AveragePool", 0), ("AveragePool", 1), ("MaxPool", None)])
def test_windows_of_pooling_that_reach_beyond_the_padding(kind, counted, tmp_path):
    """ceil_mode: what lies beyond the padding never counts, the padding where count_include_pad says so."""
    rng = np.random.default_rng(0)
    for extent, size, stride, before, after in (
        (7, 3, 2, 0, 0),
        (8, 3, 2, 0, 0),
        (8, 3, 2, 1, 0),
        (9, 4, 3, 1, 1),
        (6, 2, 3, 0, 1),
    ):
        attributes = {"kernel_shape": [size], "strides": [stride], "pads": [before, after], "ceil_mode": 1}
        if counted is not None:
            attributes["count_include_pad"] = counted
        info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 2, None]) for name in "xy"]
        info[0].type.tensor_type.shape.dim[2].dim_value = extent
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node(kind, ["x"], ["y"], **attributes)], "pool", *([i] for i in info)
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
        (tmp_path / "pool.onnx").write_bytes(model.SerializeToString())
        x = rng.normal(size=(1, 2, extent)).astype("float32")
        want = []
        start = -before
        while start < extent and (start + size <= extent + after or start > -before or not want):
            inside = x[..., max(start, 0) : min(start + size, extent)]
            padded = min(start + size, extent + after) - start
            want.append(
                inside.max(-1) if kind == "MaxPool" else inside.sum(-1) / (padded if counted else inside.shape[-1])
            )
            if start + size >= extent + after:
                break
            start += stride
        found = np.asarray(saving.load_onnx(tmp_path / "pool.onnx")(x))
        np.testing.assert_allclose(found, np.stack(want, -1), rtol=1e-6)


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
    assert len(onnx_import.TABLES) == 3


def numbers(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


def loaded_and_expected(path, kind, constants, x, opset=13, **attributes):
    """What the loaded network gives, and ONNX's own evaluation of a node that means the same in version 13."""
    inputs = ["x", *constants]
    vectors = [vector(name, values) for name, values in constants.items()]
    path.write_bytes(made([node(kind, inputs, **attributes)], vectors, x.shape, opset).SerializeToString())
    found = saving.load_onnx(path).predict(x, verbose=0)
    for name in ("is_test", "broadcast", "axis", "consumed_inputs"):
        attributes.pop(name, None)
    new = made([node(kind, inputs, **attributes)], vectors, x.shape, 13)
    return found, lambda: reference.ReferenceEvaluator(new).run(None, {"x": x})[0]


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize(("strides", "dilations"), [([2, 2], [2, 2]), ([3, 1], [1, 2]), ([2, 3], [3, 2])])
def test_convolutions_of_strides_and_dilations(kind, strides, dilations, tmp_path):
    x, w, b = numbers(1, 3, 11, 12), numbers(3, 3, 3, 2), numbers(3)
    attributes = {"strides": strides, "dilations": dilations, "pads": [1, 0, 2, 1]}
    if kind == "ConvTranspose":
        attributes["output_padding"] = [stride - 1 for stride in strides]
    found, expected = loaded_and_expected(tmp_path / "net.onnx", kind, {"w": w, "b": b}, x, **attributes)
    np.testing.assert_allclose(found, expected(), atol=1e-4)


def test_networks_of_old_versions(tmp_path):
    """Before version 7 operands were broadcast by attributes, and networks said that they are not trained."""
    x, path = numbers(1, 3, 4, 4), tmp_path / "net.onnx"
    for axis, shape in ((1, (3,)), (1, (3, 4)), (2, (4, 4)), (-1, (4,))):
        b = numbers(*shape)
        found, _ = loaded_and_expected(path, "Add", {"b": b}, x, 6, broadcast=1, axis=axis, consumed_inputs=[0, 0])
        behind = 4 - axis % 4 - b.ndim
        np.testing.assert_allclose(found, x + b.reshape(*shape, *(1,) * behind), atol=1e-6)
    statistics = {name: np.abs(numbers(3)) for name in ("scale", "bias", "mean", "var")}
    found, _ = loaded_and_expected(path, "BatchNormalization", statistics, x, 6, is_test=1)
    scale, bias, mean, var = (each[:, None, None] for each in statistics.values())
    np.testing.assert_allclose(found, scale * (x - mean) / np.sqrt(var + 1e-5) + bias, atol=1e-5)
    rows = numbers(2, 5)
    found, expected = loaded_and_expected(path, "Gemm", {"w": numbers(5, 4), "b": numbers(4)}, rows, 6, broadcast=1)
    np.testing.assert_allclose(found, expected(), atol=1e-5)


def test_means_of_padding_alone_are_zero(tmp_path):
    attributes = {"kernel_shape": [2, 2], "dilations": [4, 4], "pads": [1, 1, 1, 1]}
    found, _ = loaded_and_expected(tmp_path / "net.onnx", "AveragePool", {}, numbers(1, 2, 3, 3), 19, **attributes)
    np.testing.assert_array_equal(found, np.zeros((1, 2, 1, 1)))
