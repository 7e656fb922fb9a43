# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Model and tool calls of a trace as rows, and rows as the calls of a run: what `assembly.rows` and `assembly.simple` do, compiled.

It does what is usual: spans that are like those before them, calls in the order of the clock. Whatever is not, it leaves where it
is, and says so: then Python does it. So there is one judge of what is unusual.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_Append, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyObject_RichCompareBool, Py_EQ
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject *Py_TYPE(object of)
    bint PyTuple_Check(object of)
    bint PyList_Check(object of)
    bint PyLong_Check(object of)
    object PyType_GenericAlloc(PyTypeObject *of, Py_ssize_t size)
    object PyTuple_New(Py_ssize_t size)
    long long PyLong_AsLongLongAndOverflow(object of, int *overflow) except? -1


cdef enum:
    FEW = 64
    SPAN = 18  # fields of a span, and where they are
    SPAN_ID = 1
    PARENT_ID = 2
    REMOTE = 3
    SPAN_KIND = 6
    KIND = 7
    SPAN_FACTS = 9
    SHARED = 10
    MODEL_FACTS = 10
    TOOL_FACTS = 2
    CALL = 6
    START = 2  # of a row, and so on
    END = 3
    FAILED = 4
    MODEL = 5
    ASKED_MODEL = 6
    INPUT = 7
    OUTPUT = 8
    MORE = 11
    MODEL_ROW = 12
    NAME = 5
    CALL_ID = 6
    ARGUMENTS = 7
    SOFTLY = 8
    RESULT = 9
    EFFECT = 10
    TOOL_ROW = 11


cdef inline bint _same(object one, object other) except -1:
    return one is other or PyObject_RichCompareBool(one, other, Py_EQ)


cdef inline object _at(object held, Py_ssize_t at):
    return <object>PyTuple_GET_ITEM(held, at)


cdef inline object _of(object rows, Py_ssize_t at):
    return <object>PyList_GET_ITEM(rows, at)


cdef class _Like:
    """What the rows of one kind are alike in."""

    cdef object rows, shared, remote, kind, parent

    def __cinit__(self, rows):
        self.rows = rows
        self.load()

    cdef int load(self) except -1:
        self.shared, self.remote = self.rows.shared, self.rows.remote
        self.kind, self.parent = self.rows.span_kind, self.rows.parent
        return 0

    cdef bint holds(self, object span) except -1:
        cdef Py_ssize_t at
        if self.shared is None:
            if not self.rows.begins(span):
                return False
            self.load()
        if _at(span, REMOTE) is not self.remote or not _same(_at(span, SPAN_KIND), self.kind):
            return False
        for at in range(SHARED, SPAN):
            if not _same(_at(span, at), _at(self.shared, at - SHARED)):
                return False
        return True

    cdef int begin_row(self, object span) except -1:
        """What every row begins with."""
        cdef object parent = _at(span, PARENT_ID)
        if parent is not self.parent:
            if not _same(parent, self.parent):
                self.parent = parent
                self.rows.parent = parent
            parent = self.parent
        PyList_Append(self.rows, _at(span, SPAN_ID))
        PyList_Append(self.rows, parent)
        PyList_Append(self.rows, _at(span, 4))
        PyList_Append(self.rows, _at(span, 5))
        PyList_Append(self.rows, _at(span, 8))
        return 0


