"""What each operator reads and leaves where images are cut: one rule for each kind of operator.

A rule takes a node of the whole graph, brings its inputs to the layouts that this process reads, and adds the local
node.  By default inputs are whole, in every process.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from pydtconv.graph.ir.graph import Node, Tensor
from pydtconv.graph.spatial.cutting import CannotCutError, Cut, Cutting, Layout
from pydtconv.graph.spatial.windows import RULES as WINDOW_RULES
from pydtconv.ops.activation import Activation
from pydtconv.ops.arithmetic import Add, Divide, Multiply, Subtract
from pydtconv.ops.base import Op
from pydtconv.ops.checks import normalize_axes
from pydtconv.ops.layout import scaled
from pydtconv.ops.loss_sums import WeightedMean
from pydtconv.ops.pooling import GlobalAveragePool, GlobalMaxPool
from pydtconv.ops.random import Dropout
from pydtconv.ops.reduction import Mean, Reduction, Sum

Rule = Callable[[Cutting, Node], None]


def cut_node(cutting: Cutting, node: Node) -> None:
    """Adds what stands for the node in this process."""
    cutting.begin(node)
    rule = RULES[node.op.mesh]
    for tensor in node.inputs:
        if rule not in (elementwise, scalars):  # which know of parts of scalars
            cutting.sum_parts(tensor)
        if rule not in (dense, elementwise, penalty, random_elements, scalars):  # which know of columns
            cutting.join_columns(tensor)
    rule(cutting, node)


def whole_inputs(cutting: Cutting, node: Node) -> None:
    """All inputs are gathered, and every process computes all."""
    inputs = [cutting.wholes(tensor) for tensor in node.inputs]
    cutting.keep(node, node.op, inputs, *(cutting.whole(len(tensor.shape)) for tensor in node.outputs))


def custom(cutting: Cutting, node: Node) -> None:
    """Functions of a user may draw numbers or count: each process would have its own."""
    if any(any(cutting.layout(tensor)) for tensor in node.inputs):
        raise CannotCutError(
            f"{node.name}: expected operators that can run on a part of an image, got {node.op.name!r}, written in "
            "Python: put it behind global pooling or Flatten, where images are whole, or write it with the functions "
            "of ops; or take a mesh of 'batch' alone"
        )
    whole_inputs(cutting, node)


# --- element by element ----------------------------------------------------------------------------------------------


def target_of(cutting: Cutting, tensors: Sequence[Tensor], shape: Sequence[int | None]) -> Layout:
    """The layout of a result of this shape: that of the operand which is cut along most axes, the first of them."""
    best: Layout = cutting.whole(len(shape))
    for tensor in tensors:
        missing = len(shape) - len(tensor.shape)
        fitting = [
            cut if cut is not None and tensor.shape[i] == shape[i + missing] else None
            for i, cut in enumerate(cutting.layout(tensor))
        ]
        found = (*cutting.whole(missing), *fitting)
        if sum(cut is not None for cut in found) > sum(cut is not None for cut in best):
            best = found
    return best


def fitted(layout: Layout, tensor: Tensor, shape: Sequence[int | None]) -> Layout:
    """The layout of an operand that is broadcast to a result of this shape and layout."""
    missing = len(shape) - len(tensor.shape)
    return tuple(layout[i + missing] if n == shape[i + missing] else None for i, n in enumerate(tensor.shape))


def elementwise(cutting: Cutting, node: Node) -> None:
    """y[i] of x[i] of all inputs, which may be broadcast."""
    shape = node.outputs[0].shape
    if any(cutting.local(tensor) in cutting.partial for tensor in node.inputs):
        scalar_arithmetic(cutting, node)
        return
    layout = target_of(cutting, node.inputs, shape)
    inputs = [cutting.bring(tensor, fitted(layout, tensor, shape)) for tensor in node.inputs]
    cutting.keep(node, node.op, inputs, layout)


def scalar_arithmetic(cutting: Cutting, node: Node) -> None:
    """Of parts of scalars: sums and multiples of them are parts again; for others the parts are summed."""
    inputs = [cutting.wholes(tensor) for tensor in node.inputs]
    parts = [tensor in cutting.partial for tensor in inputs]
    multiple = sum(parts) == 1 and (isinstance(node.op, Multiply) or (isinstance(node.op, Divide) and parts[0]))
    linear = multiple or (isinstance(node.op, (Add, Subtract)) and not node.op.activation)
    if not linear or node.outputs[0].shape:
        inputs = [cutting.as_whole(tensor) for tensor in inputs]
    elif not multiple:
        inputs = [cutting.as_partial(tensor) for tensor in inputs]
    outputs = cutting.keep(node, node.op, inputs, cutting.whole(len(node.outputs[0].shape)))
    if linear and not node.outputs[0].shape:
        cutting.partial.update(outputs)


def normalization(cutting: Cutting, node: Node) -> None:
    """The statistics are those of all processes, which have the same channels: that axis is whole."""
    along_last(cutting, node, dataclasses.replace(node.op, synchronized=True))  # type: ignore[type-var]


def along_last(cutting: Cutting, node: Node, op: Op | None = None) -> None:
    """y[..., :] of x[..., :], and of variables."""
    x, y = node.inputs[0], node.outputs[0]
    last = len(x.shape) - 1
    inputs = [cutting.wholes(x, [last]), *(cutting.wholes(tensor) for tensor in node.inputs[1:])]
    layout = cutting.layouts[inputs[0]] if len(y.shape) == len(x.shape) else ()
    cutting.keep(node, node.op if op is None else op, inputs, layout)


def dense(cutting: Cutting, node: Node) -> None:
    """Columns of y of the same columns of w, b and a residual, and of all of x."""
    x, w, *others = node.inputs
    cut = cutting.layout(w)[-1]
    if cut is None:
        along_last(cutting, node)
        return
    layout = (*cutting.whole(len(x.shape) - 1), cut)
    inputs = [cutting.wholes(x), cutting.bring(w, (None, cut))]
    inputs += [cutting.bring(tensor, layout[-len(tensor.shape) :]) for tensor in others]
    cutting.keep(node, node.op, inputs, layout)


def along_axis(cutting: Cutting, node: Node) -> None:
    """The axis of a softmax is whole."""
    (axis,) = normalize_axes(node.op.name, node.op.axis, len(node.inputs[0].shape))  # type: ignore[attr-defined]
    x = cutting.wholes(node.inputs[0], [axis])
    cutting.keep(node, node.op, [x], cutting.layouts[x])


def layer_normalization(cutting: Cutting, node: Node) -> None:
    """Its axes are whole."""
    rank = len(node.inputs[0].shape)
    lead = node.op.lead(rank)  # type: ignore[attr-defined]
    x = cutting.wholes(node.inputs[0], range(lead, rank))
    inputs = [x, *(cutting.wholes(tensor) for tensor in node.inputs[1:])]
    cutting.keep(node, node.op, inputs, cutting.layouts[x])


def random_elements(cutting: Cutting, node: Node) -> None:
    """Each element draws the number that it has in the whole."""
    x, op = node.inputs[0], node.op
    shape = op.mask_shape(x.shape) if isinstance(op, Dropout) else x.shape
    shared = {i for i, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m}
    layout = cutting.layout(x)
    if shared:  # the mask is whole: an axis along which it is not shared cannot be cut
        layout = tuple(cut if i in shared else None for i, cut in enumerate(layout))
    else:
        places = [(i, cutting.part(cut)[0], x.shape[i]) for i, cut in enumerate(layout) if cut is not None]
        whole = {"noise_shape": None} if isinstance(op, Dropout) else {}  # which may name the extents of the whole
        op = dataclasses.replace(op, within=tuple(places), **whole)  # type: ignore[type-var]
    cutting.keep(node, op, [cutting.bring(x, layout)], layout)


# --- shapes ----------------------------------------------------------------------------------------------------------


def transpose(cutting: Cutting, node: Node) -> None:
    """What becomes the first or last axis, samples or channels, is whole: other rules know cuts of images alone."""
    order = node.op.order(len(node.inputs[0].shape))  # type: ignore[attr-defined]
    x = cutting.wholes(node.inputs[0], [order[0], order[-1]])
    layout = cutting.layouts[x]
    cutting.keep(node, node.op, [x], tuple(layout[axis] for axis in order))


def concatenate(cutting: Cutting, node: Node) -> None:
    """The axis along which inputs are joined is whole."""
    rank = len(node.outputs[0].shape)
    axis = node.op.axis % rank  # type: ignore[attr-defined]
    layouts = [cutting.layout(tensor) for tensor in node.inputs]
    best = max(layouts, key=lambda layout: sum(cut is not None for i, cut in enumerate(layout) if i != axis))
    layout = tuple(None if i == axis else cut for i, cut in enumerate(best))
    cutting.keep(node, node.op, [cutting.bring(tensor, layout) for tensor in node.inputs], layout)


def reshape(cutting: Cutting, node: Node) -> None:
    """A cut axis may be joined with those behind it, where these are whole, and lengthened or left alone.

    It does not become the first one, which has samples in other rules.
    """
    x, y = node.inputs[0], node.outputs[0]
    old, new = ([n or 0 for n in tensor.shape] for tensor in (x, y))
    layout = cutting.layout(x)
    found: list[Cut | None] = [None] * len(new)
    for axis, cut in enumerate(layout):
        if cut is None:
            continue
        place = _same_place(old, new, axis)
        if place is None or place[0] == 0 or any(cuts is not None for cuts in layout[axis + 1 : place[1]]):
            whole_inputs(cutting, node)
            return
        found[place[0]] = Cut(cut.mesh, scaled(cut.parts, new[place[0]] // old[axis]))
    local = cutting.local(x)
    box = cutting.box(tuple(found), new)
    op = dataclasses.replace(node.op, shape=tuple(stop - start for start, stop in box))  # type: ignore[type-var]
    cutting.keep(node, op, [local], tuple(found))


def _same_place(old: Sequence[int], new: Sequence[int], axis: int) -> tuple[int, int] | None:
    """The new axis that is made of an old one and perhaps some behind it, and the old one that follows these."""
    before = math.prod(old[:axis])
    for place in range(len(new)):
        if math.prod(new[:place]) == before and new[place] >= old[axis] and new[place] % old[axis] == 0:
            for end in range(axis + 1, len(old) + 1):
                if math.prod(old[axis:end]) == new[place]:
                    return place, end
    return None


# --- reductions ------------------------------------------------------------------------------------------------------


def gathered(cutting: Cutting, own: Tensor, cuts: Layout, rest: Layout) -> Tensor:
    """A local tensor with one element along each cut axis -> all of them, one for each process, in every process.

    rest: how it is cut along other axes, which it stays.
    """
    shape, held = [n or 0 for n in own.shape], list(rest)
    for axis, (cut, other) in enumerate(zip(cuts, rest, strict=True)):
        if cut is not None:
            shape[axis] = len(cut.parts)
            held[axis] = Cut(cut.mesh, tuple((i, i + 1) for i in range(len(cut.parts))))
        elif other is not None:
            shape[axis] = other.parts[-1][1]
    cutting.layouts[own] = tuple(held)
    return cutting.moved(own, rest, shape)


def reduction(cutting: Cutting, node: Node) -> None:
    """Sums and means of what each process has, and their sum; for others the axes are whole."""
    op, x = node.op, node.inputs[0]
    assert isinstance(op, Reduction)
    axes = op.axes(len(x.shape))
    layout = cutting.layout(x)
    if not isinstance(op, (Sum, Mean)) or all(layout[axis] is None for axis in axes):
        local = cutting.wholes(x, axes)
        kept = cutting.layouts[local]
        after = tuple(None if i in axes else cut for i, cut in enumerate(kept) if op.keepdims or i not in axes)
        cutting.keep(node, op, [local], after)
        return
    cuts = tuple(cut if i in axes else None for i, cut in enumerate(layout))
    rest = tuple(None if i in axes else cut for i, cut in enumerate(layout))
    (own,) = cutting.add(Sum(axes, keepdims=True), [cutting.local(x)], rest, name=" part")
    every = gathered(cutting, own, cuts, rest)
    after = tuple(cut for i, cut in enumerate(rest) if op.keepdims or i not in axes)
    (result,) = cutting.add(Sum(axes, keepdims=op.keepdims), [every], after)
    if isinstance(op, Mean):
        count = math.prod(x.shape[axis] or 1 for axis in axes)
        (result,) = cutting.add(Activation("affine", 1 / count, 0.0), [result], after, name=" mean")
    cutting.set(node, [result])


def global_average(cutting: Cutting, node: Node) -> None:
    """The mean of each process's part, by its size, and the sum of these."""
    x = cutting.local(node.inputs[0])
    cuts = cutting.layouts[x]
    if not any(cuts):
        whole_inputs(cutting, node)
        return
    rank = len(cuts)
    sizes = [
        (stop - start) / (n or 1)
        for (start, stop), n in zip(cutting.box(cuts, node.inputs[0].shape), node.inputs[0].shape, strict=True)
    ]
    (own,) = cutting.add(GlobalAveragePool(keepdims=True), [x], cuts, name=" part")
    part = Activation("affine", math.prod(sizes[1:-1]), 0.0)
    (own,) = cutting.add(part, [own], cuts, name=" portion")
    every = gathered(cutting, own, cuts, cutting.whole(rank))
    keepdims = node.op.keepdims  # type: ignore[attr-defined]
    total = Sum(tuple(range(1, rank - 1)), keepdims=keepdims)
    cutting.keep(node, total, [every], cutting.whole(len(node.outputs[0].shape)))


