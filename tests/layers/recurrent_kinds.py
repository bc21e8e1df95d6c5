"""Recurrent layers of all kinds, for tests that walk them."""

from pydtconv import layers, ops


class Cell(layers.Layer):
    """h = tanh(x W + h), a cell of one's own."""

    state_size = 3

    def build(self, input_shape):
        self.kernel = self.add_weight((input_shape[-1], 3), name="kernel")

    def call(self, inputs, states):
        h = ops.tanh(ops.matmul(inputs, self.kernel) + states[0])
        return h, [h]


class Sums(Cell):
    """The same by ops.scan."""

    def call(self, x):
        z = ops.swapaxes(ops.matmul(x, self.kernel), 0, 1)
        return ops.scan(lambda h, z: (ops.tanh(z + h),) * 2, z[0], z)[0]


#: by name a layer with a rate of dropout, and the shape of a step
KINDS = {
    "simple": (lambda rate: layers.SimpleRNN(3, dropout=rate), (4,)),
    "lstm": (lambda rate: layers.LSTM(3, dropout=rate), (4,)),
    "gru": (lambda rate: layers.GRU(3, dropout=rate), (4,)),
    "both": (lambda rate: layers.Bidirectional(layers.LSTM(3, dropout=rate)), (4,)),
    "dropout of states": (lambda rate: layers.GRU(3, recurrent_dropout=rate), (4,)),
    "own cell": (lambda rate: layers.RNN([Cell(), layers.GRUCell(2)]), (4,)),
    "scan": (lambda rate: Sums(), (4,)),
    "ConvLSTM1D": (lambda rate: layers.ConvLSTM1D(2, 2, recurrent_dropout=rate), (4, 2)),
    "ConvLSTM2D": (lambda rate: layers.ConvLSTM2D(2, 2), (4, 4, 2)),
}
#: as one operator of C; the others have a Scan, or on other devices than CPUs the operators of all steps
FUSED = {"simple": "simple", "lstm": "lstm", "gru": "gru", "both": "lstm"}