cdef class Taker:
    """Takes spans into rows. It is told the kinds and the classes of facts that rows are made of."""

    cdef object model, tool, model_facts, tool_facts

    def __init__(self, model, tool, model_facts, tool_facts):
        self.model, self.tool = model, tool
        self.model_facts, self.tool_facts = model_facts, tool_facts

    def take(self, spans, Py_ssize_t at, models, tools, Py_ssize_t room):
        """As `rows.take_rows`."""
        cdef object span, kind, trace_id
        cdef _Like of_models = None, of_tools = None
        cdef Py_ssize_t begun = at, end
        if not PyList_Check(spans):
            return 0
        end = min(PyList_GET_SIZE(spans), at + room)
        if at >= end:
            return 0
        span = _of(spans, at)
        if not PyTuple_Check(span) or PyTuple_GET_SIZE(span) != SPAN:
            return 0
        trace_id = _at(span, 0)
        while at < end:
            span = _of(spans, at)
            if not PyTuple_Check(span) or PyTuple_GET_SIZE(span) != SPAN or not _same(_at(span, 0), trace_id):
                break
            kind = _at(span, KIND)
            if kind is self.model:
                of_models = _Like(models) if of_models is None else of_models
                if not of_models.holds(span) or not self.model_row(of_models, span):
                    break
            elif kind is self.tool:
                of_tools = _Like(tools) if of_tools is None else of_tools
                if not of_tools.holds(span) or not self.tool_row(of_tools, span):
                    break
            else:
                break
            at += 1
        return at - begun

    cdef bint model_row(self, _Like like, object span) except -1:
        cdef object facts = _at(span, SPAN_FACTS), tokens, more = None, rows = like.rows
        if <PyObject *>Py_TYPE(facts) != <PyObject *>self.model_facts or PyTuple_GET_SIZE(facts) != MODEL_FACTS:
            return False
        tokens = _at(facts, 2)
        if not PyTuple_Check(tokens) or PyTuple_GET_SIZE(tokens) != 2:
            return False
        if (
            _at(facts, 4) or _at(facts, 5) or _at(facts, 9) or _at(facts, 6) is not None or _at(facts, 7) is not None
        ):
            more = (_at(facts, 4), _at(facts, 5), _at(facts, 6), _at(facts, 7), _at(facts, 9))
        like.begin_row(span)
        PyList_Append(rows, _at(facts, 0))
        PyList_Append(rows, _at(facts, 1))
        PyList_Append(rows, _at(tokens, 0))
        PyList_Append(rows, _at(tokens, 1))
        PyList_Append(rows, _at(facts, 3))
        PyList_Append(rows, _at(facts, 8))
        PyList_Append(rows, more)
        return True

    cdef bint tool_row(self, _Like like, object span) except -1:
        cdef object facts = _at(span, SPAN_FACTS), calls, call, rows = like.rows
        cdef Py_ssize_t at
        if <PyObject *>Py_TYPE(facts) != <PyObject *>self.tool_facts or PyTuple_GET_SIZE(facts) != TOOL_FACTS:
            return False
        calls = _at(facts, 0)
        if _at(facts, 1) or not PyTuple_Check(calls) or PyTuple_GET_SIZE(calls) != 1:
            return False
        call = _at(calls, 0)
        if not PyTuple_Check(call) or PyTuple_GET_SIZE(call) != CALL or not _at(call, 0):
            return False
        like.begin_row(span)
        for at in range(CALL):
            PyList_Append(rows, _at(call, at))
        return True


# --- Ids --------------------------------------------------------------------------------------------------------------


cdef inline bint _put_id(object id, uint64_t *to) except -1:
    if not PyBytes_CheckExact(id) or PyBytes_GET_SIZE(id) != sizeof(uint64_t):
        return False
    memcpy(to, PyBytes_AS_STRING(id), sizeof(uint64_t))
    return True


cdef bint _put_ids(object models, object tools, object others, uint64_t *to) except -1:
    cdef Py_ssize_t at, number = 0
    for at in range(0, PyList_GET_SIZE(models), MODEL_ROW):
        if not _put_id(_of(models, at), to + number):
            return False
        number += 1
    for at in range(0, PyList_GET_SIZE(tools), TOOL_ROW):
        if not _put_id(_of(tools, at), to + number):
            return False
        number += 1
    for at in range(PyList_GET_SIZE(others)):
        if not _put_id(_at(_of(others, at), SPAN_ID), to + number):
            return False
        number += 1
    return True


cdef inline Py_ssize_t _number_of(object models, object tools, object others):
    return PyList_GET_SIZE(models) // MODEL_ROW + PyList_GET_SIZE(tools) // TOOL_ROW + PyList_GET_SIZE(others)


def packed(models, tools, others):
    """The ids of rows and other spans, one after the other; None where one is not of the usual length."""
    cdef bytes found = PyBytes_FromStringAndSize(NULL, _number_of(models, tools, others) * sizeof(uint64_t))
    return found if _put_ids(models, tools, others, <uint64_t *>PyBytes_AS_STRING(found)) else None


def are_distinct(models, tools, others):
    """Whether they surely differ: few, and of the usual length."""
    cdef uint64_t found[FEW]
    cdef Py_ssize_t at, other, number = _number_of(models, tools, others)
    if number > FEW or not _put_ids(models, tools, others, found):
        return False
    for at in range(1, number):
        for other in range(at):
            if found[at] == found[other]:
                return False
    return True


def hang_on(models, tools, parent):
    """Whether all rows have this parent."""
    cdef Py_ssize_t at
    for at in range(1, PyList_GET_SIZE(models), MODEL_ROW):
        if not _same(_of(models, at), parent):
            return False
    for at in range(1, PyList_GET_SIZE(tools), TOOL_ROW):
        if not _same(_of(tools, at), parent):
            return False
    return True


# --- Calls of a run ---------------------------------------------------------------------------------------------------


cdef inline int _put(object made, Py_ssize_t at, object value) except -1:
    Py_INCREF(value)
    PyTuple_SET_ITEM(made, at, value)
    return 0


