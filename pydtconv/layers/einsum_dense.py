"""EinsumDense: a dense layer whose product is an equation."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from pydtconv import activations, ops
from pydtconv.initializers import VarianceScaling
from pydtconv.layers.base.arguments import refuse
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.ops.functions.einsum import rows_of_dense
from pydtconv.serialization.configurable import builtin


@builtin
class EinsumDense(Layer):
    """activation(einsum(equation, x, kernel) + bias), as in EinsumDense("abc,cd->abd", output_shape=(None, 64)).

    equation: of the input and the kernel; `...` stands for axes that the kernel has not.  output_shape: without the
    batch, an integer or a tuple; None where an extent is the input's.  bias_axes: letters of the result that are axes
    of the bias; None for no bias.
    """

    reads_integers = False

    _pydt_not_in_config = (
        "output_shape",
        "lora_rank",
        "lora_alpha",
        "gptq_unpacked_column_size",
        "quantization_config",
    )
    kernel_initializer: Any
    kernel_regularizer: Any
    kernel_constraint: Any

    def __init__(
        self,
        equation: str,
        output_shape: int | Sequence[int | None],
        activation: Any = None,
        bias_axes: str | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        lora_rank: Any = None,
        lora_alpha: Any = None,
        gptq_unpacked_column_size: Any = None,
        quantization_config: Any = None,
        **kwargs: Any,
    ) -> None:
        refuse(
            "EinsumDense",
            lora_rank=lora_rank,
            lora_alpha=lora_alpha,
            gptq_unpacked_column_size=gptq_unpacked_column_size,
            quantization_config=quantization_config,
        )
        super().__init__(**kwargs)
        self.equation = equation
        self.partial_output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        self.bias_axes = bias_axes
        self.activation = activations.get(activation)
        self._pydt_keep_arguments("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self._pydt_keep_arguments("bias", bias_initializer, bias_regularizer, bias_constraint)

    def build(self, input_shape: Any) -> None:
        found = Analysis(self, input_shape)
        self.input_spec = InputSpec(ndim=len(input_shape))
        self.kernel = self.add_weight(
            found.kernel_shape,
            _for_axes(self.kernel_initializer, found),
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name="kernel",
        )
        self.bias = None if found.bias_shape is None else self._pydt_add_kept("bias", found.bias_shape)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output's shape for an input shape; builds nothing."""
        return Analysis(self, input_shape).output_shape

    def _activated(self, y: Any) -> Any:
        return y if self.activation is None else self.activation(y)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        bias = self.bias
        columns = math.prod(self.kernel.shape[len(self.kernel.shape) - len(bias.shape) :]) if bias is not None else 0
        if bias is not None and math.prod(bias.shape) == columns:
            vector = bias if len(bias.shape) == 1 else ops.reshape(bias, (columns,))  # there before the product
            dense = rows_of_dense(self.equation, inputs, self.kernel)
            if dense is not None and dense[0].shape[-1] == columns:
                y = ops.Bias()(dense[0], vector)
                early = activations.is_elementwise(self.activation)  # others need the axes of the output
                y = self._activated(y) if early else y
                y = y if tuple(y.shape) == dense[1] else ops.reshape(y, dense[1])
                return y if early else self._activated(y)
        y = ops.einsum(self.equation, inputs, self.kernel)
        return self._activated(y if bias is None else ops.add(y, bias))

    def _pydt_own_config(self) -> dict[str, Any]:
        return {**super()._pydt_own_config(), "output_shape": self.partial_output_shape}


class Analysis:
    """What an equation says of the shapes of kernel and bias for an input."""

    def __init__(self, layer: EinsumDense, input_shape: Sequence[int | None]) -> None:
        equation = layer.equation.replace(" ", "")
        left, _, output = equation.partition("->")
        x, _, kernel = left.partition(",")
        name = f"EinsumDense {layer.name!r}"
        if not output or not x or not kernel or "," in kernel:
            raise ValueError(f"{name}: equation: expected one such as 'ab,bc->ac', got {layer.equation!r}")
        if "..." in kernel:
            raise ValueError(f"{name}: equation: expected a kernel without '...', got {layer.equation!r}")
        extents = dict(_extents(name, x, tuple(input_shape)))
        named = output.replace("...", "")
        given = layer.partial_output_shape
        whole = (
            given if len(given) == len(named) else (input_shape[0], *given) if len(given) + 1 == len(named) else None
        )
        if "..." in output and len(given) <= len(named):
            whole = (*(None,) * (len(named) - len(given)), *given)
        if whole is None:
            raise ValueError(f"{name}: output_shape: expected {len(named) - 1} extents for {output}, got {given}")
        for letter, extent in zip(named, whole, strict=True):
            known = extents.get(letter)
            if None not in (known, extent) and known != extent:
                raise ValueError(
                    f"{name}: output_shape: expected {known} for {letter!r}, as the input has, got {extent}"
                )
            extents[letter] = known if known is not None else extent
        unknown = [letter for letter in kernel if extents.get(letter) is None]
        if unknown:
            raise ValueError(
                f"{name}: expected the extents of {', '.join(unknown)} from the input or output_shape, got input shape "
                f"{tuple(input_shape)} and output_shape {given}"
            )
        before, _, behind = output.partition("...")
        dots = x.partition("...")
        inner = tuple(input_shape)[len(dots[0]) : len(input_shape) - len(dots[2])] if dots[1] else ()
        self.output_shape = (
            *(extents[c] for c in before),
            *(inner if "..." in output else ()),
            *(extents[c] for c in behind),
        )
        self.kernel_shape = tuple(int(extents[letter] or 0) for letter in kernel)
        self.input_axes = [axis for axis, letter in enumerate(kernel) if letter in x]
        self.output_axes = [axis for axis, letter in enumerate(kernel) if letter in output]
        elided = len(input_shape) - len(x.replace("...", ""))
        self.bias_shape = self._bias_shape(name, layer.bias_axes, output.replace("...", "." * elided), extents)

    @staticmethod
    def _bias_shape(name: str, axes: str | None, output: str, extents: dict[str, int | None]) -> tuple[int, ...] | None:
        """Extents of the bias from its first axis in the result on; 1 for those that it has not.

        output: with a dot for each axis that has no letter.
        """
        if not axes:
            return None
        if not all(letter in output and extents.get(letter) is not None for letter in axes):
            raise ValueError(f"{name}: bias_axes: expected letters of {output} of known extents, got {axes!r}")
        first = min(output.index(letter) for letter in axes)
        return tuple(int(extents[letter] or 0) if letter in axes else 1 for letter in output[first:])


def _extents(name: str, letters: str, shape: tuple[int | None, ...]) -> list[tuple[str, int | None]]:
    named = letters.replace("...", "")
    if len(named) > len(shape) or (len(named) < len(shape) and "..." not in letters):
        raise ValueError(f"{name}: expected an input of {len(named)} axes, {letters}, got shape {shape}")
    before, dots, after = letters.partition("...")
    last = shape[len(shape) - len(after) :] if dots else ()
    return [*zip(before, shape, strict=False), *zip(after, last, strict=True)]


def _for_axes(initializer: Any, found: Analysis) -> Any:
    """The initializer, which counts a unit's inputs and outputs along these axes."""
    if not isinstance(initializer, VarianceScaling) or None not in (initializer.input_axes, initializer.output_axes):
        return initializer
    other = copy.copy(initializer)
    other.input_axes, other.output_axes = found.input_axes, found.output_axes
    return other
