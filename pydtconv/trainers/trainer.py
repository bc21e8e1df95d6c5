"""`Trainer`: fit, evaluate and predict, the loops over epochs and batches with their callbacks.

It stands on `BatchTrainer` (one step on one batch), which stands on `Compilable` (optimizer, losses, metrics).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import callbacks as callbacks_module
from pydtconv import hooks, replica, tree
from pydtconv.engine import limits, offloading
from pydtconv.graph import TransferError
from pydtconv.loops import GradientTape
from pydtconv.suggest import naming_arguments
from pydtconv.support.sequences import unpack_x_y_sample_weight
from pydtconv.support.sizes import as_bytes
from pydtconv.trainers import strategy
from pydtconv.trainers.batch_trainer import BatchTrainer, values_of
from pydtconv.trainers.data_adapters.arrays import ArrayData, is_arrays, split_tail
from pydtconv.trainers.data_adapters.streams import make_data
from pydtconv.trainers.epochs import Epochs, groups
from pydtconv.trainers.metric_runs import Gathering
from pydtconv.trainers.position import Position
from pydtconv.trainers.predictions import Predictions
from pydtconv.trainers.tracing import own_loss


def _one_fit_at_a_time(fit: Callable[..., Any]) -> Callable[..., Any]:
    """fit, which waits for that of another thread; one that is called by a callback leaves the outer one's place."""

    @functools.wraps(fit)
    def wrapper(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        with self._pydt_fitting.taken():
            outer, position = limits.current(), self._pydt_position
            with limits.limited():
                try:
                    return fit(self, *args, **kwargs)
                finally:
                    if limits.current().offload not in (None, outer.offload):
                        self._pydt_steps.release_scratch_file()
                    self._pydt_set("_pydt_position", position)

    return wrapper


class Trainer(BatchTrainer):
    """What makes a model trainable.  `Model` inherits from it and from `Layer`."""

    stop_training = False
    stop_evaluating = False
    stop_predicting = False
    history: Any = None
    #: where fit stands, while it runs
    _pydt_position: Any = None

    # --- fit -------------------------------------------------------------------------------------------------------
    @_one_fit_at_a_time
    @naming_arguments
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: str | int = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | str = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
        memory_limit: int | str | None = None,
        offload: Any = None,
        trace: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Trains the model; returns a History, whose `history` holds the results of each epoch by name.

        x: an array (n, ...), a list or dict of arrays for several inputs, or an iterable of batches (x, y) or
        (x, y, sample_weight): a generator, a PyDataset, a loader.  y: targets, likewise.  batch_size: 32 by default.
        verbose: "auto" or 1 a progress bar, 2 a line for each epoch, 0 nothing.
        validation_split: the share at the end of the arrays, before shuffling, that is not trained on.
        validation_data: (x, y), (x, y, sample_weight) or an iterable of batches.  shuffle: True, "batch" or False.
        class_weight: class number -> weight.  initial_epoch: the number of the first epoch.  steps_per_epoch: batches
        in an epoch, where it is not all of them.  validation_freq: epochs between two validations, or their numbers.
        memory_limit: bytes that a step may take, or a text such as "800MiB"; see `plan`.  By default that of the
        `pydtconv.memory_limit` block around this.
        offload: a folder on a local disk, on a GPU "host", its pinned memory; tensors are written there between forward
        and backward where that is the cheapest way to stay within `memory_limit`.  The results are the same bits where
        the algorithms are the same and nothing is rounded to bfloat16.  "layerwise:FOLDER": all of them are, layer by
        layer, without a schedule: a baseline.
        trace: a file for the time line of 10 steps, after the first two, on all processes: each operator, what is
        communicated, waiting, loading of data.  JSON for chrome://tracing and Perfetto, or where it ends in .prv,
        Paraver's records.  It is written when these steps are done.  A `profiling.Profiler` among the callbacks says
        which steps.

        Raises ValueError, naming the argument, for data that does not fit, and OSError for a folder that cannot take
        what is to be offloaded and for a trace that cannot be written, before anything is changed.
        """
        if not self.compiled:
            raise ValueError("call compile() before fit()")
        memory_limit = as_bytes("memory_limit", memory_limit)
        offload = offloading.folder_of(offload, memory_limit)
        check_count("epochs", epochs)
        check_count("initial_epoch", initial_epoch)
        should_validate(0, validation_freq)
        tracer = None if trace is None else hooks.tracer(trace)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = split_tail(validation_split, x, y, sample_weight)
        data = make_data(x, y, sample_weight, batch_size, shuffle, class_weight)
        limits.set_to(limits.around() if memory_limit is None else limits.Limits(memory_limit, offload))
        self._pydt_prepare("train", data)
        epochs_of = Epochs(data, steps_per_epoch, self.steps_per_execution)
        validation = None
        if validation_data is not None:
            validation_size = batch_size if validation_batch_size is None else validation_batch_size
            validation = validation_epochs(validation_data, validation_size, validation_steps, self.steps_per_execution)
            self._pydt_prepare("test", validation.data)
        listeners = callbacks_module.CallbackList.of(
            callbacks,
            model=self,
            add_history=True,
            add_progbar=verbose != 0 and replica.current().is_main,
            verbose=verbose,
            epochs=epochs,
            steps=epochs_of.num_batches,
            validation=validation is not None,
        )
        if tracer is not None:
            tracer.join(listeners, self)
        history = self.history
        settings = {
            "epochs": epochs,
            "initial_epoch": initial_epoch,
            "steps_per_epoch": steps_per_epoch,
            "validation_freq": validation_freq,
            "validation_steps": validation_steps,
            "steps_per_execution": self.steps_per_execution,
            "trace": trace is not None,
        }
        strategy.current().begin(settings, listeners.callbacks)
        self._pydt_set("stop_training", False)
        self._pydt_set(
            "_pydt_position", Position(initial_epoch, epochs_of, validation, listeners.callbacks, Gathering(self))
        )
        try:
            listeners.on_train_begin()
            logs = self._pydt_fit_epochs(epochs, validation_freq, listeners)
            replica.current().settle(columns=False)
            listeners.settle()
            if epochs > initial_epoch and self.optimizer is not None:
                with self._pydt_turn.taken():
                    self.optimizer.finalize_variable_values(self.trainable_variables)  # type: ignore[attr-defined]
            listeners.on_train_end(logs)
        except BaseException as error:
            if isinstance(error, TransferError) and error.undone and replica.current().size == 1:
                self._pydt_position.batches.take_back()
                listeners.step_undone()
            strategy.current().left("fit", error)
            raise
        finally:
            listeners.release()
            self._pydt_set("history", history)
        return history

    def _pydt_fit_epochs(self, epochs: int, validation_freq: int | Sequence[int], listeners: Any) -> dict[str, Any]:
        """Trains from the position on up to this number of epochs; returns the last one's results."""
        position, turn = self._pydt_position, self._pydt_turn
        gathering = position.gathering
        logs: dict[str, Any] = {}
        while position.epoch < epochs and not position.finished:
            epoch = position.epoch
            with turn.taken():
                gathering.begin()
            listeners.on_epoch_begin(epoch)
            self._pydt_stops("stop_training", True)
            results = position.results
            if results is None:
                results = self._pydt_fit_epoch(position.batches, listeners, gathering)
            with turn.taken():
                gathering.end()
            if position.results is None:
                if position.batches.ran_dry and not position.batches.done:  # nothing is known of no batches
                    break
                position.trained(results)
            logs = dict(position.results)
            if position.validation is not None and should_validate(epoch, validation_freq):
                results = self._pydt_evaluate(position.validation, listeners)
                if position.validation.done:  # nothing is known of no batches
                    logs.update({f"val_{name}": value for name, value in results.items()})
                logs = dict(sorted(logs.items()))
            position.next_epoch()
            listeners.on_epoch_end(epoch, dict(logs))  # to which callbacks may add
            strategy.current().epoch_ended(self._pydt_training)
            position.finished = self._pydt_stops("stop_training", True) or position.batches.ran_dry
        return logs

    def _pydt_fit_epoch(self, batches: Epochs, listeners: Any, gathering: Gathering) -> dict[str, Any]:
        turn, position = self._pydt_turn, self._pydt_position
        asked = _may_stop(listeners, "train")
        saves = any(callback.saves_between_steps for callback in listeners.callbacks)
        is_read = asked or replica.current().any(saves, "the callbacks that save")
        reads = replica.current().any(listeners.read_state, "the callbacks that read the optimizer's state")
        for first, last, group in groups(batches, self.steps_per_execution):
            listeners.on_train_batch_begin(first)
            for batch in group:
                with turn.taken():
                    gathering.resume()
                    self._pydt_training.is_read = is_read
                    position.logs = self._pydt_step("train", batch)
            listeners.on_train_batch_end(last, position.logs)
            if self._pydt_stops("stop_training", asked):
                break
        with turn.taken():
            replica.current().settle(state=reads)
            gathering.resume()
            return self._pydt_results("train", position.logs)

    def _pydt_stops(self, name: str, asked: bool) -> bool:
        """Whether the attribute asks to end; asked: in any of the processes that train together, in the same step."""
        if asked:
            self._pydt_set(name, replica.current().any(bool(getattr(self, name)), f"{name} of all ranks"))
        return getattr(self, name)

    # --- evaluate, predict -----------------------------------------------------------------------------------------
    @naming_arguments
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Loss and metrics on data, in test mode: a list, in the order of `metrics` (a number where there is only
        the loss), or a dict by name.  Arguments as in `fit`; steps: number of batches."""
        data = make_data(x, y, sample_weight, batch_size)
        with limits.limited():
            self._pydt_prepare("test", data)
            batches = Epochs(data, steps, self.steps_per_execution)
            listeners = self._pydt_listeners(callbacks, batches, verbose)
            try:
                logs = self._pydt_evaluate(batches, listeners)
            except BaseException as error:
                strategy.current().left("evaluate", error)
                raise
            finally:
                listeners.release()
        return logs if return_dict else values_of(logs, self._pydt_order_of(logs))

    def _pydt_evaluate(self, batches: Epochs, listeners: Any) -> dict[str, Any]:
        self._pydt_set("stop_evaluating", False)
        listeners.on_test_begin()
        self._pydt_stops("stop_evaluating", True)
        turn, gathering = self._pydt_turn, Gathering(self)
        with turn.taken():
            gathering.begin()
        asked = _may_stop(listeners, "test")
        logs: dict[str, Any] = {}
        for first, last, group in groups(batches, self.steps_per_execution):
            listeners.on_test_batch_begin(first)
            for batch in group:
                with turn.taken():
                    gathering.resume()
                    logs = self._pydt_step("test", batch)
            listeners.on_test_batch_end(last, logs)
            if self._pydt_stops("stop_evaluating", asked):
                break
        with turn.taken():
            gathering.resume()
            logs = self._pydt_results("test", logs)
            gathering.end()
        listeners.on_test_end(logs)
        return logs

    @naming_arguments
    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """The outputs for all samples, in test mode: arrays in the structure of the model's outputs.

        x: arrays or an iterable of batches, of which only the inputs are read; steps: number of batches.
        """
        data = make_data(x, batch_size=batch_size)
        with limits.limited():
            self._pydt_prepare("predict", data)
            batches = Epochs(data, steps, self.steps_per_execution)
            listeners = self._pydt_listeners(callbacks, batches, verbose)
            try:
                return self._pydt_predict(data, batches, listeners, steps)
            except BaseException as error:
                strategy.current().left("predict", error)
                raise
            finally:
                listeners.release()

    def _pydt_predict(self, data: Any, batches: Epochs, listeners: Any, steps: int | None) -> Any:
        self._pydt_set("stop_predicting", False)
        listeners.on_predict_begin()
        self._pydt_stops("stop_predicting", True)
        turn = self._pydt_turn
        asked = _may_stop(listeners, "predict")
        predictions = Predictions(data.samples if isinstance(data, ArrayData) and steps is None else None)
        for first, last, group in groups(batches, self.steps_per_execution):
            listeners.on_predict_batch_begin(first)
            parts = []
            for batch in group:
                with turn.taken():
                    parts.append(predictions.add(self._pydt_predict_batch(batch), batch.total))
            outputs = parts[0] if len(parts) == 1 else tree.map_structure(lambda *each: np.concatenate(each), *parts)
            listeners.on_predict_batch_end(last, {"outputs": outputs})
            if self._pydt_stops("stop_predicting", asked):
                break
        listeners.on_predict_end()
        return predictions.result()

    def _pydt_listeners(self, callbacks: Any, batches: Epochs, verbose: str | int) -> Any:
        """Callbacks of a run over the data once."""
        return callbacks_module.CallbackList.of(
            callbacks,
            model=self,
            add_progbar=verbose != 0 and replica.current().is_main,
            verbose=verbose,
            epochs=1,
            steps=batches.num_batches,
        )

    # --- steps, as a subclass may write them -----------------------------------------------------------------------
    def train_step(self, data: Any) -> Any:
        """One step of training on a batch (x, (x, y) or (x, y, sample_weight)); returns results by name.

        `fit` has a plan for what is written here.  A subclass may write another step, in layers, functions of
        `pydtconv.ops`, `GradientTape`, optimizers and metrics: it is traced once for each shape of batch, and runs from
        plans after that.
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)  # type: ignore[operator]
            loss = own_loss(self, True, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight)
            self._pydt_loss_tracker.update_state(loss, sample_weight=tree.flatten(x)[0].shape[0])
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_variables  # type: ignore[attr-defined]
        if weights:
            self._pydt_check_optimizer()
            self.optimizer.apply(tape.gradient(loss, weights), weights)
        else:
            self._pydt_check_trainable(weights)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def test_step(self, data: Any) -> Any:
        """One step of evaluation on a batch; returns results by name.  A subclass may write another one."""
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)  # type: ignore[operator]
        loss = own_loss(self, False, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight)
        self._pydt_loss_tracker.update_state(loss, sample_weight=tree.flatten(x)[0].shape[0])
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """The outputs for a batch.  A subclass may write another step, as `train_step`."""
        x, _, _ = unpack_x_y_sample_weight(data)
        return self(x, training=False)  # type: ignore[operator]

    def make_train_function(self, force: bool = False) -> Any:
        """A function that takes an iterator and trains on its next batch.  A subclass may give another one."""
        return self._pydt_iterating("train", force)

    def make_test_function(self, force: bool = False) -> Any:
        """A function that takes an iterator and evaluates its next batch.  A subclass may give another one."""
        return self._pydt_iterating("test", force)

    def make_predict_function(self, force: bool = False) -> Any:
        """A function that takes an iterator and gives the outputs for its next batch.  A subclass may give another."""
        return self._pydt_iterating("predict", force)

    def _pydt_iterating(self, kind: str, force: bool) -> Any:
        if force:
            self._pydt_custom.forget()
        function = self._pydt_custom.function(kind)
        return lambda iterator: function(next(iter(iterator)))

    # --- subclasses ------------------------------------------------------------------------------------------------
    def _pydt_overrides(self, name: str) -> bool:
        """Whether a subclass has a method of its own in place of Trainer's."""
        return getattr(type(self), name) is not getattr(Trainer, name)


