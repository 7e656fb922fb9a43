# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Rows of runs, and what of them is counted as they come and leave: what `windows.rows` and `windows.tally` do, compiled.

It does what is usual: runs whose calls are columns as assembly makes them, with names that are known. Of what is not it asks
Python, or leaves it to Python altogether. So there is one judge of what is unusual.
"""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport Py_EQ, Py_LT, PyObject, PyObject_IsTrue, PyObject_RichCompareBool
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE

from libc.stdint cimport int64_t, uint32_t

include "slots.pxi"
include "line.pxi"

FITS = 7
"""`otel_reliability.native` says what that is."""

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject *Py_TYPE(object of)
    bint PyFloat_CheckExact(object of)
    bint PyLong_CheckExact(object of)
    bint PyUnicode_CheckExact(object of)
    object PyType_GenericAlloc(PyTypeObject *of, Py_ssize_t size)
    long long PyLong_AsLongLongAndOverflow(object of, int *overflow) except? -1
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    int PyUnicode_KIND(object text)
    uint32_t PyUnicode_READ_CHAR(object text, Py_ssize_t at)
    object PyUnicode_FromKindAndData(int kind, const void *symbols, Py_ssize_t number)
    void PyTuple_SET_ITEM(object of, Py_ssize_t at, object value)
    void PyObject_GC_UnTrack(void *of)
    Py_ssize_t PyLong_AsSsize_t(object of) except? -1

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
    EVENT = 3  # of what befalls one
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

cdef double FINE = <double> (<int64_t> 1 << 60)  # the parts of 1 in which pressures are summed up
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
_EVENT = ("change", "run", "previous")
_ALIKE = ("task", "input_class", "condition", "branches", "retries", "weight", "arguments_known")

cdef object ALL = 1.0

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
        raise ValueError("runs, rows or events have other fields than this module knows")
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


cdef inline object _share_without(Py_ssize_t those, Py_ssize_t number):
    """The share of the others. Where there are none of those, which is nearly always, it is the same object for all."""
    return ALL if those == 0 else 1.0 - <double> those / number


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

    def trace(self, run, tuple derived):
        """What a run that nobody judged tells its session, with the names of what is told by its tool calls. None where it must
        be made in Python."""
        cdef Py_ssize_t number, failed, repeats
        if not self.faults(run, &number, &repeats, &failed):
            return None
        return (
            _of(run, 13), _of(run, 0), _of(run, 14),
            None, _share_without(repeats, number), _share_without(failed, number), None, derived,
        )

    cdef bint faults(self, object run, Py_ssize_t *number, Py_ssize_t *repeats, Py_ssize_t *failed) except -1:
        """How many tool calls a run has that nobody judged, and of these repeats and failed ones. False: that must be asked in
        Python, or it has none."""
        cdef object calls, columns
        if not _is(run, self.run) or PyTuple_GET_SIZE(run) != RUN:
            return False
        calls, columns = _of(run, 17), _of(run, 28)
        if not _is(calls, self.calls) or not PyTuple_CheckExact(columns) or PyTuple_GET_SIZE(columns):
            return False
        columns = calls.columns if calls.packed is None else calls.front
        if not PyTuple_CheckExact(columns) or PyTuple_GET_SIZE(columns) <= max(self.name, self.ok, self.repeat):
            return False
        if not PyTuple_CheckExact(_of(columns, self.name)):
            return False
        number[0] = PyTuple_GET_SIZE(_of(columns, self.name))
        repeats[0], failed[0] = _how_many(_of(columns, self.repeat), number[0], True), _how_many(_of(columns, self.ok), number[0], False)
        return number[0] > 0 and repeats[0] != NO_COUNT and failed[0] != NO_COUNT

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
        cdef dict paths, kinds
        cdef tuple last
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
            kinds, last = self._kinds, self.last  # whoever is let in by a comparison may put others there
            self.last = self.paths = None
            del kinds[last]
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


# --- Runs that come and settle ----------------------------------------------------------------------------------------


cdef inline PyObject **_place(object of, Py_ssize_t slot) noexcept:
    return <PyObject **> (<char *> <PyObject *> of + slot)


cdef inline object _get(object of, Py_ssize_t slot):
    if _place(of, slot)[0] is NULL:
        raise AttributeError("a slot is empty")
    return <object> _place(of, slot)[0]


cdef inline Py_ssize_t _number(object of, Py_ssize_t slot) except? -2:
    return PyLong_AsSsize_t(_get(of, slot))


cdef inline int _set(object of, Py_ssize_t slot, object value) except -1:
    cdef PyObject *before = _place(of, slot)[0]
    Py_INCREF(value)
    _place(of, slot)[0] = <PyObject *> value
    Py_XDECREF(before)  # last: whoever goes with it may look
    return 0


@cython.final
cdef class Usual:
    """What nearly every run does to its agent: it is the newest when it comes, and it settles as one of those that came first of
    those that have not. As `AgentState.close` and `AgentState.settle`, which are asked where anything is otherwise.

    It looks at the slots of the objects that Python works with, and changes them: nothing is kept here.
    """

    cdef object row_of, event, closed, settled, run, row, path, table
    cdef object agent, recent, window, kept, measures, pressure, fixed
    cdef Py_ssize_t most_untold
    cdef Py_ssize_t a_entering, a_paths, a_recent, a_reopenable, a_rules, a_seen, a_windows
    cdef Py_ssize_t r_ids, r_limit, r_loose, r_settled
    cdef Py_ssize_t w_forgotten, w_kept, w_measures, w_most, w_period, w_readings, w_reopenable, w_series, w_settled
    cdef Py_ssize_t w_start, w_unsettled
    cdef Py_ssize_t k_blocked, k_fresh, k_packed
    cdef Py_ssize_t m_made, m_tally, m_ways, one_by_one
    cdef Py_ssize_t p_code, p_held, t_forgotten, t_paths, s_runs, s_sum, f_units

    def __cinit__(
        self, row_of, event, closed, settled, run, row, path, table, agent, recent, window, kept, measures, ways, pressure,
        fixed, Py_ssize_t most_untold,
    ):
        self.event, self.closed, self.settled = _checked(event, _EVENT), closed, settled
        self.row_of, self.run, self.row = row_of, _checked(run, _RUN), _checked(row, _ROW)
        self.path, self.p_code, self.p_held = path, _slot(path, "code"), _slot(path, "held")
        self.table, self.t_paths, self.t_forgotten = table, _slot(table, "paths"), _slot(table, "_forgotten")
        self.pressure, self.s_runs, self.s_sum = pressure, _slot(pressure, "_runs"), _slot(pressure, "_sum")
        self.fixed, self.f_units = fixed, _slot(fixed, "units")
        self.agent, self.recent, self.window, self.kept, self.measures = agent, recent, window, kept, measures
        self.most_untold = most_untold
        self.a_entering, self.a_paths = _slot(agent, "_entering"), _slot(agent, "_paths")
        self.a_recent, self.a_reopenable = _slot(agent, "recent"), _slot(agent, "_reopenable")
        self.a_rules, self.a_seen, self.a_windows = _slot(agent, "_rules"), _slot(agent, "seen"), _slot(agent, "windows")
        self.r_ids, self.r_limit = _slot(recent, "_ids"), _slot(recent, "_limit")
        self.r_loose, self.r_settled = _slot(recent, "_loose"), _slot(recent, "_settled")
        self.w_forgotten, self.w_kept = _slot(window, "_forgotten"), _slot(window, "_kept")
        self.w_measures, self.w_most = _slot(window, "_measures"), _slot(window, "_most")
        self.w_period, self.w_readings = _slot(window, "_period_ns"), _slot(window, "_readings")
        self.w_reopenable, self.w_series = _slot(window, "_reopenable"), _slot(window, "_series")
        self.w_settled, self.w_start = _slot(window, "_settled_ns"), _slot(window, "_start")
        self.w_unsettled = _slot(window, "_unsettled")
        self.k_blocked, self.k_fresh, self.k_packed = _slot(kept, "_blocked"), _slot(kept, "fresh"), _slot(kept, "packed")
        self.m_made, self.m_tally, self.m_ways = _slot(measures, "_made"), _slot(measures, "tally"), _slot(measures, "_ways")
        self.one_by_one = _slot(ways, "one_by_one")

    # --- Many runs ----------------------------------------------------------------------------------------------------

    def apply(self, dict agents not None, seen, list events not None, Py_ssize_t at, now, int64_t latest, bint only_settled):
        """As `Fleet.apply` of these events from a place on: of runs that ended at `latest` or before, and closed or settled. Gives
        the place of the first that must be applied in Python.
        """
        while 0 <= at < len(events) and self.does(agents, seen, events[at], now, latest, only_settled):
            at += 1
        return at

    cdef bint does(self, dict agents, object seen, object event, object now, int64_t latest, bint only_settled) except -1:
        cdef object run, state
        cdef PyObject *found
        cdef int64_t end_ns
        if not _is(event, self.event) or PyTuple_GET_SIZE(event) != EVENT or _of(event, 2) is not None:
            return False
        run = _of(event, 1)
        if not _is(run, self.run) or PyTuple_GET_SIZE(run) != RUN:
            return False
        found = PyDict_GetItemWithError(agents, _of(run, 3))
        if found is NULL or not _is(<object> found, self.agent):
            return False
        state = <object> found
        if _of(event, 0) is self.settled:
            return self.settle(state, run)
        if only_settled or _of(event, 0) is not self.closed or not _time(run, 14, &end_ns) or end_ns > latest:
            return False
        if not self.close(state, run):
            return False
        if not PyObject_RichCompareBool(_get(state, self.a_seen), now, Py_EQ):
            seen[_of(run, 3)] = now
            _set(state, self.a_seen, now)
            seen.move_to_end(_of(run, 3))
        return True

    # --- Coming -------------------------------------------------------------------------------------------------------

    cpdef bint close(self, state, run) except -1:
        """A run was closed. False: nothing was done, it must be done in Python."""
        cdef object run_id, recent, row, window, refused = None
        cdef dict reopenable, windows
        cdef int64_t end_ns
        if not _is(state, self.agent) or not _is(run, self.run) or PyTuple_GET_SIZE(run) != RUN:
            return False
        run_id = _of(run, 0)
        if not PyUnicode_CheckExact(run_id) or _of(run, 5) is not None or not _time(run, 14, &end_ns):
            return False
        reopenable, windows, recent = _get(state, self.a_reopenable), _get(state, self.a_windows), _get(state, self.a_recent)
        if run_id in reopenable or not self.is_newest(recent, run_id, end_ns):
            return False
        for window in windows.values():
            if not _is(window, self.window) or not self.is_unknown(window, run_id):
                return False
        row = self.row_of(run, _get(state, self.a_paths), _get(state, self.a_rules))
        if row is None:
            return False
        _set(state, self.a_entering, run_id)
        reopenable[run_id] = row
        self.remember(recent, run_id, run)
        for name, window in windows.items():
            if self.is_last(window, reopenable, end_ns):
                self.append(window, row)
            elif not window.insert(row):
                refused = [name] if refused is None else [*refused, name]
        _set(state, self.a_entering, "")
        if refused is not None:
            state.refuse(row, refused)
        return True

    cdef bint is_newest(self, object recent, object run_id, int64_t end_ns) except -1:
        """Whether a run is not known to be one of the last runs, all of which may change, and ended after them."""
        cdef object ids, last
        cdef list loose
        cdef int64_t ended
        if not _is(recent, self.recent) or _get(recent, self.r_settled) is not None:
            return False
        ids, loose = _get(recent, self.r_ids), _get(recent, self.r_loose)
        if ids is None or not loose or run_id in <set?> ids:
            return False
        last = loose[len(loose) - 1]
        return _is(last, self.run) and PyTuple_GET_SIZE(last) == RUN and _time(last, 14, &ended) and ended < end_ns

    cdef int remember(self, object recent, object run_id, object run) except -1:
        """The same run as the last of them."""
        cdef list loose = _get(recent, self.r_loose)
        cdef set ids = _get(recent, self.r_ids)
        loose.append(run)
        ids.add(run_id)
        if len(loose) > _number(recent, self.r_limit):
            ids.discard(loose.pop(0).run_id)
        return 0

    cdef bint is_unknown(self, object window, object run_id) except -1:
        """Whether a window does not keep a settled run of that id."""
        cdef object kept = _get(window, self.w_kept), blocked
        if not _is(kept, self.kept) or _number(kept, self.k_packed):
            return window.find(run_id) is None
        blocked = _get(kept, self.k_blocked)
        return blocked is None or run_id not in <dict?> blocked

    cdef bint is_last(self, object window, dict reopenable, int64_t end_ns) except -1:
        """Whether all rows of a window may change, and the last of them ended before."""
        cdef object kept = _get(window, self.w_kept)
        cdef list fresh
        cdef int64_t ended
        if not _is(kept, self.kept) or _number(kept, self.k_packed) or _get(window, self.w_reopenable) is not reopenable:
            return False
        fresh = _get(kept, self.k_fresh)
        return len(fresh) > 0 and _time(self.row_at(fresh, len(fresh) - 1), 0, &ended) and ended < end_ns

    cdef int append(self, object window, object row) except -1:
        """As `Roster.insert` of such a row."""
        cdef list fresh = _get(_get(window, self.w_kept), self.k_fresh)
        cdef Py_ssize_t start, most = _number(window, self.w_most)
        cdef object period = _get(window, self.w_period), horizon
        cdef bint had_spares
        fresh.append(row)
        _set(window, self.w_unsettled, _number(window, self.w_unsettled) + 1)
        self.measure(window, row, 1)
        start = _number(window, self.w_start)
        had_spares = start > 0
        while len(fresh) - start > most:
            self.measure(window, self.row_at(fresh, start), -1)
            start += 1
            _set(window, self.w_start, start)
        if period is not None:
            horizon = _of(row, 0) - period
            while start < len(fresh) and _of(self.row_at(fresh, start), 0) <= horizon:
                self.measure(window, self.row_at(fresh, start), -1)
                start += 1
                _set(window, self.w_start, start)
        if start and not had_spares:
            window._forget_spent()
        return 0

    cdef int measure(self, object window, object row, int step) except -1:
        """A row enters (1) or leaves (-1): as `AgentWindow.add` and `evict`."""
        cdef object measures = _get(window, self.w_measures), tally, metric
        cdef int evidence
        if _get(window, self.w_readings):
            _set(window, self.w_readings, {})
        _set(window, self.w_series, None)
        tally = _get(measures, self.m_tally) if _is(measures, self.measures) else None
        if not _is(tally, Tally):
            measures.add(row) if step > 0 else measures.evict(row)
            return 0
        evidence = (<Tally> tally).note(row, step)
        if (<Tally> tally).number > self.most_untold:
            measures._make_room()
        for at in _get(_get(measures, self.m_ways), self.one_by_one)[evidence]:
            metric = (<dict?> _get(measures, self.m_made)).get(at)
            if _is(metric, self.pressure) and self.press(metric, row, step):
                continue
            if step > 0:
                (measures._make(at) if metric is None else metric).add(row)
            elif metric is not None:
                metric.evict(row)
        return 0

    cdef bint press(self, object metric, object row, int step) except -1:
        """As `TokenBudgetPressure.add` and `evict`, of a row that it is told of. False: it must be told."""
        cdef object pressure = _of(row, 11), sum = _get(metric, self.s_sum), units
        if not PyFloat_CheckExact(pressure) or not 0.0 <= <double> pressure <= 1.0 or not _is(sum, self.fixed):
            return False
        units = <int64_t> (<double> pressure * FINE)
        units = _get(sum, self.f_units) + units if step > 0 else _get(sum, self.f_units) - units
        _set(metric, self.s_runs, _get(metric, self.s_runs) + step)
        _set(sum, self.f_units, units)
        return True

    # --- Settling -----------------------------------------------------------------------------------------------------

    cpdef bint settle(self, state, run) except -1:
        """A run settles. False: nothing was done, it must be done in Python."""
        cdef object run_id, recent, ids, row, window
        cdef dict reopenable, windows
        if not _is(state, self.agent) or not _is(run, self.run) or PyTuple_GET_SIZE(run) != RUN:
            return False
        run_id = _of(run, 0)
        if not PyUnicode_CheckExact(run_id):
            return False
        reopenable, windows, recent = _get(state, self.a_reopenable), _get(state, self.a_windows), _get(state, self.a_recent)
        if not _is(recent, self.recent):
            return False
        row = reopenable.pop(run_id, None)
        if row is None:
            return True
        ids = _get(recent, self.r_ids)
        if ids is not None and run_id in <set?> ids:
            recent.settle(run_id)
        if not reopenable:
            reopenable.clear()
        for window in windows.values():
            if not self.settle_spare(window, row, reopenable, state if len(windows) == 1 else None):
                window.settle(row)
        return True

    cdef bint settle_spare(self, object window, object row, dict reopenable, object state) except -1:
        """As `Roster.settle`, of a spare in a window whose rows may change, all of them. False: that must be asked."""
        cdef object kept, blocked, settled
        cdef list fresh
        cdef Py_ssize_t unsettled, start, at
        if not _is(window, self.window):
            return False
        kept = _get(window, self.w_kept)
        if not _is(kept, self.kept) or _number(kept, self.k_packed) or _get(window, self.w_reopenable) is not reopenable:
            return False
        fresh = _get(kept, self.k_fresh)
        unsettled, start = _number(window, self.w_unsettled), _number(window, self.w_start)
        at = len(fresh) - unsettled
        if not 0 <= at < len(fresh) or not start or self.row_at(fresh, at) is not row:
            return False
        _set(window, self.w_unsettled, unsettled - 1)
        settled = _get(window, self.w_settled)
        if settled is None or _of(row, 0) > settled:
            _set(window, self.w_settled, _of(row, 0))
        at -= self.forget_spent(window, kept, fresh, reopenable, state)
        if at < 0:
            return True
        if not _number(window, self.w_start):  # now what is settled can be packed
            kept.settled(at, row, 0, reopenable)
            return True
        blocked = _get(kept, self.k_blocked)
        if blocked is None:
            blocked = {}
            _set(kept, self.k_blocked, blocked)
        (<dict?> blocked)[_of(row, 1)] = row
        return True

    cdef Py_ssize_t forget_spent(self, object window, object kept, list fresh, dict reopenable, object state) except -1:
        """As `Roster._forget_spent`. `state`: whose only window it is."""
        cdef Py_ssize_t spent = self.spent(window, fresh, reopenable)
        cdef object row, blocked, table = None if state is None else _get(state, self.a_paths)
        cdef list gone
        if not spent:
            return 0
        _set(window, self.w_start, _number(window, self.w_start) - spent)
        _set(window, self.w_forgotten, _get(window, self.w_forgotten) + spent)
        gone = fresh[:spent]
        del fresh[:spent]
        blocked = _get(kept, self.k_blocked)
        if blocked:
            for row in gone:
                (<dict?> blocked).pop(_of(row, 1), None)
        for row in gone:
            if (
                state is None or _of(row, 1) in reopenable or _of(row, 3) is not None
                or not self.release(table, _of(row, 7))
            ):
                window._let_go(row)
        return spent

    cdef Py_ssize_t spent(self, object window, list fresh, dict reopenable) except -1:
        """As `Roster._spent`."""
        cdef Py_ssize_t unsettled = _number(window, self.w_unsettled), most = _number(window, self.w_most), at
        cdef Py_ssize_t start = _number(window, self.w_start), settled = len(fresh) - unsettled
        cdef object period = _get(window, self.w_period), latest = _get(window, self.w_settled), horizon = None, row
        if period is not None and latest is not None:
            horizon = latest - period
        if settled < most and horizon is None:
            return 0
        for at in range(start):
            row = self.row_at(fresh, at)
            if not unsettled or _of(row, 1) not in reopenable:
                settled -= 1
            if settled < most and (horizon is None or _of(row, 0) > horizon):
                return at
        return start

    # --- Rows and paths -----------------------------------------------------------------------------------------------

    cdef object row_at(self, list fresh, Py_ssize_t at):
        """A row, if there is one: whoever was asked meanwhile may have changed what is there."""
        if not 0 <= at < len(fresh) or not _is(fresh[at], self.row) or PyTuple_GET_SIZE(fresh[at]) != ROW:
            raise TypeError("no row")
        return fresh[at]

    cdef bint release(self, object table, object path) except -1:
        """As `PathTable.release`. False: that must be asked."""
        cdef object code
        cdef Py_ssize_t held
        if path is None:
            return True
        if not _is(path, self.path) or not _is(table, self.table):
            return False
        held, code = _number(path, self.p_held), _get(path, self.p_code)
        if held == 1:
            if not PyUnicode_CheckExact(code) or PyUnicode_KIND(code) == 4:  # where tools may share a character
                return False
            del (<dict?> _get(table, self.t_paths))[code]
            _set(table, self.t_forgotten, _get(table, self.t_forgotten) + 1)
        _set(path, self.p_held, held - 1)
        return True


include "shelf.pxi"
