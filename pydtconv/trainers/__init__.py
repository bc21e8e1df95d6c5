"""Training: the `Trainer` that models inherit from.

trainer.py         fit, evaluate, predict: epochs, batches and their callbacks
batch_trainer.py   one step on one batch
compilation.py     what `compile` says: optimizer, losses and metrics (by output in targets.py and compiled_metrics.py)
step_functions.py  a model's steps as planned functions of a batch's arrays, one for each shape of batch
tracing.py         the graph of a step
data_adapters/     batches out of arrays, generators and data sets
"""

from pydtconv.trainers.trainer import Trainer

__all__ = ["Trainer"]