def global_maximum(cutting: Cutting, node: Node) -> None:
    """The largest of each process's part, and of these, in the order of the elements: rows that are cut."""
    x = cutting.local(node.inputs[0])
    cuts = cutting.layouts[x]
    if [axis for axis, cut in enumerate(cuts) if cut is not None] != [1]:
        whole_inputs(cutting, node)
        return
    (own,) = cutting.add(GlobalMaxPool(keepdims=True), [x], cuts, name=" part")
    cutting.keep(
        node,
        node.op,
        [gathered(cutting, own, cuts, cutting.whole(len(cuts)))],
        cutting.whole(len(node.outputs[0].shape)),
    )


# --- losses ----------------------------------------------------------------------------------------------------------


def loss_values(cutting: Cutting, node: Node) -> None:
    """Predictions and targets, with the loss of each sample or pixel; the axis of the classes is whole."""
    prediction, target = node.inputs[:2]
    rank = len(prediction.shape)
    (axis,) = normalize_axes(node.op.name, node.op.axis, rank)  # type: ignore[attr-defined]
    local = cutting.wholes(prediction, [axis])
    layout = cutting.layouts[local]
    without = (*layout[:axis], *layout[axis + 1 :])
    inputs = [local, cutting.bring(target, layout if len(target.shape) == rank else without)]
    layouts = [layout, without] if len(node.outputs) == 2 else [without]
    cutting.keep(node, node.op, inputs, *layouts)


