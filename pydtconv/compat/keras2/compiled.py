"""`compiled_loss` and `compiled_metrics` of models, which training steps of Keras 2 call."""

from __future__ import annotations

from typing import Any

from pydtconv import ops, tree
from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.models.model import Model
from pydtconv.trainers.tracing import losses_of, output_names


class CompiledLoss:
    """The losses of compile; its call gives their sum, and lets it into the model's mean of the loss."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None) -> Any:
        """The weighted sum of the outputs' losses, and of penalties that are given."""
        model = self._model
        targets = model._pydt_targets
        if targets is None:
            raise ValueError("compiled_loss: expected a compiled model: call compile() first")
        if not targets.outputs:
            targets.build(y_pred, output_names(model), y_true)
        outputs = tree.flatten(y_pred)
        found = losses_of(targets, targets.arrange(y_true, "y"), outputs, targets.weights(sample_weight))
        weights = targets.scales()
        terms = [loss if weights[name] is None else loss * weights[name] for name, loss in found.items()]
        terms += map(ops.sum, regularization_losses or ())
        if not terms:
            raise ValueError("compiled_loss: no loss to compute: give compile a loss")
        total = sum(terms[1:], terms[0])
        samples = outputs[0].shape[0]
        model._pydt_track_output_losses(found, samples)
        model._pydt_loss_tracker.update_state(total, sample_weight=samples)
        return total

    @property
    def metrics(self) -> list[Any]:
        """The means of the loss and of the outputs' losses."""
        return [self._model._pydt_loss_tracker, *self._model._pydt_loss_trackers.values()]


def _loss(self: Any) -> CompiledLoss:
    noticed.once("compiled_loss", "compiled_loss is an old name: write compute_loss(x, y, y_pred, sample_weight)")
    return CompiledLoss(self)


def _metrics(self: Any) -> Any:
    noticed.once("compiled_metrics", "compiled_metrics is an old name: write metrics, and update_state of each")
    return self._pydt_compiled_metrics


def install() -> None:
    """Gives models what `compile` made, under its old names."""
    patches.put(Model, "compiled_loss", property(_loss))
    patches.put(Model, "compiled_metrics", property(_metrics))
