# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Rows of runs, and what of them is counted as they come and leave: what `windows.rows` and `windows.tally` do, compiled.

It does what is usual: runs whose calls are columns as assembly makes them, with names that are known. Of what is not it asks
Python, or leaves it to Python altogether. So there is one judge of what is unusual.
"""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport Py_EQ, PyObject, PyObject_IsTrue, PyObject_RichCompareBool
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE

from libc.stdint cimport int64_t, uint32_t

FITS = 3
"""`otel_reliability.native` says what that is."""

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject *Py_TYPE(object of)
    bint PyLong_CheckExact(object of)
    bint PyUnicode_CheckExact(object of)
    object PyType_GenericAlloc(PyTypeObject *of, Py_ssize_t size)
    long long PyLong_AsLongLongAndOverflow(object of, int *overflow) except? -1
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    uint32_t PyUnicode_READ_CHAR(object text, Py_ssize_t at)
    object PyUnicode_FromKindAndData(int kind, const void *symbols, Py_ssize_t number)
    void PyTuple_SET_ITEM(object of, Py_ssize_t at, object value)
    void PyObject_GC_UnTrack(void *of)


cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030E0000
    #define FORGET_HASH(made) (((PyTupleObject *)(made))->ob_hash = -1)
    #else
    #define FORGET_HASH(made) ((void)0)
    #endif
    """
    void FORGET_HASH(object made)  # from 3.14 on a tuple remembers its hash: a new one says that it has none yet


cdef enum:
    MOST = 256  # steps of a path, and calls of a run
    SHARED = 0x10FFFF  # the symbol of all tools that have none of their own
    NO_COUNT = -1
    MODELS_FRONT = 5  # what packed model calls tell in front: their number, how long they took, and more
    RUN = 32  # fields of a run
    ROW = 25  # fields of a row
    ALIKE = 7  # fields in which rows that are alike are equal
    UNDISTURBED = 1
    PATH = 2
    CALLS = 4
    TASK = 8
    LIKENESS = 16
    OUTCOME = 32
    CONFIDENCE = 64
    PRESSURE = 128
    JUDGED = 256

cdef int64_t LATEST = <int64_t> 1 << 62  # no time that is meant is beyond
cdef int64_t LONGEST = <int64_t> 1 << 52  # nor takes longer: of so many, the sum fits

_RUN = (
    "run_id", "trace_id", "root_span_id", "key", "session_id", "task_id", "trial", "condition", "input_class", "branches",
    "nested", "implicit", "incomplete", "start_ns", "end_ns", "path", "tools", "tool_calls", "model_calls", "input_tokens",
    "output_tokens", "token_pressure", "arguments_known", "outcome", "outcome_source", "confidence", "cost", "violations",
    "evaluations", "weight", "span_count", "closed_by",
)
_ROW = (
    "end_ns", "run_id", "start_ns", "task", "input_class", "condition", "branches", "path", "tool_calls", "failed_calls",
    "retries", "pressure", "model_calls", "tokens", "latency_ns", "outcome", "confidence", "cost", "violations", "session_id",
    "signals", "effects", "weight", "arguments_known", "by_status",
)
_ALIKE = ("task", "input_class", "condition", "branches", "retries", "weight", "arguments_known")

cdef Py_ssize_t[ALIKE] _alike
for _at, _name in enumerate(_ALIKE):
    _alike[_at] = _ROW.index(_name)


cdef inline object _of(object fields, Py_ssize_t at):
    return <object> PyTuple_GET_ITEM(fields, at)


cdef inline void _put(object made, Py_ssize_t at, object value):
    Py_INCREF(value)
    PyTuple_SET_ITEM(made, at, value)


cdef inline bint _is(object one, object kind):
    return <PyObject *> Py_TYPE(one) == <PyObject *> kind


def _checked(kind, fields):
    """The type of a named tuple of these fields."""
    if not issubclass(kind, tuple) or kind._fields != fields:
        raise ValueError("runs or rows have other fields than this module knows")
    return kind