def weighted_mean(cutting: Cutting, node: Node) -> None:
    """Of the values that this process has: its part of the mean over all of its group."""
    op, values = node.op, node.inputs[0]
    assert isinstance(op, WeightedMean)
    layout = cutting.layout(values)
    inputs = [cutting.local(values)]
    for weights in node.inputs[1:]:
        cuts = tuple(
            layout[i] if i < len(layout) and n == values.shape[i] else None for i, n in enumerate(weights.shape)
        )
        inputs.append(cutting.bring(weights, cuts))
    (mean,) = cutting.keep(node, op, inputs, ())
    if not any(layout):
        return
    if op.reduction in ("mean", "sum_over_batch_size") or (op.reduction != "sum" and len(inputs) == 1):
        part = cutting.scaled(mean, cutting.portion(layout, values.shape))
    elif op.reduction == "sum" or not any(cutting.layouts[inputs[1]]):
        part = cutting.scaled(mean, 1 / cutting.copies(layout))
    else:  # a mean by weights that are cut: what portion of them is this process's, the operator behind it knows
        part = mean
    cutting.partial.add(part)
    cutting.set(node, [part])


def penalty(cutting: Cutting, node: Node) -> None:
    x = cutting.local(node.inputs[0])
    (total,) = cutting.keep(node, node.op, [x], ())
    if any(cutting.layouts[x]):
        part = cutting.scaled(total, 1 / cutting.copies(cutting.layouts[x]))
        cutting.partial.add(part)
        cutting.set(node, [part])


def scalars(cutting: Cutting, node: Node) -> None:
    """Sums of scalars and multiples of them: parts where one is a part."""
    inputs = [cutting.local(tensor) for tensor in node.inputs]
    partial = any(tensor in cutting.partial for tensor in inputs)
    if partial:
        inputs = [cutting.as_partial(tensor) for tensor in inputs]
    outputs = cutting.keep(node, node.op, inputs, ())
    if partial:
        cutting.partial.update(outputs)


#: by the names that operators call them by (`Op.mesh`)
RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        along_axis, along_last, concatenate, custom, dense, elementwise, global_average, global_maximum,
        layer_normalization, loss_values, normalization, penalty, random_elements, reduction, reshape, scalars,
        transpose, weighted_mean, whole_inputs, *WINDOW_RULES,
    )
}  # fmt: skip
