# What `otel_reliability.model.packed` says, for the modules that write it and that read it.

import sys

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

if sys.byteorder != "little":
    raise ImportError("records lie in the memory of little-endian machines only as they are written: Python does it here")


cdef struct Head:
    uint32_t models
    uint32_t tools


cdef struct Record:
    uint64_t id
    uint64_t parent
    int64_t start
    int64_t end
    int64_t given  # input tokens
    int64_t output
    uint32_t text_at
    uint32_t text_size
    uint16_t told
    uint8_t marks
    uint8_t unused[5]


cdef enum:
    IS_TOOL = 1
    HAS_FAILED = 2
    HAS_PARENT = 4
    HAS_INPUT = 8
    HAS_OUTPUT = 16
    HAS_TEXT = 32
    MOST_TOLD = 65536
    RECENT = 16  # what was told last and is looked through
    TOLD_MODEL = 4  # fields of what is told of a model call
    TOLD_CALL = 6  # and of a tool call
    PACKED = 5
    ALIKE = 3

if sizeof(Head) != 8 or sizeof(Record) != 64 or sizeof(void *) != 8:
    raise ImportError("records lie otherwise in the memory of this machine: Python does it here")
