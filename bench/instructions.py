"""Counts the instructions a process executes, which other programs on the machine cannot blur.

Times on shared cores vary by half from run to run; this varies by one in a hundred, so that
it shows what a change of a few per cent is worth. Linux only: `perf_event_open(2)`, user space of
one process and the threads it starts later, no kernel. Instructions are not time: waiting
and cache misses do not show.
"""

import ctypes
import os
import struct

_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}  # the system call's number
_SIZE = 128  # of struct perf_event_attr, as far as it is used
_FLAGS_AT = 40
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_HARDWARE, _INSTRUCTIONS = 0, 1


class InstructionCounter:
    """Counts for this process, or for the one with this id.

    Raises OSError where the kernel or the machine does not allow or cannot count.
    """

    def __init__(self, pid: int = 0) -> None:
        attributes = bytearray(_SIZE)
        struct.pack_into("IIQ", attributes, 0, _HARDWARE, _SIZE, _INSTRUCTIONS)
        flags = _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
        struct.pack_into("Q", attributes, _FLAGS_AT, flags)
        number = _PERF_EVENT_OPEN.get(os.uname().machine)
        if number is None:
            raise OSError("instructions are counted on x86_64 and aarch64 only")
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = (ctypes.c_char * _SIZE).from_buffer(attributes)
        self._descriptor = libc.syscall(number, buffer, pid, -1, -1, 0)
        if self._descriptor < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))

    def read(self) -> int:
        """Instructions so far."""
        return int(struct.unpack("Q", os.read(self._descriptor, 8))[0])
