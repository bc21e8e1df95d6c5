"""Losses, gradients and predictions of the parts of images are those of whole ones; the processes are threads."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import applications, config, layers, ops
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.graph.schedule.steps import CopyStep
from pydtconv.graph.spatial.cutting import CannotCutError
from pydtconv.graph.spatial.partition import Partition
from pydtconv.ops.exchange import Exchange
from tests.graph.spatial import networks
from tests.graph.spatial.threads import plan_of, run, run_mesh, whole
from tests.marks import slow

MESHES = ("height=2", "width=2", "height=3", "width=3", "height=2,width=2", "batch=2,height=2", "height=2,width=3")
FAST = [
    ("unet", "height=2,width=2"),
    ("odd", "height=3"),
    ("windows", "width=2"),
    ("arithmetic", "batch=2,height=2"),
    ("transposed", "width=3"),
    ("coinciding", "height=2"),
    ("coinciding", "width=3"),
    ("attending", "height=2"),
    ("flattened", "batch=2,height=2"),
    ("of_scalars", "batch=2,height=2"),
]


@pytest.fixture(autouse=True)
def double():
    before = config.floatx(), config.num_threads()
    config.set_floatx("float64")
    config.set_num_threads(1)
    yield
    config.set_floatx(before[0])
    config.set_num_threads(before[1])


def mesh_of(text):
    names, extents = zip(*(part.split("=") for part in text.split(",")), strict=True)
    return names, tuple(map(int, extents))


def check(name, mesh, tolerance=1e-10, samples=2, network=None, columns=()):
    make = networks.made(name) if isinstance(name, str) else name
    arrays = networks.data(make(), samples)
    one = run(make(), arrays)
    several = run_mesh(make, arrays, *mesh_of(mesh), network=network, columns=columns)
    assert abs(sum(rank.loss for rank in several) - one.loss) < tolerance
    scale = max(abs(gradient).max() for gradient in one.gradients)
    for i, gradient in enumerate(one.gradients):
        total = sum(rank.gradients[i] for rank in several)
        if total.shape != gradient.shape:  # each place of a group has some columns
            groups = several[0].plan.graph.partition.groups
            totals = (sum(several[rank].gradients[i] for rank in ranks) for ranks in zip(*groups, strict=True))
            total = np.concatenate(list(totals), -1)
        np.testing.assert_allclose(total / scale, gradient / scale, rtol=0, atol=tolerance, err_msg=f"gradient {i}")
    for i, state in enumerate(one.state):
        for rank in several:
            np.testing.assert_allclose(rank.state[i], state, rtol=0, atol=tolerance, err_msg=f"state {i}")
    for key, value in one.outputs.items():
        np.testing.assert_allclose(whole(several, key), value, rtol=0, atol=tolerance, err_msg=key)
    return several


class Tied(layers.Layer):
    """The transposed kernel of another layer, and its sum."""

    def __init__(self, other, **options):
        super().__init__(**options)
        self.other = other

    def call(self, x):
        return ops.matmul(x, ops.transpose(self.other.kernel)) + ops.sum(self.other.bias)


def columns_everywhere():
    """Columns in front of operators of all kinds; dense layers that are used twice, read by others, and the last."""
    keras.utils.set_random_seed(3)
    inputs = keras.Input((6, 8, 3))
    x = layers.Conv2D(12, 3, padding="same", activation="tanh")(inputs)
    squeezed = layers.Dense(12, "sigmoid", name="cut_scale")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    x = layers.Dense(12, "gelu", name="cut_image")(layers.Multiply()([squeezed, x]))
    x = layers.Flatten()(x)
    x = layers.Add()([layers.Dense(12, use_bias=False, name="cut_first")(x), layers.Dense(12)(x)])
    again = layers.Dense(12, "relu", name="cut_again")
    x = layers.BatchNormalization()(again(layers.Dropout(0.3)(again(x))))
    x = layers.Concatenate()([x, layers.Reshape((24,))(layers.Reshape((4, 6))(layers.Dense(24, name="cut_wide")(x)))])
    first = layers.Dense(12, "softmax", name="cut_tied", kernel_regularizer="l2", activity_regularizer="l1")
    x = layers.Concatenate()([Tied(first)(first(x)), layers.LayerNormalization()(first(x))])
    x = layers.Permute((2, 1))(layers.Dense(12, name="cut_rows")(layers.Reshape((6, 8))(x)))
    return networks._compiled(inputs, layers.Dense(12, name="cut_last")(layers.Flatten()(x)), metrics=["accuracy"])


@pytest.mark.parametrize("mesh", ["height=2", "model=3", "batch=2,width=2", "height=2,width=2", "height=2,model=2"])
def test_columns_give_what_whole_layers_give(mesh):
    several = check(columns_everywhere, mesh, columns=("cut_*",))
    assert sum(variable.cut is not None for variable in several[0].plan.graph.cut_variables) == 15


@pytest.mark.parametrize(("name", "mesh"), FAST)
def test_parts_give_what_whole_images_give(name, mesh):
    check(name, mesh)


@pytest.mark.parametrize("name", ["unet", slow("windows")])
def test_single_images_lie_within_what_is_read_of_them(name):
    """Rows of a single image are read where they lie; of several images, or columns, there is a copy."""
    check(name, "height=3", samples=1)


@pytest.mark.parametrize(("samples", "mesh"), [(1, "height=2,width=2"), (3, "batch=2,height=2")])
@pytest.mark.parametrize("shared", [(1, None, None, None), (1, 1, None, None), (None, None, 1, None)])
def test_a_single_image_under_a_mask_that_may_be_shared(shared, samples, mesh, monkeypatch):
    """Of three images two processes have one alone, and the others two."""

    def masked():
        inputs = keras.Input((6, 5, 3))
        x = layers.Dropout(0.4, noise_shape=shared, seed=1)(layers.Conv2D(4, 3, padding="same")(inputs))
        model = keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)))
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    monkeypatch.setitem(networks.NETWORKS, "masked", masked)
    check("masked", mesh, samples=samples)


@pytest.mark.parametrize("joins", ["steps", "transposed"])
def test_an_axis_of_a_single_image_that_takes_the_place_of_samples(joins, monkeypatch):
    def of_steps():
        inputs = keras.Input((4, 6, 5, 2))
        x = layers.Dense(3)(inputs)
        if joins == "steps":
            x = layers.TimeDistributed(layers.GlobalAveragePooling2D())(x)
        else:
            x = layers.GlobalAveragePooling3D()(ops.transpose(x, (1, 0, 2, 3, 4)))
        model = keras.Model(inputs, layers.Dense(3)(ops.reshape(x, (-1, 12))))
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    monkeypatch.setitem(networks.NETWORKS, "of_steps", of_steps)
    check("of_steps", "depth=2", samples=1)


@pytest.mark.parametrize(
    ("name", "mesh"), [("unet", "height=2,width=2"), pytest.param("arithmetic", "height=2", marks=pytest.mark.slow)]
)
def test_images_in_bfloat16_are_exchanged(name, mesh, monkeypatch):
    """What differs is what bfloat16 rounds."""
    monkeypatch.setattr(Graph, "thresholds", Thresholds(halo_pixels=1))
    config.set_floatx("float32")
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        make = networks.made(name)
        arrays = networks.data(make())
        one, several = run(make(), arrays), run_mesh(make, arrays, *mesh_of(mesh))
    finally:
        keras.config.set_dtype_policy("float32")
    assert {node.inputs[0].dtype for node in several[0].plan.graph.nodes if node.op.name == "halo"} == {"bfloat16"}
    scale = max(abs(gradient).max() for gradient in one.gradients)
    for i, gradient in enumerate(one.gradients):
        total = sum(rank.gradients[i] for rank in several)
        np.testing.assert_allclose(total / scale, gradient / scale, rtol=0, atol=2**-7, err_msg=f"gradient {i}")


@pytest.mark.slow
def test_a_network_of_the_zoo_on_a_mesh():
    """A residual network, whose images become smaller than halos; benchmarks.spatial_equal has the others."""

    def make():
        keras.utils.set_random_seed(3)
        model = applications.build("resnet20", input_shape=(17, 12, 3), classes=3)
        model.compile("sgd", "sparse_categorical_crossentropy")
        return model

    rng = np.random.default_rng(1)
    arrays = rng.normal(size=(2, 17, 12, 3)), rng.integers(0, 3, 2), None
    one, several = run(make(), arrays), run_mesh(make, arrays, ("height",), (3,))
    scale = max(abs(gradient).max() for gradient in one.gradients)
    for i, gradient in enumerate(one.gradients):
        total = sum(rank.gradients[i] for rank in several)
        np.testing.assert_allclose(total / scale, gradient / scale, rtol=0, atol=1e-10, err_msg=f"gradient {i}")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_all_networks_on_a_single_image(name):
    for mesh in ("height=2", "height=3", "height=2,width=2"):
        check(name, mesh, samples=1)


@pytest.mark.slow
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_all_networks_on_all_meshes(name, mesh):
    check(name, mesh)


@pytest.mark.slow
def test_depth_and_height():
    check("volume", "depth=2,height=2")
    check("volume", "depth=3")


def local(make, mesh, rank, samples=2):
    names, shape = mesh_of(mesh)
    model = make()
    partition = Partition(names, shape, tuple(range(int(np.prod(shape)))), rank)
    return plan_of(model, networks.data(model, samples), partition=partition)[0]


def test_parts_of_a_concatenation_that_lie_in_it_are_not_copied():
    """Rows of a single image within those of its halo: steps from image to image differ, and tell nothing."""
    plan = local(networks.made("unet"), "height=3", 1, samples=1)
    assert any(isinstance(node.op, Exchange) for node in plan.graph.nodes)
    copies = [step for step in plan.steps if type(step) is CopyStep]
    assert not [step for step in copies if step.source.overlaps(step.target)]


def test_only_what_is_read_is_exchanged():
    """A convolution of 3 x 3 reads one row of a neighbour; one of 1 x 1, and element-wise operators, read none."""

    def make():
        inputs = keras.Input((16, 6, 2))
        x = layers.ReLU()(layers.Conv2D(3, 1)(layers.Conv2D(3, 3, padding="same")(inputs)))
        return networks._compiled(inputs, layers.Conv2D(3, 1)(x))

    plan = local(make, "height=4", 1)
    (exchange,) = [node for node in plan.graph.nodes if isinstance(node.op, Exchange)]
    assert exchange.op.name == "halo"
    assert exchange.op.held == (((0, 4),), ((4, 8),), ((8, 12),), ((12, 16),))
    assert exchange.op.need == (((0, 5),), ((3, 9),), ((7, 13),), ((11, 16),))
    assert [node.outputs[0].shape[1] for node in plan.graph.nodes if node.op.name == "conv"] == [4, 4, 4]
    assert plan.graph.placements["x0"].box == ((0, 2), (4, 8), (0, 6), (0, 2))


def test_small_images_are_gathered_and_large_ones_cut_again():
    def make():
        inputs = keras.Input((8, 8, 2))
        x = layers.ReLU()(layers.Conv2D(3, 4, strides=4)(inputs))  # two rows, for three processes
        x = layers.Conv2DTranspose(3, 8, strides=8)(x)
        return networks._compiled(inputs, layers.Conv2D(3, 3, padding="same")(x))

    plan = local(make, "height=3", 0)
    assert [node.op.name for node in plan.graph.nodes if isinstance(node.op, Exchange)] == ["gather", "scatter", "halo"]
    names = networks.NETWORKS
    try:
        names["made here"] = make
        check("made here", "height=3")
    finally:
        del names["made here"]


def test_operators_written_in_python_are_refused_by_name():
    class Doubled(layers.NumpyLayer):
        def forward(self, x):
            return 2 * x

        def backward(self, dy, x, y):
            return 2 * dy

    def make():
        inputs = keras.Input((8, 8, 2))
        return networks._compiled(inputs, layers.Conv2D(3, 1)(Doubled(name="doubled")(inputs)))

    with pytest.raises(CannotCutError, match=r"doubled.*written in Python: put it behind global pooling"):
        local(make, "height=2", 0)


def test_a_mesh_axis_that_cuts_nothing_is_refused():
    def make():
        inputs = keras.Input((8, 3, 2))
        return networks._compiled(inputs, layers.Conv2D(3, 1)(inputs))

    with pytest.raises(CannotCutError, match=r"an axis 'depth' of at least 2 elements.*\(2, 8, 3, 2\)"):
        local(make, "depth=2", 0)
    with pytest.raises(CannotCutError, match=r"an axis 'width' of at least 4"):
        local(make, "width=4", 0)
    with pytest.raises(ValueError, match="expected axes among batch, depth, height, width, model, got 'rows'"):
        Partition(("rows",), (2,), (0, 1), 0)


def test_a_rank_has_its_part_of_the_memory():
    """A network of convolutions on one large image: two ranks take half each, and a little for halos."""

    def make():
        inputs = keras.Input((1024, 64, 8))
        x = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
        return networks._compiled(inputs, layers.Conv2D(3, 3, padding="same")(x))

    model = make()
    one = plan_of(model, networks.data(model, 1))[0]
    assert local(make, "height=2", 1, samples=1).arena_bytes < 0.75 * one.arena_bytes


def test_random_numbers_have_the_bits_of_one_process():
    def make():
        keras.utils.set_random_seed(3)
        inputs = keras.Input((9, 7, 3))
        x = layers.Dropout(0.3)(layers.GaussianNoise(0.5)(inputs))
        return networks._compiled(inputs, layers.SpatialDropout2D(0.4)(layers.GaussianDropout(0.2)(x)))

    arrays = networks.data(make(), 4)
    one = run(make(), arrays)
    for mesh in ("height=3", "width=2", "batch=2,height=2"):
        several = run_mesh(make, arrays, *mesh_of(mesh))
        np.testing.assert_array_equal(whole(several, "prediction0"), one.outputs["prediction0"], err_msg=mesh)


def test_random_streams_do_not_depend_on_what_else_is_in_the_graph():
    """Dropout draws the same numbers where exchanges stand between (see also "augmented" and "unet" above)."""
    make = networks.made("augmented")
    arrays = networks.data(make())
    one, several = run(make(), arrays), run_mesh(make, arrays, ("height", "width"), (2, 2))
    np.testing.assert_allclose(whole(several, "prediction0"), one.outputs["prediction0"], rtol=0, atol=1e-12)
    assert ops.Dropout.draws
