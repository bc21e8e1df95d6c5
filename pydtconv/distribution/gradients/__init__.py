"""Sums of gradients over all processes, while backward runs.

reduction.py                 buckets of gradients, each reduced as soon as it is complete
window.py                    how many reductions are under way at a time
bucket_tuning.py             the size of buckets that is the fastest
all_reduce.py                all-reduce backends that send messages: MPI's own, and bfloat16
shared_memory_all_reduce.py  the backend of one host, in memory that all processes see (shared_memory.py)
backend_choice.py            which backend the gradients of a model take
"""
