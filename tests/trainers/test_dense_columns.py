"""Dense layers whose columns processes share: which ones, and what cannot be."""

import pytest

from pydtconv import constraints, optimizers, replica
from pydtconv.graph.spatial.partition import Partition
from tests.distribution import accumulated, columns


def plan(network, optimizer="sgd", names=("fc1", "fc2"), count=2, **mesh):
    """Of a rank of a mesh, by default one along height."""
    mesh = mesh or {"height": count}
    part = Partition(tuple(mesh), tuple(mesh.values()), tuple(range(count)), count - 1, columns=tuple(names))
    network.compile(optimizer, "sparse_categorical_crossentropy")
    with replica.one_of(count, rank=count - 1, partition=part):
        return network.plan(4)


def test_plans_have_a_part_of_the_variables():
    whole = plan(columns.network(), names=())
    for count in (2, 3, 4):
        found = plan(columns.network(), "adam", count=count)
        cut = 4 * (112 * 12 + 12 + 12 * 24 + 24)
        assert found.trainable_bytes == whole.trainable_bytes - cut + cut // count
        assert found.slot_bytes == 2 * found.trainable_bytes
        assert found.gradient_bytes == found.trainable_bytes


class Own(optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        super().apply(grads, trainable_variables)


LATER = "columns: expected an optimizer that works element by element"
#: of each case what it is given, and what is said
REFUSED = {
    "no layer": ({"names": ["fc9"]}, r"columns: 'fc9': expected one of the model's Dense .*fc1, fc2, fc3., got"),
    "other layer": ({"names": ["conv2d*"]}, r"columns: 'conv2d\*': expected one of .*, got 'conv2d.*', a Conv2D"),
    "units": ({"count": 5}, "columns: layer 'fc1': expected units that 5 processes can share evenly, got 12"),
    "no mesh": ({"batch": 2}, "columns: expected a mesh with processes that share samples, got batch=2"),
    "no names": ({"names": [], "model": 2}, "mesh: axis 'model': expected the names of dense layers in columns, got"),
    "own apply": ({"optimizer": Own(0.1)}, "Own: columns: .* got one with an apply of its own"),
} | {
    name: ({"optimizer": name}, f"{name}: {LATER}") for name in accumulated.NAMES if name not in columns.NAMES
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_shared_is_refused_by_name(case):
    given, told = REFUSED[case]
    with pytest.raises(NotImplementedError if "optimizer" in given else ValueError, match=told):
        plan(columns.network(), **given)


def test_constraints_are_refused():
    constrained = columns.network(kernel_constraint=constraints.NonNeg())
    with pytest.raises(NotImplementedError, match=r"columns: variable '.*fc1/kernel': expected no constraint, got one"):
        plan(constrained)
