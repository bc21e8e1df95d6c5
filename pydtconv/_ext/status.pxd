"""The one check of what C functions return."""


cdef inline int check(int status) except -1 nogil:
    """Raises for a dtconv_status that is not DTCONV_OK."""
    if status == 0:
        return 0
    with gil:
        if status == 1:
            raise NotImplementedError("the C kernel does not support this problem")
        if status == 2:
            raise ValueError("the workspace is smaller than the C kernel needs")
        if status == 4:
            raise RuntimeError("no micro-kernel could be chosen (pydtconv.microkernels.select says why)")
        raise ValueError("the C kernel got sizes or strides that contradict each other")
