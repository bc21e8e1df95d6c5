"""Conv, DepthwiseConv and ConvTranspose: reference, gradients, fusion, choice of algorithms, Keras's sizes."""

import tracemalloc

import numpy as np
import pytest

from pydtconv import config, ops
from pydtconv.kernels import Pass, find
from pydtconv.ops.base import Cost, Retained, Spec
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.convolution_transpose import ConvTranspose
from tests.marks import slow
from tests.ops.harness import check_op, normal
from tests.reference import conv as reference

SIDES = ((1, 0), (2, 1))


def kernel_of(op):
    return find(op, "cpu", "float32")


@pytest.fixture(autouse=True)
def variant_in_force():
    before = config.conv_variant()
    yield
    config.set_conv_variant(before)


@pytest.mark.parametrize("variant", ["AUTO", *map(slow, ("BASE", "RDX", "CGT+DG"))])
def test_conv(variant):
    check_op(
        Conv((2, 1), SIDES, (1, 2), groups=2, variant=variant),
        normal(2, 7, 6, 6),
        normal(3, 2, 3, 4),
        reference=lambda x, w: reference.forward(x, w, (2, 1), SIDES, (1, 2), 2),
    )


@pytest.mark.parametrize("given", [5, True, ("im2col",), {"backward": "im2col"}, {5: "im2col"}, {"forward": 5}])
def test_what_is_no_algorithm_is_refused(given):
    with pytest.raises(ValueError, match="algorithm: expected "):
        Conv(algorithm=given)


@pytest.mark.parametrize("strides", [1, 2])
def test_pointwise(strides):
    check_op(
        Conv(strides),
        normal(2, 5, 6, 7),
        normal(1, 1, 7, 9, seed=2),
        normal(9, seed=3),
        reference=lambda x, w, b: reference.forward(x, w, (strides, strides), bias=b),
    )


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", *map(slow, ("relu6", "sigmoid", "tanh"))])
def test_fused_activation(activation):
    for bias in ((), (normal(5, seed=3),)):
        check_op(
            Conv(1, "same", activation=activation, alpha=0.2),
            normal(1, 4, 5, 3),
            normal(3, 3, 3, 5, seed=2),
            *bias,
            rtol_gradient=1e-6,
        )


@pytest.mark.parametrize("algorithm", ["direct", "winograd", "convgemm", slow("im2col")])
@pytest.mark.parametrize("activation", ["relu", *map(slow, (None, "tanh"))])
def test_moments(algorithm, activation):
    """Gathered on the way out, or by a sweep of their own where the algorithm cannot."""

    def forward(x, w, b):
        y = reference.forward(x, w, padding=((1, 1), (1, 1)), bias=b)
        y = {None: y, "relu": np.maximum(y, 0), "tanh": np.tanh(y)}[activation]
        return y, np.stack([y.mean((0, 1, 2)), y.var((0, 1, 2))]).reshape(2, 1, 1, -1)

    check_op(
        Conv(1, "same", activation=activation, algorithm={"forward": algorithm}, moments=True),
        normal(3, 9, 10, 5),
        normal(3, 3, 5, 35, seed=2),
        normal(35, seed=3),
        reference=forward,
        rtol=1e-4 if algorithm == "winograd" else 2e-5,
    )


@pytest.mark.parametrize("algorithm", ["direct", "winograd", "convgemm", slow("im2col")])
@pytest.mark.parametrize("activation", ["relu", *map(slow, (None, "tanh"))])
@pytest.mark.parametrize("bias", [slow(()), (normal(9, seed=3),)], ids=["plain", "bias"])
def test_residual(algorithm, activation, bias):
    """Added in the epilogue, in place of the residual as well; its gradient is dy as the activation's slope left it."""
    r = normal(2, 6, 7, 9, seed=4) * 3

    def forward(x, w, *rest):
        y = reference.forward(x, w, padding=((1, 1), (1, 1)), bias=rest[0] if bias else None) + rest[-1]
        return {None: y, "relu": np.maximum(y, 0), "tanh": np.tanh(y)}[activation]

    op = Conv(1, "same", activation=activation, algorithm={"forward": algorithm}, residual=True)
    check_op(
        op,
        normal(2, 6, 7, 3),
        normal(3, 3, 3, 9, seed=2),
        *bias,
        r,
        reference=forward,
        rtol=1e-4 if algorithm == "winograd" else 2e-5,
    )


def test_residual_of_one_channel_groups():
    check_op(
        Conv(1, "same", groups=5, activation="relu", residual=True),
        normal(2, 6, 7, 5),
        normal(3, 3, 1, 10, seed=2),
        normal(2, 6, 7, 10, seed=4) * 3,
        reference=lambda x, w, r: np.maximum(reference.forward(x, w, padding=((1, 1), (1, 1)), groups=5) + r, 0),
    )


