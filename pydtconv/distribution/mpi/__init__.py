"""MPI among the processes of a launcher.

launch.py        which processes were started, and on which hosts
channels.py      the communicators of a process
communicator.py  collective operations that never wait without looking around
watch.py         ends everything when another process does not answer
clocks.py        how far the clocks of processes are apart
progress.py      a thread that lets messages go on while this process computes
failure.py       an error in one process ends all; departures.py says why one has left
files.py         which of the processes writes a file
"""
