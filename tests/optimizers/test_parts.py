"""A step in parts, as gradients arrive, is the same as a step over everything at once."""

import numpy as np
import pytest

from pydtconv import optimizers
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore

OPTIONS = [
    {},
    {"clipnorm": 0.5},
    {"clipvalue": 0.1},
    {"weight_decay": 0.1},
    {"use_ema": True, "ema_overwrite_frequency": 2},
    {"gradient_accumulation_steps": 2},
    {"loss_scale_factor": 8.0},
]
NAMES = ("SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop")


def trained(optimizer, how):
    """how: "whole", "parts", or "bound": parts of gradients that have places of their own, as in a plan."""
    rng = np.random.default_rng(3)
    variables = [Variable(rng.normal(size=shape), name=f"v{i}") for i, shape in enumerate([(3, 5), (40,), (2, 2, 7)])]
    store = ParameterStore(variables)
    optimizer.build(variables, store)
    optimizer.exclude_from_weight_decay(var_list=[variables[1]])
    stops = [store.slice_of(variable).start for variable in variables[1:]]
    parts = [slice(start, stop) for start, stop in zip([0, *stops], [*stops, store.size], strict=True)]
    places = [np.zeros(part.stop - part.start, store.dtype) for part in parts]
    bound = [optimizer.bind_part(part, place) for part, place in zip(parts, places, strict=True)]
    for _ in range(5):
        for variable in variables:
            store.gradient_of(variable)[...] = rng.normal(size=variable.shape)
        if how == "parts":
            optimizer.begin(store)
            for part in parts:
                optimizer.apply_part(part)
            optimizer.end()
        elif how == "bound":
            optimizer.begin(store)
            for call, place, part in zip(bound, places, parts, strict=True):
                place[...] = store.gradients[part]
                call()
            optimizer.end()
        else:
            optimizer.apply(store)
    return store.parameters


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "plain")
@pytest.mark.parametrize("name", NAMES)
def test_parts_equal_the_whole(name, options):
    whole, *others = (trained(getattr(optimizers, name)(**options), how) for how in ("whole", "parts", "bound"))
    for parts in others:
        np.testing.assert_array_equal(whole, parts)


def test_a_norm_over_everything_needs_everything():
    assert optimizers.SGD(clipnorm=1.0).works_in_parts
    assert not optimizers.SGD(global_clipnorm=1.0).works_in_parts
