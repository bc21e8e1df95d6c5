"""Errors of a disk."""

import errno

#: reasons that lie with the disk and may pass, not with the name of the file
DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE})
