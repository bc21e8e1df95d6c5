"""The functions of `pydtconv.ops` that `keras.ops.nn` has: those of neural networks."""

from pydtconv.ops.parts import part_of_ops

__all__ = """
    adaptive_average_pool adaptive_max_pool average_pool batch_normalization binary_crossentropy
    categorical_crossentropy celu conv conv_transpose ctc_decode ctc_loss depth_to_space depthwise_conv
    dot_product_attention elu fold gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh
    layer_normalization leaky_relu log_sigmoid log_softmax max_pool moments multi_hot normalize one_hot polar psnr
    relu relu6 rms_normalization selu separable_conv sigmoid silu soft_shrink softmax softplus softsign
    space_to_depth sparse_categorical_crossentropy sparse_plus sparse_sigmoid sparsemax squareplus swish
    tanh_shrink threshold unfold
""".split()  # noqa: SIM905

__getattr__, __dir__ = part_of_ops(__name__, __all__)
