"""Sums of gradients over all processes, while backward runs.

gradient_step.py             a step: sums, then the update; shards.py: where each process has a part of the state;
                             column_step.py: where each has some columns of dense layers
reduction.py                 buckets of gradients (buckets.py), each reduced as soon as it is complete
averages.py                  means of moving statistics
window.py                    how many reductions are under way at a time
bucket_tuning.py             the size of buckets that is the fastest
all_reduce.py                all-reduce backends that send messages: MPI's own, and bfloat16
shared_memory_all_reduce.py  the backend of one host, in memory that all processes see (shared_memory.py)
two_level_all_reduce.py      the backend of several hosts: in memory within each, by messages between (two_levels.py)
host_state.py                one copy of weights and optimizer slots for all processes of a host
staged_sums.py               sums of gradients that a host's processes apply a part of each, a few at a time
reduced_updates.py           the optimizer of a plan that applies gradients, behind such sums
backend_choice.py            which backend the gradients of a model take
"""