@pytest.mark.parametrize("activation", [slow(None), "relu"])
def test_moments_are_those_of_the_sum(activation):
    def forward(x, w, b, r):
        y = reference.forward(x, w, padding=((1, 1), (1, 1)), bias=b) + r
        y = y if activation is None else np.maximum(y, 0)
        return y, np.stack([y.mean((0, 1, 2)), y.var((0, 1, 2))]).reshape(2, 1, 1, -1)

    for algorithm in ("direct", "convgemm"):
        check_op(
            Conv(1, "same", activation=activation, algorithm={"forward": algorithm}, residual=True, moments=True),
            normal(3, 9, 10, 5),
            normal(3, 3, 5, 35, seed=2),
            normal(35, seed=3),
            normal(3, 9, 10, 35, seed=4) * 3,
            reference=forward,
        )


def depthwise_reference(x, w):
    return reference.forward(x, w.reshape(*w.shape[:2], 1, -1), (1, 2), SIDES, groups=x.shape[3])


@pytest.mark.parametrize("multiplier", [slow(1), 3])
def test_depthwise(multiplier):
    check_op(
        DepthwiseConv((1, 2), SIDES),
        normal(2, 6, 7, 5),
        normal(3, 2, 5, multiplier, seed=2),
        reference=depthwise_reference,
    )
    check_op(
        DepthwiseConv(1, "same", activation="relu6"),
        normal(2, 6, 7, 5),
        normal(3, 2, 5, multiplier, seed=2),
        normal(5 * multiplier, seed=3),
        rtol_gradient=1e-6,
    )


@pytest.mark.parametrize("padding", [slow("valid"), "same", slow(((1, 1), (0, 1)))])
def test_transpose(padding):
    op = ConvTranspose((2, 3), padding)
    x, w = normal(2, 4, 3, 5), normal(3, 4, 6, 5, seed=2)

    def expected(x, w):
        p = op.problem(Spec(x.shape, "float64"), Spec(w.shape, "float64"))
        return reference.backward_data(x, w, p.x_shape, (2, 3), p.padding)

    check_op(op, x, w, reference=expected)
    check_op(ConvTranspose((2, 3), padding, activation="tanh"), x, w, normal(6, seed=3), rtol_gradient=1e-6)


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_transpose_has_the_sizes_of_keras(kernel, stride, padding):
    y = ops.conv_transpose(normal(1, 5, 4, 2), normal(kernel, kernel, 3, 2), stride, padding)
    one = [(size - 1) * stride + max(kernel, stride) if padding == "valid" else size * stride for size in (5, 4)]
    assert y.shape == (1, *one, 3)


