"""Counts the instructions that a process executes, independent of other programs.

On shared cores, times vary by half from run to run. The number of instructions varies by 1 %, so
it shows changes of a few per cent. Linux only (`perf_event_open(2)`): counts user space of one
process and of threads that it starts later, without the kernel. Instructions are not time: waiting
and cache misses are not visible.
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
    """Counts the instructions of this process, or of the one with this id.

    Raises OSError if the kernel does not allow it or the machine cannot count.
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
        """The number of instructions so far."""
        return int(struct.unpack("Q", os.read(self._descriptor, 8))[0])
