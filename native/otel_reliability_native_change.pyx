# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The bet on one value of a signal: what `change.growth` does, compiled, once as many values are kept as ever are.

Everything else it leaves to Python: fewer values, values that begin or cease to be all the same, and whatever is no number.
Numbers are calculated in the same order as there, and without fused operations, so that they are the same.
"""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from libc.stdint cimport uint64_t
from libc.string cimport memmove

from hashlib import blake2b

FITS = 7
"""`otel_reliability.native` says what that is."""

cdef enum:
    STRENGTHS = 5
    DIGEST = 8
    UNUSED_BITS = 64 - 53

cdef double NOTHING_DONE = -1.0
cdef double STEP = 2.0 ** -53
cdef dict SIZE = {"digest_size": DIGEST}


cdef Py_ssize_t _left(const float *ordered, Py_ssize_t low, Py_ssize_t high, float value) noexcept nogil:
    """The first place at which a value is not below this one."""
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef Py_ssize_t _right(const float *ordered, Py_ssize_t low, Py_ssize_t high, float value) noexcept nogil:
    """The first place at which a value is above this one."""
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if value < ordered[middle]:
            high = middle
        else:
            low = middle + 1
    return low


cdef double _ranked(float *latest, float *ordered, Py_ssize_t n, float value, double u) noexcept nogil:
    """The rank of a value among n others; it takes the place of the oldest."""
    cdef Py_ssize_t low = _left(ordered, 0, n, value)
    cdef Py_ssize_t high = _right(ordered, low, n, value)
    cdef Py_ssize_t equal = high - low, gone
    cdef float oldest = latest[0]
    if equal >= n - 1:
        return NOTHING_DONE
    if oldest != value:
        gone = _left(ordered, 0, n, oldest)
        if gone >= n or ordered[gone] != oldest:
            return NOTHING_DONE
        if gone < high:
            memmove(ordered + gone, ordered + gone + 1, (high - 1 - gone) * sizeof(float))
            ordered[high - 1] = value
        else:
            memmove(ordered + high + 1, ordered + high, (gone - high) * sizeof(float))
            ordered[high] = value
    memmove(latest, latest + 1, (n - 1) * sizeof(float))
    latest[n - 1] = value
    return (<double>(n - high) + u * <double>(equal + 1)) / <double>(n + 1)


cdef bint _are_singles(Py_buffer *buffer, Py_ssize_t n) noexcept:
    """Whether a buffer holds so many numbers of single precision."""
    return (
        buffer.format != NULL and buffer.format[0] == c"f" and buffer.format[1] == 0
        and buffer.itemsize == sizeof(float) and buffer.len == n * <Py_ssize_t>sizeof(float)
    )


cdef double _joined(object latest, object ordered, Py_ssize_t n, float value, double u) except -2.0:
    """The same of the arrays that hold them, where they are as many."""
    cdef Py_buffer one, other
    cdef double p = NOTHING_DONE
    PyObject_GetBuffer(latest, &one, PyBUF_WRITABLE | PyBUF_FORMAT)
    try:
        PyObject_GetBuffer(ordered, &other, PyBUF_WRITABLE | PyBUF_FORMAT)
        if _are_singles(&one, n) and _are_singles(&other, n):
            p = _ranked(<float *>one.buf, <float *>other.buf, n, value, u)
        PyBuffer_Release(&other)
    finally:
        PyBuffer_Release(&one)
    return p


cdef double _spread(bytes text) except -2.0:
    """The first 53 bits of a text's hash, as a number in [0, 1)."""
    cdef bytes digest = blake2b(text, **SIZE).digest()
    cdef const unsigned char *read = digest
    cdef uint64_t bits = 0
    cdef int at
    for at in range(DIGEST):
        bits = bits << 8 | read[at]
    return <double>(bits >> UNUSED_BITS) * STEP


cdef class Growth:
    """`plain` does the same in Python. `window`: how many values are kept. The others are the constants of the jumper."""

    cdef object _plain
    cdef Py_ssize_t _window
    cdef double _kept, _shared, _weak, _strong

    def __cinit__(self, object plain, Py_ssize_t window, double kept, double shared, double weak, double strong):
        if window < 2:
            raise ValueError("a rank is one among some")
        self._plain, self._window = plain, window
        self._kept, self._shared, self._weak, self._strong = kept, shared, weak, strong

    def __call__(self, object ranks, object jumper, object value, bytes text not None):
        """The growth of the money, None where a value has no rank."""
        cdef double p, weak, strong, growth, a, b, c, d, e
        cdef float single
        cdef object latest = ranks._latest, ordered = ranks._sorted, weights = jumper.weights
        if len(latest) != self._window or not (PyFloat_CheckExact(value) or PyLong_CheckExact(value)):
            return self._plain(ranks, jumper, value, text)
        if latest is ordered:  # all are the same: one more goes, one more comes
            return None if ranks.only == value else self._plain(ranks, jumper, value, text)
        if type(weights) is not tuple or len(<tuple>weights) != STRENGTHS:
            return self._plain(ranks, jumper, value, text)
        a, b, c, d, e = <tuple>weights
        single = <float><double>value
        if single != single:
            return self._plain(ranks, jumper, value, text)
        p = _joined(latest, ordered, self._window, single, _spread(text))
        if p == NOTHING_DONE:
            return self._plain(ranks, jumper, value, text)
        weak = self._weak * (p - 0.5)
        strong = self._strong * (p - 0.5)
        a = (self._kept * a + self._shared) * (1 - strong)
        b = (self._kept * b + self._shared) * (1 - weak)
        c = self._kept * c + self._shared
        d = (self._kept * d + self._shared) * (1 + weak)
        e = (self._kept * e + self._shared) * (1 + strong)
        growth = a + b + c + d + e
        jumper.weights = (a / growth, b / growth, c / growth, d / growth, e / growth)
        return growth