@pytest.mark.parametrize(
    ("kernel", "stride", "output_padding", "padding"),
    [(3, 2, 1, "same"), (3, 2, 0, "same"), (4, 3, 2, "valid"), (2, 2, 1, "valid"), (5, 4, None, "same")],
)
def test_transpose_against_torch(kernel, stride, output_padding, padding):
    """The window that Keras keeps of the whole transposed convolution, by its rule for the padding of JAX."""
    torch = pytest.importorskip("torch")
    x, w = normal(2, 5, 4, 3), normal(kernel, kernel, 2, 3, seed=2)
    y = ops.conv_transpose(x, w, stride, padding, output_padding)
    whole = (
        torch.nn.functional.conv_transpose2d(
            torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(w).permute(3, 2, 0, 1), stride=stride
        )
        .permute(0, 2, 3, 1)
        .numpy()
    )
    if padding == "valid":
        before, total = 0, max(kernel, stride) - kernel if output_padding is None else output_padding
        extents = [whole.shape[1] + total, whole.shape[2] + total]
    else:
        pad = stride + kernel - 2 if output_padding is None else kernel + kernel % 2 - 2 + output_padding
        before = kernel - 1 - min(pad // 2 + pad % 2, kernel - 1)
        extents = [whole.shape[i] - 2 * (kernel - 1) + pad for i in (1, 2)]
    want = np.pad(whole, ((0, 0), (0, stride), (0, stride), (0, 0)))
    want = want[:, before : before + extents[0], before : before + extents[1]]
    assert y.shape == want.shape
    np.testing.assert_allclose(y, want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_functions():
    x, w = normal(2, 6, 5, 4), normal(3, 3, 2, 6, seed=2)
    want = reference.forward(x, w, (2, 2), ((0, 1), (1, 1)), groups=2)
    np.testing.assert_allclose(ops.conv(x, w, 2, "same"), want, atol=1e-12)
    depth = normal(2, 2, 4, 3, seed=3)
    want = reference.forward(x, depth.reshape(2, 2, 1, 12), groups=4)
    np.testing.assert_allclose(ops.depthwise_conv(x, depth), want, atol=1e-12)


def test_what_the_plan_asks():
    specs = Spec((None, 8, 8, 3)), Spec((3, 3, 3, 16)), Spec((16,))
    op = Conv(2, "same")
    assert op.infer(*specs) == Spec((None, 4, 4, 16))
    assert op.retains((True, True, True)) == Retained(x=(0, 1))
    assert op.retains((False, True, False)) == Retained(x=(0,))
    assert not op.overwrites_dy
    fused = Conv(2, "same", activation="relu")
    assert fused.overwrites_dy
    assert fused.retains((True, False, False)) == Retained(x=(1,), y=(0,))


def test_what_the_plan_asks_of_the_kernel():
    full = Spec((4, 8, 8, 3)), Spec((3, 3, 3, 16)), Spec((16,))
    op = Conv(2, "same")
    assert kernel_of(Conv(variant="RDX")).algorithms_for(*full) == {
        "forward": "convgemm",
        "backward_data": "im2col",
        "backward_weights": "rdx",
    }
    config.set_conv_variant("BASE")
    assert set(kernel_of(op).algorithms_for(*full).values()) == {"im2col"}
    assert not kernel_of(op).persistent
    assert kernel_of(Conv(variant="CGT+PM")).persistent
    one = Conv(algorithm={"forward": "convgemm"})
    assert one == Conv(algorithm={"forward": "convgemm"})
    assert hash(one) == hash(Conv(algorithm={"forward": "convgemm"}))
    assert kernel_of(one).algorithms_for(*full)["forward"] == "convgemm"
    deep = kernel_of(DepthwiseConv(variant="CGT"))
    assert deep.algorithms_for(Spec((2, 8, 8, 3)), Spec((3, 3, 3, 2)))["forward"] == "depthwise"


def test_workspace_of_variants_without_persistent_buffers_is_of_the_call():
    """Placed ahead where there is a workspace, else allocated by each call and freed after it."""
    op = kernel_of(Conv(1, "same", variant="BASE"))
    x, w = normal(2, 20, 20, 16).astype("float32"), normal(3, 3, 16, 8).astype("float32")
    y = np.empty((2, 20, 20, 8), "float32")
    need = op.workspace("forward", Spec(x.shape), Spec(w.shape))
    for workspace, least in ((None, need), (np.empty(need, np.uint8), 0)):
        call = op.forward(Pass(x=(x, w), y=(y,), workspace=workspace))
        call()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        call()
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert now - before < 2048
        assert least <= peak - before < least + 8192


@pytest.mark.parametrize(
    ("op", "shapes", "message"),
    [
        (
            Conv(),
            ((1, 4, 4, 3), (3, 3, 2, 8)),
            r"conv: w: expected \(kh, kw, 3 / 1 groups, filters\).*got \(3, 3, 2, 8\)",
        ),
        (Conv(), ((1, 4, 4, 3), (3, 3, 3)), "conv: w: expected four dimensions, known but for the batch"),
        (Conv(), ((1, 4, 4, 3), (3, 3, 3, 8), (7,)), r"conv: b: expected shape \(8,\) of float32, got \(7,\)"),
        (Conv(), ((1, 2, 2, 3), (3, 3, 3, 8)), "the output would be empty"),
        (
            Conv(residual=True),
            ((2, 4, 4, 3), (3, 3, 3, 8), (8,), (1, 2, 2, 8)),
            r"conv\+add: residual: expected shape \(2, 2, 2, 8\) of float32, got \(1, 2, 2, 8\) of float32",
        ),
        (Conv(residual=True), ((1, 4, 4, 3), (3, 3, 3, 8)), "expected inputs x, w and perhaps b and a residual, got 2"),
        (DepthwiseConv(), ((1, 4, 4, 3), (3, 3, 2, 8)), r"depthwiseconv: w: expected \(kh, kw, 3, multiplier\)"),
        (ConvTranspose(), ((1, 4, 4, 3), (3, 3, 3, 8)), r"convtranspose: w: expected \(kh, kw, filters, 3\)"),
        (
            ConvTranspose(2, output_padding=2),
            ((1, 4, 4, 3), (3, 3, 8, 3)),
            "output_padding: expected less than the strides",
        ),
    ],
)
def test_errors(op, shapes, message):
    with pytest.raises(ValueError, match=message):
        op.infer(*(Spec(shape) for shape in shapes))


def test_attributes_are_checked():
    with pytest.raises(ValueError, match="activation: expected one of"):
        Conv(activation="gelu")
    with pytest.raises(ValueError, match="strides"):
        Conv(strides=0)


def test_cost_of_each_part_by_its_role():
    x, w = Spec((2, 8, 8, 3)), Spec((3, 3, 3, 5))
    direct, winograd = 2 * 64 * 27 * 5, 2 * 4 * 36 * 3 * 5
    assert Conv(padding="same").cost("forward", x, w) == {"forward": Cost(2 * direct, winograd)}
    both = dict.fromkeys(("backward_data", "backward_weights"), Cost(2 * direct, winograd))
    assert Conv(padding="same").cost("backward", x, w) == both
    # y of 10 x 10 pixels is what the convolution behind it reads, x what it writes
    found = ConvTranspose().cost("backward", x, Spec((3, 3, 5, 3)))
    assert found == dict.fromkeys(("backward_data", "backward_weights"), Cost(2 * direct, winograd))
    assert ConvTranspose().cost("forward", x, Spec((3, 3, 5, 3)))["forward"].flops == 2 * direct
