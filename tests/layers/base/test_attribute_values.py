"""Attributes of layers that change after a step was traced."""

import pytest

import pydtconv
from pydtconv.layers.base import attribute_values
from tests.layers.test_constructor_arguments import ENDINGS, LAYERS, SEPARATE, base_of, variants_of

#: arguments that weights are made by, names, and dtypes, which are policies
NOT_READ = ("name", "dtype", "weights")


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in ("StringLookup", "TextVectorization")])
@pytest.mark.filterwarnings("ignore")
def test_attributes_that_a_constructor_sets_are_seen_when_they_change(name):
    arguments, shapes = base_of(name)
    layer, inputs = LAYERS[name](**arguments), [pydtconv.Input(shape[1:]) for shape in shapes]
    layer(*inputs) if len(inputs) == 1 or name in SEPARATE else layer(inputs)
    for argument, others, _ in variants_of(name):
        makes = argument in NOT_READ or (argument.endswith(tuple(ENDINGS)) and argument != "activity_regularizer")
        other = None if makes else vars(LAYERS[name](**others)).get(argument)
        now = vars(layer).get(argument)
        if other is None or not attribute_values.counts(other) or repr(other) == repr(now):
            continue
        before = attribute_values.of_model(layer)
        setattr(layer, argument, other)
        assert attribute_values.of_model(layer) != before, argument
        setattr(layer, argument, now)
        assert attribute_values.of_model(layer) == before, argument
