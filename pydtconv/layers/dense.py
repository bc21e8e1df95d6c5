"""Dense: y = activation(x w + b) over the last axis."""

from __future__ import annotations

from typing import Any

from pydtconv import activations, ops
from pydtconv.layers.base.arguments import positive, refuse
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


@builtin
class Dense(Layer):
    """A fully connected layer: (n, ..., ci) -> (n, ..., units), kernel (ci, units), bias (units,)."""

    carries_masks = True
    computes_integers = False

    _pydt_not_in_config = ("lora_rank", "lora_alpha", "quantization_config")

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        lora_rank: Any = None,
        lora_alpha: Any = None,
        quantization_config: Any = None,
        **kwargs: Any,
    ) -> None:
        refuse("Dense", lora_rank=lora_rank, lora_alpha=lora_alpha, quantization_config=quantization_config)
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.units = positive("Dense", "units", units)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self._pydt_keep_arguments("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self._pydt_keep_arguments("bias", bias_initializer, bias_regularizer, bias_constraint)
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        ci = input_shape[-1]
        if ci is None:
            raise ValueError(f"Dense {self.name!r}: the input's last extent must be known, got shape {input_shape}")
        self.kernel = self._pydt_add_kept("kernel", (ci, self.units))
        self.bias = None
        if self.use_bias:
            self.bias = self._pydt_add_kept("bias", (self.units,))
        self.input_spec = InputSpec(min_ndim=2, axes={-1: ci})

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        y = ops.Dense()(ops.cast(inputs, self.compute_dtype), self.kernel)
        if self.bias is not None:
            y = ops.Bias()(y, self.bias)
        return y if self.activation is None else self.activation(y)
