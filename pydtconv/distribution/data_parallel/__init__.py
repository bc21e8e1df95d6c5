"""Data parallelism: every process has the whole model, and computes on a share of every batch.

distribution.py   `DataParallel`, and which distribution is active
worker.py         the strategy of training in one of the processes; member.py: what it shares with the others
joint_results.py  losses, metrics and predictions of all; replication.py: what all begin with
agreement.py      whether all are about to train the same model on the same data
synchronizer.py   statistics of batch normalization over all samples
metric_totals.py  metrics over all samples
shared_step.py    a step that a user has written
"""

from pydtconv.distribution.data_parallel.distribution import DataParallel, distribution, initialize, set_distribution

__all__ = ["DataParallel", "distribution", "initialize", "set_distribution"]