# --- Columns of calls -------------------------------------------------------------------------------------------------


cdef inline Py_ssize_t _length(object column) except -2:
    """How many values a column has whose values are never shared; `NO_COUNT` where it is none that is known."""
    return PyTuple_GET_SIZE(column) if PyTuple_CheckExact(column) else NO_COUNT


cdef inline bint _time(object column, Py_ssize_t at, int64_t *found) except -1:
    """Whether a value of such a column is a time that is meant."""
    cdef int overflow = 0
    cdef object value = _of(column, at)
    if not PyLong_CheckExact(value):
        return False
    found[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return not overflow and 0 <= found[0] < LATEST


cdef bint _took(object begun, object ended, Py_ssize_t number, int64_t *found) except -1:
    """Whether it can be told here how long all calls together took."""
    cdef Py_ssize_t at
    cdef int64_t begin, end, all = 0
    for at in range(number):
        if not _time(begun, at, &begin) or not _time(ended, at, &end) or not 0 <= end - begin < LONGEST:
            return False
        all += end - begin
    found[0] = all
    return True


cdef Py_ssize_t _how_many(object column, Py_ssize_t number, bint wanted) except -2:
    """How often True (or False) stands in a column, perhaps one value for all; `NO_COUNT` where there is anything else."""
    cdef Py_ssize_t at, found = 0
    cdef object one
    if column is True:
        return number if wanted else 0
    if column is False:
        return 0 if wanted else number
    if not PyTuple_CheckExact(column) or PyTuple_GET_SIZE(column) != number:
        return NO_COUNT
    for at in range(number):
        one = _of(column, at)
        if one is True:
            found += wanted
        elif one is False:
            found += not wanted
        else:
            return NO_COUNT
    return found


# --- Rows -------------------------------------------------------------------------------------------------------------


cdef object _code(object names, dict codes):
    """The code of a path whose names all have a character of their own; None of any other."""
    cdef uint32_t[MOST] symbols
    cdef Py_ssize_t at, number
    cdef PyObject *code
    cdef object name
    if not PyTuple_CheckExact(names) or PyTuple_GET_SIZE(names) > MOST:
        return None
    number = PyTuple_GET_SIZE(names)
    for at in range(number):
        name = _of(names, at)
        if not PyUnicode_CheckExact(name):
            return None
        code = PyDict_GetItemWithError(codes, name)
        if code is NULL or not PyUnicode_CheckExact(<object> code) or PyUnicode_GET_LENGTH(<object> code) != 1:
            return None
        symbols[at] = PyUnicode_READ_CHAR(<object> code, 0)
        if symbols[at] == SHARED:
            return None
    return PyUnicode_FromKindAndData(4, symbols, number)


@cython.final
cdef class Rows:
    """Makes rows of runs.

    `calls` and `models` are the kinds of columns of tool calls and model calls, each with the places of the columns that are
    looked at: the name, whether it succeeded, was a retry, was a repeat; the start and the end. `none` is what a run has that
    retried nothing. `retries_of` and `effects_of` are asked where there may be some.
    """

    cdef object run, row, calls, models, none, by_status, retries_of, effects_of
    cdef Py_ssize_t name, ok, retry, repeat, began, ended

    def __cinit__(self, run, row, calls, models, none, by_status, retries_of, effects_of):
        self.run, self.row = _checked(run, _RUN), _checked(row, _ROW)
        self.calls, (self.name, self.ok, self.retry, self.repeat) = calls
        self.models, (self.began, self.ended) = models
        if min(self.name, self.ok, self.retry, self.repeat, self.began, self.ended) < 0:
            raise ValueError("a column has a place from 0 on")
        self.none, self.by_status, self.retries_of, self.effects_of = none, by_status, retries_of, effects_of

    def of(self, run, paths, rules):
        """The row of a run, its path held in `paths`. None where it must be made in Python; then no path is held."""
        cdef object calls, models, columns, taken, task, tokens, used, wrote, made, path = None
        cdef object number = None, failed = None, retries = None, latency = None, effects = None, by_status
        cdef Py_ssize_t called, asked
        cdef int64_t took = 0
        if not _is(run, self.run) or PyTuple_GET_SIZE(run) != RUN:
            return None
        taken = _of(run, 28)
        if not PyTuple_CheckExact(taken) or PyTuple_GET_SIZE(taken):
            return None
        calls, models, task = _of(run, 17), _of(run, 18), _of(run, 5)
        taken = None if _of(run, 12) else _of(run, 15)
        if not _is(models, self.models) or (calls is not None and not _is(calls, self.calls)):
            return None
        if models.packed is None:
            columns = models.columns
            if not PyTuple_CheckExact(columns) or PyTuple_GET_SIZE(columns) <= max(self.began, self.ended):
                return None
            asked = _length(_of(columns, self.began))
            if asked < 0 or asked > MOST or _length(_of(columns, self.ended)) != asked:
                return None
            if not _took(_of(columns, self.began), _of(columns, self.ended), asked, &took):
                return None
        else:
            columns = models.front
            if not PyTuple_CheckExact(columns) or PyTuple_GET_SIZE(columns) != MODELS_FRONT:
                return None
            asked, took = _of(columns, 0), _of(columns, 1)
            if asked <= 0 or took < 0:
                return None
        if asked:
            latency = took // asked
        if calls is not None:
            columns = calls.columns if calls.packed is None else calls.front
            if not PyTuple_CheckExact(columns) or PyTuple_GET_SIZE(columns) <= max(self.name, self.ok, self.retry, self.repeat):
                return None
            if not PyTuple_CheckExact(_of(columns, self.name)):
                return None
            number = called = PyTuple_GET_SIZE(_of(columns, self.name))
            failed = _how_many(_of(columns, self.ok), called, False)
            if failed == NO_COUNT:
                return None
            retries = self.none
            if _how_many(_of(columns, self.retry), called, True) or _how_many(_of(columns, self.repeat), called, True):
                retries = self.retries_of(calls, models)
            if task is not None and taken is not None:
                effects = self.effects_of(calls, rules)
        used, wrote = _of(run, 19), _of(run, 20)
        if used is None:
            tokens = wrote
        else:
            tokens = used if wrote is None else used + wrote
        by_status = True if PyObject_RichCompareBool(_of(run, 24), self.by_status, Py_EQ) else False

        made = PyType_GenericAlloc(<PyTypeObject *> <PyObject *> self.row, ROW)
        FORGET_HASH(made)
        PyObject_GC_UnTrack(<void *> <PyObject *> made)  # nothing that it will hold can ever lead back to it
        if taken is not None:
            path = self.path_of(taken, paths)  # last of all that can fail: a path is held for a row that there is
        _put(made, 0, _of(run, 14))
        _put(made, 1, _of(run, 0))
        _put(made, 2, _of(run, 13))
        _put(made, 3, task)
        _put(made, 4, _of(run, 8))
        _put(made, 5, _of(run, 7))
        _put(made, 6, _of(run, 9))
        _put(made, 7, path)
        _put(made, 8, number)
        _put(made, 9, failed)
        _put(made, 10, retries)
        _put(made, 11, _of(run, 21))
        _put(made, 12, asked)
        _put(made, 13, tokens)
        _put(made, 14, latency)
        _put(made, 15, _of(run, 23))
        _put(made, 16, _of(run, 25))
        _put(made, 17, _of(run, 26))
        _put(made, 18, _of(run, 27))
        _put(made, 19, _of(run, 4))
        _put(made, 20, ())
        _put(made, 21, effects)
        _put(made, 22, _of(run, 29))
        _put(made, 23, _of(run, 22))
        _put(made, 24, by_status)
        return made

    cdef object path_of(self, object names, object paths):
        """The path of these names, held once more."""
        cdef object code = _code(names, paths.codes), path
        cdef dict held
        cdef PyObject *known
        if code is None:
            return paths.intern(names)
        held = paths.paths
        known = PyDict_GetItemWithError(held, code)
        path = paths.begin(code, names) if known is NULL else <object> known
        path.held += 1
        return path


# --- What comes and leaves --------------------------------------------------------------------------------------------


@cython.final
cdef class Words:
    """What rows are looked at for: their type, the condition of an undisturbed run, and the outcomes that are known."""

    cdef object row, baseline, success, failure

    def __cinit__(self, row, baseline, success, failure):
        self.row, self.baseline, self.success, self.failure = _checked(row, _ROW), baseline, success, failure


@cython.final
cdef class Tally:
    """As `windows.tally.PlainTally`."""

    cdef Words words
    cdef dict _kinds
    cdef tuple last  # the kind of the row that came or left last, if any of it is counted,
    cdef dict paths  # and its paths
    cdef readonly Py_ssize_t number, runs, known, passed

    def __cinit__(self, Words words not None):
        self.words = words
        self._kinds = {}

    @property
    def kinds(self):
        return self._kinds

    def take(self, dict rest=None):
        """As there."""
        cdef dict kinds = self._kinds, left = {} if rest is None else rest
        self.number = sum([len(<dict?> paths) for paths in left.values()])
        self.last = self.paths = None
        self._kinds = left
        return kinds

    def note(self, row, int step):
        """As there."""
        cdef object path, outcome
        cdef Py_ssize_t number
        cdef int found = 0
        if not _is(row, self.words.row) or PyTuple_GET_SIZE(row) != ROW:
            raise TypeError("no row")
        outcome = _of(row, 15)
        if outcome is self.words.success or outcome is self.words.failure:
            found = OUTCOME
        if _of(row, 5) is self.words.baseline or PyObject_RichCompareBool(_of(row, 5), self.words.baseline, Py_EQ):
            found += UNDISTURBED
        path = _of(row, 7)
        if path is not None:
            found += PATH
        if _of(row, 10) is not None:
            found += CALLS
        if _of(row, 3) is not None:
            found += TASK + LIKENESS
        elif _of(row, 4) is not None or PyObject_IsTrue(_of(row, 6)):
            found += LIKENESS
        if _of(row, 16) is not None:
            found += CONFIDENCE
        if _of(row, 11) is not None:
            found += PRESSURE
        if _of(row, 18) is not None:
            found += JUDGED
        self.count(row, path, step)
        if found & UNDISTURBED:
            self.runs += step
            if found & OUTCOME:
                self.known += step
                if outcome is self.words.success:
                    self.passed += step
        return found

    cdef int count(self, object row, object path, int step) except -1:
        cdef dict paths
        cdef object before, after
        if self.last is None or not self.is_last(row):
            self.look_up(row)
        paths = self.paths
        before = paths.get(path)
        if before is None:
            paths[path] = step
            self.number += 1
            return 0
        after = before + step
        if after:
            paths[path] = after
            return 0
        del paths[path]
        self.number -= 1
        if not paths:
            del self._kinds[self.last]
            self.last = self.paths = None
        return 0

    cdef bint is_last(self, object row):
        """Whether the row has what the last one had, object by object: most have."""
        cdef Py_ssize_t at
        for at in range(ALIKE):
            if PyTuple_GET_ITEM(row, _alike[at]) != PyTuple_GET_ITEM(self.last, at):
                return False
        return True

    cdef int look_up(self, object row) except -1:
        cdef tuple kind = tuple([_of(row, _alike[at]) for at in range(ALIKE)])
        cdef dict kinds = self._kinds
        cdef dict paths = kinds.get(kind)
        if paths is None:
            paths = kinds[kind] = {}
        self.last, self.paths = kind, paths
        return 0
