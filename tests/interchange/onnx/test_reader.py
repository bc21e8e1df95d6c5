"""ONNX files from others: memory and time are bounded by the sizes of the file and of those that its data lies in."""

import time

import numpy as np
import pytest

from pydtconv import saving
from pydtconv.files import reading
from pydtconv.files.reading import BadFileError
from pydtconv.interchange.onnx.call import Builder
from tests.traced import memory_below

onnx = pytest.importorskip("onnx", reason="needs onnx")

COUNT, NBYTES = 300, 1 << 18
LIMIT = 1 << 23


@pytest.fixture(autouse=True)
def no_free_bytes(monkeypatch):
    """Small files show what large ones do."""
    monkeypatch.setattr(reading, "FREE_BYTES", 1 << 20)


def tensor(name, array, external=False):
    made = onnx.numpy_helper.from_array(array, name)
    if external:
        made.data_location = onnx.TensorProto.EXTERNAL
        made.ClearField("raw_data")
        entry = made.external_data.add()
        entry.key, entry.value = "location", "w.bin"
    return made


def write(path, nodes, constants, shape=("n", 1)):
    make = onnx.helper
    x, y = (make.make_tensor_value_info(name, 1, extents) for name, extents in (("x", shape), ("y", None)))
    graph = make.make_graph([*nodes, make.make_node("Relu", ["x"], ["y"])], "g", [x], [y], constants)
    path.write_bytes(make.make_model(graph, opset_imports=[make.make_opsetid("", 18)]).SerializeToString())


def each(kind, inputs, **attributes):
    """So many nodes of a kind, of the same inputs."""
    return [onnx.helper.make_node(kind, inputs, [f"y{i}"], **attributes) for i in range(COUNT)]


ROW = np.ones((1, NBYTES // 4), "float32")
BYTES = np.ones((1, NBYTES), "uint8")
SQUARE = np.ones((256, 256), "float32")
#: nodes and the constants that all of them read
HOSTILE = {
    "constants of shape": (each("ConstantOfShape", ["w"]), [np.array([NBYTES // 4])]),
    "Cast": (each("Cast", ["w"], to=11), [BYTES]),
    "Expand": (each("Expand", ["w", "s"]), [ROW, np.array([2, 1])]),
    "Flatten": (each("Flatten", ["w"], axis=0), [SQUARE]),
    "Gather": (each("Gather", ["w", "s"]), [ROW, np.zeros(1, "int64")]),
    "Mul": (each("Mul", ["w", "w"]), [ROW]),
    "ReduceSum": (each("ReduceSum", ["w", "s"]), [ROW, np.zeros(1, "int64")]),
    "Reshape": (each("Reshape", ["w", "s"]), [np.ones((1, NBYTES // 8)), np.array([-1])]),
    "Tile": (each("Tile", ["w", "s"]), [ROW, np.array([1, 2])]),
    "Trilu": (each("Trilu", ["w"]), [SQUARE]),
    "Add, converted": (each("Add", ["x", "w"]), [BYTES]),
    "Where, converted": (each("Where", ["w", "x", "x"]), [BYTES > 0]),
    "layers": ([node for i in range(COUNT) for node in each("Gemm", ["x", "w"], alpha=1.0 + i)[i : i + 1]], [ROW]),
}


@pytest.mark.parametrize(("nodes", "constants"), HOSTILE.values(), ids=HOSTILE)
def test_constants_that_many_nodes_make_are_bounded(nodes, constants, tmp_path):
    named = [tensor(name, array) for name, array in zip(("w", "s"), constants, strict=False)]
    write(tmp_path / "net.onnx", nodes, named)
    with memory_below(6 * LIMIT), pytest.raises(BadFileError, match=r"net\.onnx: .*expected|more than the file"):
        saving.load_onnx(tmp_path / "net.onnx")


def test_initializers_that_share_data_outside_of_the_file_are_bounded(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(NBYTES))
    (tmp_path / "unrelated").write_bytes(bytes(64 * NBYTES))
    constants = [tensor(f"w{i}", ROW, external=True) for i in range(COUNT)]
    write(tmp_path / "net.onnx", [], constants)
    with (
        memory_below(LIMIT),
        pytest.raises(BadFileError, match=r"net\.onnx: tensor 'w2\d': expected \d+"),
    ):
        saving.load_onnx(tmp_path / "net.onnx")
    write(tmp_path / "net.onnx", [], constants[:10])
    saving.load_onnx(tmp_path / "net.onnx")


def test_data_outside_of_the_file_is_no_larger_than_its_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(16))
    huge = tensor("w", ROW, external=True)
    huge.dims[:] = [1 << 40]
    write(tmp_path / "net.onnx", [], [huge])
    with (
        memory_below(LIMIT),
        pytest.raises(BadFileError, match=r"expected \d+ bytes in .*, it ends after 16"),
    ):
        saving.load_onnx(tmp_path / "net.onnx")


def test_names_of_nodes_take_time_in_proportion_to_their_number():
    def seconds(count):
        builder, start = Builder(18, 0), time.process_time()
        assert len({builder.layer_name("a") for _ in range(count)}) == count
        return time.process_time() - start

    seconds(2000)
    assert seconds(20_000) < 40 * seconds(2000)  # 100 times where each name is looked for from the first on