def _may_stop(listeners: Any, kind: str) -> bool:
    """Whether callbacks of any process may ask for the end between two batches, by themselves."""
    own = listeners.calls_others(f"on_{kind}_batch_begin", f"on_{kind}_batch_end")
    return replica.current().any(own, "the callbacks of all ranks")


def unpack(data: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) of validation data."""
    if isinstance(data, (tuple, list)):
        if not 1 <= len(data) <= 3:
            raise ValueError(f"validation_data: expected (x, y) or (x, y, sample_weight), got {len(data)} parts")
        return (*data, None, None)[:3]
    return data, None, None


def validation_epochs(data: Any, batch_size: int | None, steps: int | None, execution: int) -> Epochs:
    """The batches of validation data, the same in each epoch: of batch_size for arrays, of their own for an iterable.

    A generator, which cannot begin again, goes on where the last epoch has stopped.
    """
    x, y, sample_weight = unpack(data)
    batches = make_data(x, y, sample_weight, batch_size if is_arrays(x) else None)
    return Epochs(batches, steps, execution, anew=True)


def check_count(name: str, value: Any) -> None:
    """Raises ValueError for what is no integer of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"{name}: expected an integer of 0 or more, got {value!r}")


def should_validate(epoch: int, frequency: int | Sequence[int]) -> bool:
    """Whether to validate after this epoch.  Raises ValueError for a frequency that is none."""
    if isinstance(frequency, (int, np.integer)) and frequency >= 1:
        return (epoch + 1) % frequency == 0
    if isinstance(frequency, (list, tuple, set)):
        return epoch + 1 in frequency
    raise ValueError(f"validation_freq: expected an integer of 1 or more or a list of epochs, got {frequency!r}")
