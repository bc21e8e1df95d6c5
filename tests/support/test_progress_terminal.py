"""The line of an epoch in a terminal of any width, in a pipe, in a notebook; messages have lines of their own."""

import fcntl
import io
import os
import pty
import struct
import sys
import termios
import threading
import time
import warnings

import numpy as np
import pytest

import pydtconv as keras

NAMES = ["loss", "mean_absolute_error", "mean_squared_error", "val_loss"]


class Terminal:
    """A pseudo-terminal of so many columns in the place of standard output; `lines` are what it shows at the end."""

    def __init__(self, monkeypatch, columns):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50 if columns else 0, columns, 0, 0))
        self.output = os.fdopen(slave, "w", encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", self.output)
        monkeypatch.setattr(sys, "stderr", self.output)
        self.text = b""
        self.reader = threading.Thread(target=self.read, args=(master,))
        self.reader.start()

    def read(self, master):
        with open(master, "rb", buffering=0) as file:
            try:
                while part := file.read(1 << 16):
                    self.text += part
            except OSError:  # the other end is closed
                pass

    def shows(self, text):
        """Whether a text has come, within some seconds."""
        for _ in range(200):
            if text in self.text.decode(errors="ignore"):
                return True
            time.sleep(0.05)
        return False

    def lines(self):
        self.output.close()
        self.reader.join()
        return screen(self.text.decode())


def screen(text):
    """The lines that a terminal shows of a text; those that are drawn anew must not be wrapped."""
    rows, row, column = [[]], 0, 0
    for character in text:
        if character == "\n":
            row, column = row + 1, 0
            rows.append([])
        elif character == "\r":
            column = 0
        else:
            line = rows[row]
            line += [" "] * (column + 1 - len(line))
            line[column] = character
            column += 1
    return ["".join(line).rstrip() for line in rows]


class Talks(keras.callbacks.Callback):
    """What speaks between steps and at the end of an epoch."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            warnings.warn("something odd", UserWarning, stacklevel=1)

    def on_epoch_end(self, epoch, logs=None):
        keras.callbacks.monitor.say(True, "the best so far")


def fit(**more):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mean_absolute_error", "mean_squared_error"])
    data = np.ones((8, 2)), np.ones((8, 1))
    model.fit(*data, batch_size=2, validation_data=data, **more)


@pytest.mark.parametrize("columns", [40, 80, 200, 0])
def test_the_line_of_an_epoch_is_whole_and_messages_have_lines_of_their_own(columns, monkeypatch):
    terminal = Terminal(monkeypatch, columns)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda message, *more, **others: print(f"Warning: {message}"))
        fit(epochs=2, callbacks=[Talks()])
    lines = terminal.lines()
    ends = [line for line in lines if line.startswith("4/4 ")]
    assert len(ends) == 2
    assert all(f" {name}: " in line for name in NAMES for line in ends)
    assert all(("\u2588" * 20 in line) == (columns == 200) for line in ends)  # the bar gives way first
    assert all(len(line) < columns or line in ends for line in lines if columns)
    assert lines.count("the best so far") == 2
    assert sum(line == "Warning: something odd" for line in lines) == 2
    assert [line.split(" - ")[0].split(" ")[0] for line in lines if line and "odd" not in line] == [
        "Epoch", "the", "4/4", "Epoch", "the", "4/4",
    ]  # fmt: skip
    assert warnings.showwarning.__module__ != "pydtconv.support.messages"


def test_an_interrupt_leaves_the_line_as_it_is(monkeypatch):
    class Interrupts(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                raise KeyboardInterrupt

    terminal = Terminal(monkeypatch, 80)
    with pytest.raises(KeyboardInterrupt):
        fit(callbacks=[Interrupts()])
    print("pydtconv train: interrupted")
    lines = terminal.lines()
    assert lines[0].startswith("1/4 ")
    assert lines[1] == "pydtconv train: interrupted"


def test_a_bar_within_an_epoch_is_cut_and_grows(monkeypatch):
    terminal = Terminal(monkeypatch, 40)
    bar = keras.utils.Progbar(4, interval=0)
    bar.update(2, [("a_long_name_of_a_metric", 1.0)])
    assert terminal.shows("2/4 - ")
    assert len(terminal.text.decode().strip()) < 40
    bar.add(2, [("a_long_name_of_a_metric", 3.0)])
    (line, end) = terminal.lines()
    assert line.endswith("a_long_name_of_a_metric: 2.0000")
    assert not end
    terminal = Terminal(monkeypatch, 80)
    bar = keras.utils.Progbar(4, interval=0)
    bar.update(2)
    assert terminal.shows(f"2/4 {'█' * 10}{' ' * 10} ")
    terminal.lines()


def test_a_terminal_that_knows_no_blocks_gets_signs_of_ascii(monkeypatch):
    terminal = Terminal(monkeypatch, 80)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(os.fdopen(os.dup(terminal.output.fileno()), "wb"), "ascii"))
    keras.utils.Progbar(2, interval=0).update(2)
    sys.stdout.close()
    assert terminal.lines()[0].startswith(f"2/2 {'#' * 20} ")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the notebook's own machinery
def test_the_line_is_whole_in_a_notebook():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = (
        "import numpy as np, pydtconv as keras\n"
        "model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse', metrics=['mean_absolute_error', 'mean_squared_error'])\n"
        "data = np.ones((8, 2)), np.ones((8, 1))\n"
        "history = model.fit(*data, batch_size=2, validation_data=data, epochs=2)\n"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300).execute()
    text = "".join(output.get("text", "") for output in notebook.cells[0].outputs)
    ends = [line for line in screen(text) if line.startswith("4/4 " + "\u2588" * 20)]
    assert len(ends) == 2
    assert all(f" {name}: " in line for name in NAMES for line in ends)