cdef inline bint _number(object value, long long *found) except -1:
    cdef int overflow = 0
    if not PyLong_Check(value):
        return False
    found[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0


cdef class Caller:
    """Makes calls of rows."""

    cdef object model_call, tool_call

    def __init__(self, model_call, tool_call):
        self.model_call, self.tool_call = model_call, tool_call

    def models(self, rows, agent):
        """The model calls, the sums of their input and output, and the largest of both together; the first start and the last end.
        None where they are not all of one model, or not all known, or say more, or did not come in order.
        """
        cdef Py_ssize_t at, number = PyList_GET_SIZE(rows) // MODEL_ROW, base
        cdef long long begin, last = -1, end, latest = -1, used, wrote, most = -1, all_used = 0, all_wrote = 0
        cdef object name, asked, calls, call, ends = None
        if number == 0 or not _of(rows, MODEL):
            return None
        name, asked, calls = _of(rows, MODEL), _of(rows, ASKED_MODEL), PyTuple_New(number)
        for at in range(number):
            base = at * MODEL_ROW
            if (
                _of(rows, base + MORE) is not None
                or not _number(_of(rows, base + START), &begin) or begin <= last
                or not _number(_of(rows, base + END), &end)
                or not _number(_of(rows, base + INPUT), &used) or not _number(_of(rows, base + OUTPUT), &wrote)
                or not -(1 << 40) < used < (1 << 40) or not -(1 << 40) < wrote < (1 << 40)
                or not _same(_of(rows, base + MODEL), name) or not _same(_of(rows, base + ASKED_MODEL), asked)
            ):
                return None
            last = begin
            if ends is None or end > latest:
                latest, ends = end, _of(rows, base + END)
            all_used += used
            all_wrote += wrote
            if at == 0 or used + wrote > most:
                most = used + wrote
            call = PyType_GenericAlloc(<PyTypeObject *><PyObject *>self.model_call, 7)
            _put(call, 0, name)
            _put(call, 1, _of(rows, base + INPUT))
            _put(call, 2, _of(rows, base + OUTPUT))
            _put(call, 3, _of(rows, base + FAILED))
            _put(call, 4, agent)
            _put(call, 5, _of(rows, base + START))
            _put(call, 6, _of(rows, base + END))
            _put(calls, at, call)
        return calls, all_used, all_wrote, most, _of(rows, START), ends

    def tools(self, rows, agent, marks_of):
        """The tool calls, their names, whether all arguments are known, the first start and the last end. None where they are not
        each another call, one after the other, or where they repeat one another with known arguments.

        `marks_of` says what calls of these names, that failed or did not, are to one another.
        """
        cdef Py_ssize_t at, number = PyList_GET_SIZE(rows) // TOOL_ROW, base, known = 0
        cdef long long begin, last = -1, end, over = -1, latest = -1
        cdef object names = PyTuple_New(number), calls = PyTuple_New(number), call, marks = None, id, ends = None
        cdef set ids = set()
        if number == 0:
            return None
        for at in range(number):
            base = at * TOOL_ROW
            if (
                not _number(_of(rows, base + START), &begin) or begin <= last or begin < over
                or not _number(_of(rows, base + END), &end)
            ):
                return None
            last = begin
            over = end
            if ends is None or end > latest:
                latest, ends = end, _of(rows, base + END)
            id = _of(rows, base + CALL_ID)
            if id is not None:
                if id in ids:
                    return None
                ids.add(id)
            known += _of(rows, base + ARGUMENTS) is not None
            _put(names, at, _of(rows, base + NAME))
        if not self._all_new(rows, names, number, known):
            if known:
                return None
            marks = marks_of(names, tuple([_of(rows, at * TOOL_ROW + SOFTLY) for at in range(number)]))
        for at in range(number):
            base = at * TOOL_ROW
            call = PyType_GenericAlloc(<PyTypeObject *><PyObject *>self.tool_call, 11)
            _put(call, 0, _of(rows, base + NAME))
            _put(call, 1, not _of(rows, base + SOFTLY))
            _put(call, 2, False if marks is None else marks[0][at])
            _put(call, 3, False if marks is None else marks[1][at])
            _put(call, 4, 0 if marks is None else marks[2][at])
            _put(call, 5, agent)
            _put(call, 6, _of(rows, base + START))
            _put(call, 7, _of(rows, base + END))
            _put(call, 8, _of(rows, base + ARGUMENTS))
            _put(call, 9, _of(rows, base + RESULT))
            _put(call, 10, _of(rows, base + EFFECT))
            _put(calls, at, call)
        return calls, names, known == number, _of(rows, START), ends

    cdef bint _all_new(self, object rows, object names, Py_ssize_t number, Py_ssize_t known) except -1:
        """Whether no call can be another attempt at an earlier one."""
        cdef Py_ssize_t at
        if len(set(names)) == number:
            return True
        if known < number:
            return False
        return len({(_of(rows, at * TOOL_ROW + NAME), _of(rows, at * TOOL_ROW + ARGUMENTS)) for at in range(number)}) == number
