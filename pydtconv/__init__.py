"""Training of convolutional networks on CPUs."""

from pydtconv import microkernels as microkernels  # puts the choice of a micro-kernel in place
