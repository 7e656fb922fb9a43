# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Model and tool calls of a trace as rows, at rest, and as the calls of a run: what `assembly.rows`, `assembly.resting` and
`assembly.simple` do, compiled.

It does what is usual: spans that are like those before them, calls in the order of the clock. Whatever is not, it leaves where it
is, and says so: then Python does it. So there is one judge of what is unusual.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Contains, PyDict_DelItem, PyDict_GetItemWithError, PyDict_SetItem
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_Append, PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE, PyList_GetSlice
from cpython.object cimport PyObject, PyObject_RichCompareBool, PyObject_SetItem, Py_EQ, Py_LT
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM

from libc.string cimport memcmp, memcpy, memset

include "packed.pxi"
include "slots.pxi"

FITS = 7
"""`otel_reliability.native` says what that is."""

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        Py_ssize_t tp_basicsize
    ctypedef struct PyTupleObject:
        PyObject *ob_item[1]
    ctypedef struct PyListObject:
        PyObject **ob_item
    PyTypeObject *Py_TYPE(object of)
    bint PyTuple_Check(object of)
    bint PyList_Check(object of)
    bint PyLong_Check(object of)
    object PyType_GenericAlloc(PyTypeObject *of, Py_ssize_t size)
    object PyTuple_New(Py_ssize_t size)
    long long PyLong_AsLongLongAndOverflow(object of, int *overflow) except? -1
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 greatest)
    void *PyUnicode_DATA(object of)
    bint PyUnicode_CheckExact(object of)
    bint PyLong_CheckExact(object of)
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
    const char *PyUnicode_AsUTF8AndSize(object of, Py_ssize_t *size) except NULL
    bint PyObject_IS_GC(object of)
    bint PyObject_GC_IsTracked(object of)
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


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define FETCH(at) __builtin_prefetch(at)
    #else
    #define FETCH(at) ((void)(at))
    #endif
    """
    void FETCH(const void *at) noexcept nogil  # a hint: whatever lies there, nothing is read


cdef enum:
    FEW = 128  # ids that are compared each with each
    MANY = 1024  # rows that are put in order
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
    ASKS = 9
    MODEL_TEXT = 10  # the id of its response
    MORE = 11
    MODEL_ROW = 12
    NAME = 5
    CALL_ID = 6
    ARGUMENTS = 7
    SOFTLY = 8
    RESULT = 9
    EFFECT = 10
    TOOL_ROW = 11
    RESOURCE = 11  # of an agent's span
    SESSION = 12
    NOTES = 13
    EVALUATIONS = 14
    THRESHOLD = 16
    EXTRA = 17
    KNOWN = 3  # what is known of a key
    INVOCATION_FACTS = 12  # of its facts
    WEAK = 1
    TOKENS = 4
    LIMIT_REACHED = 5
    EXPECTS_FINISH = 6
    EMITS_NO_TOOLS = 8
    HIDES_FAILURE = 9
    RUN = 32  # fields of a run
    KEY = 3  # where its key is, and the agent in that
    AGENT = 3
    MOST_JOINED = 512  # of what packed calls refer to, where they are joined to others
    TRACE_ID_BYTES = 16
    SPAN_ID_BYTES = 8
    NUMBER = 4  # where packed calls say how many they are
    MOST_SLOTS = 32
    EVENT = 3  # fields of an event
    SEEN_HERE = 1  # as `resting` says it
    SEEN_AWAITED = 2
    SEEN_DOUBTFUL = 4
    TOGETHER = 128  # bundles that are fetched at the same time
    LINE = 64  # bytes that a processor fetches at once
    POOL = 16384  # bytes that Python's allocator manages together, which it looks at the beginning of when an object is freed

cdef int64_t LATEST = <int64_t>1 << 62  # no time that is meant is beyond
cdef int64_t LONGEST = <int64_t>1 << 52  # nor takes longer: of so many, the sum fits
cdef int64_t SOME_TOKENS = <int64_t>1 << 40


cdef inline bint _same(object one, object other) except -1:
    return one is other or PyObject_RichCompareBool(one, other, Py_EQ)


cdef inline object _at(object held, Py_ssize_t at):
    return <object>PyTuple_GET_ITEM(held, at)


cdef inline object _of(object rows, Py_ssize_t at):
    """Whoever was asked something in between may have changed a list: so every look at one is checked."""
    if not 0 <= at < PyList_GET_SIZE(rows):
        raise IndexError("a list has become shorter")
    return <object>PyList_GET_ITEM(rows, at)


cdef inline bint _is_span(object value) noexcept:
    return PyTuple_Check(value) and PyTuple_GET_SIZE(value) == SPAN


cdef inline bint _are_rows(object rows, Py_ssize_t width) noexcept:
    """Whether it is a list of whole rows."""
    return PyList_Check(rows) and PyList_GET_SIZE(rows) % width == 0


cdef inline bint _are_held(object models, object tools, object others) noexcept:
    return _are_rows(models, MODEL_ROW) and _are_rows(tools, TOOL_ROW) and PyList_Check(others)


cdef class _Like:
    """What the rows of one kind are alike in."""

    cdef object rows, shared, remote, kind, parent

    def __cinit__(self, rows):
        self.rows = rows
        self.load()

    cdef int load(self) except -1:
        self.shared, self.remote = self.rows.shared, self.rows.remote
        self.kind, self.parent = self.rows.span_kind, self.rows.parent
        if self.shared is not None and not (PyTuple_Check(self.shared) and PyTuple_GET_SIZE(self.shared) == SPAN - SHARED):
            raise TypeError("rows are alike in other fields than this module knows")
        return 0

    cdef bint holds(self, object span) except -1:
        cdef Py_ssize_t at
        if self.shared is None:
            if not self.rows.begins(span):
                return False
            self.load()
            if self.shared is None:
                return False
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
        if not PyList_Check(spans) or not _are_rows(models, MODEL_ROW) or not _are_rows(tools, TOOL_ROW):
            return 0
        if not 0 <= at < PyList_GET_SIZE(spans) or room <= 0:
            return 0
        end = at + min(PyList_GET_SIZE(spans) - at, room)
        span = _of(spans, at)
        if not _is_span(span):
            return 0
        trace_id = _at(span, 0)
        while at < end:
            span = _of(spans, at)
            if not _is_span(span) or not _same(_at(span, 0), trace_id):
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
    """The lists are of whole rows (`_are_held`), and `to` has room for so many (`_number_of`)."""
    cdef Py_ssize_t at, number = 0
    cdef object span
    for at in range(0, PyList_GET_SIZE(models), MODEL_ROW):
        if not _put_id(_of(models, at), to + number):
            return False
        number += 1
    for at in range(0, PyList_GET_SIZE(tools), TOOL_ROW):
        if not _put_id(_of(tools, at), to + number):
            return False
        number += 1
    for at in range(PyList_GET_SIZE(others)):
        span = _of(others, at)
        if not _is_span(span) or not _put_id(_at(span, SPAN_ID), to + number):
            return False
        number += 1
    return True


cdef inline Py_ssize_t _number_of(object models, object tools, object others):
    return PyList_GET_SIZE(models) // MODEL_ROW + PyList_GET_SIZE(tools) // TOOL_ROW + PyList_GET_SIZE(others)


cpdef bint are_distinct(object models, object tools, object others) except -1:
    """Whether they surely differ: few, and of the usual length."""
    cdef uint64_t found[FEW]
    cdef Py_ssize_t at, other, number
    if not _are_held(models, tools, others):
        return False
    number = _number_of(models, tools, others)
    if number > FEW or not _put_ids(models, tools, others, found):
        return False
    for at in range(1, number):
        for other in range(at):
            if found[at] == found[other]:
                return False
    return True


cdef bint _have(object rows, Py_ssize_t width, PyObject **parent) except -1:
    """Whether all rows have this parent; the last that was equal, and looked at, is noted."""
    cdef Py_ssize_t at
    cdef object other
    for at in range(1, PyList_GET_SIZE(rows), width):
        other = _of(rows, at)
        if <PyObject *>other != parent[0]:
            if not _same(other, <object>parent[0]):
                return False
            parent[0] = <PyObject *>other
    return True


cpdef bint hang_on(object models, object tools, object parent) except -1:
    """Whether all rows have this parent."""
    cdef PyObject *known = <PyObject *>parent
    if not _are_rows(models, MODEL_ROW) or not _are_rows(tools, TOOL_ROW):
        return False
    return _have(models, MODEL_ROW, &known) and _have(tools, TOOL_ROW, &known)


# --- Order ------------------------------------------------------------------------------------------------------------


cdef struct Order:
    Py_ssize_t number
    Py_ssize_t at[MANY]  # where each row begins, in the order of the clock
    long long begins[MANY]
    long long ends[MANY]
    bint in_turn  # whether each began after the one before it had ended


cdef bint _is_before(object rows, Py_ssize_t one, long long begin, long long end, Order *order, Py_ssize_t other) except -1:
    if begin != order.begins[other]:
        return begin < order.begins[other]
    if end != order.ends[other]:
        return end < order.ends[other]
    return PyObject_RichCompareBool(_of(rows, one), _of(rows, order.at[other]), Py_LT)


cdef bint _put_in_order(object rows, Py_ssize_t width, Order *order) except -1:
    """Find the order of rows by (start, end, id). False: there are none, or too many, or their times are no usual numbers."""
    cdef Py_ssize_t at, place, number
    cdef long long begin, end
    if not _are_rows(rows, width):
        return False
    number = PyList_GET_SIZE(rows) // width
    if not 0 < number <= MANY:
        return False
    order.number, order.in_turn = number, True
    for at in range(number):
        if not _number(_of(rows, at * width + START), &begin) or not _number(_of(rows, at * width + END), &end):
            return False
        place = at
        while place and _is_before(rows, at * width, begin, end, order, place - 1):
            order.at[place] = order.at[place - 1]
            order.begins[place], order.ends[place] = order.begins[place - 1], order.ends[place - 1]
            place -= 1
        order.at[place], order.begins[place], order.ends[place] = at * width, begin, end
    for at in range(1, number):
        if order.begins[at] < order.ends[at - 1] or order.begins[at] == order.begins[at - 1]:
            order.in_turn = False
    return True


cdef object _last_end(object rows, Order *order):
    """The latest end."""
    cdef Py_ssize_t at, latest = 0
    for at in range(1, order.number):
        if order.ends[at] > order.ends[latest]:
            latest = at
    return _of(rows, order.at[latest] + END)


# --- Columns ----------------------------------------------------------------------------------------------------------


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


cdef object _rest(object made):
    """A tuple that is whole. If it holds plain values only it can be no garbage that has to be looked for."""
    cdef Py_ssize_t at
    cdef PyObject *value
    for at in range(PyTuple_GET_SIZE(made)):
        value = PyTuple_GET_ITEM(made, at)
        if PyObject_IS_GC(<object>value) and not (
            PyTuple_CheckExact(<object>value) and not PyObject_GC_IsTracked(<object>value)
        ):
            return made
    PyObject_GC_UnTrack(<void *><PyObject *>made)
    return made


cdef object _column(object rows, Py_ssize_t first, Order *order):
    """One value of each row."""
    cdef Py_ssize_t at
    cdef object made = PyTuple_New(order.number)
    for at in range(order.number):
        _put(made, at, _of(rows, order.at[at] + first))
    return _rest(made)


cdef object _shared(object rows, Py_ssize_t first, Order *order):
    """The same, or the one value that all rows have. There is a row."""
    cdef Py_ssize_t at
    cdef object value = _of(rows, order.at[0] + first)
    for at in range(1, order.number):
        if not _same(_of(rows, order.at[at] + first), value):
            return _column(rows, first, order)
    return value


cdef object _known(object rows, Py_ssize_t first, Order *order):
    """One value of each row, None where all are None."""
    cdef Py_ssize_t at
    for at in range(order.number):
        if _of(rows, order.at[at] + first) is not None:
            return _column(rows, first, order)
    return None


cdef tuple _kinds(model_calls, tool_calls):
    if any(not isinstance(kind, type) or kind.__itemsize__ for kind in (model_calls, tool_calls)):
        raise TypeError("calls are objects with columns")
    return model_calls, tool_calls


cdef object _packed(object kind, object front, object packed):
    """A sequence of this kind whose columns are packed. Nothing that it holds can ever lead back to it."""
    cdef object made = PyType_GenericAlloc(<PyTypeObject *><PyObject *>kind, 0)
    made.front, made.packed = front, packed
    PyObject_GC_UnTrack(<void *><PyObject *>made)
    return made


cdef object _held(object kind, object columns):
    """A sequence of this kind that holds these columns. Where they hold plain values only, so does it."""
    cdef object made = PyType_GenericAlloc(<PyTypeObject *><PyObject *>kind, 0)
    made._columns, made.front, made.packed = columns, (), None
    if not PyObject_GC_IsTracked(columns):
        PyObject_GC_UnTrack(<void *><PyObject *>made)
    return made


# --- Calls of a run ---------------------------------------------------------------------------------------------------


cdef class Caller:
    """Makes columns of calls of rows."""

    cdef object model_calls, tool_calls

    def __init__(self, model_calls, tool_calls):
        self.model_calls, self.tool_calls = _kinds(model_calls, tool_calls)

    cpdef tuple models(self, rows, agent):
        """The model calls, the sums of their input and output, and the largest of both together; the first start and the last end.
        None where they are not all of one model, or not all known, or say more.
        """
        cdef Py_ssize_t at, base
        cdef long long used, wrote, most = -1, all_used = 0, all_wrote = 0
        cdef object name, asked, columns
        cdef Order order
        if not _put_in_order(rows, MODEL_ROW, &order) or not _of(rows, MODEL):
            return None
        name, asked = _of(rows, MODEL), _of(rows, ASKED_MODEL)
        for at in range(order.number):
            base = order.at[at]
            if (
                _of(rows, base + MORE) is not None
                or not _number(_of(rows, base + INPUT), &used) or not _number(_of(rows, base + OUTPUT), &wrote)
                or not -(1 << 40) < used < (1 << 40) or not -(1 << 40) < wrote < (1 << 40)
                or not _same(_of(rows, base + MODEL), name) or not _same(_of(rows, base + ASKED_MODEL), asked)
            ):
                return None
            all_used += used
            all_wrote += wrote
            if at == 0 or used + wrote > most:
                most = used + wrote
        columns = (
            name, _shared(rows, INPUT, &order), _shared(rows, OUTPUT, &order), _shared(rows, FAILED, &order), agent,
            _column(rows, START, &order), _column(rows, END, &order),
        )
        return (
            _held(self.model_calls, _rest(columns)), all_used, all_wrote, most,
            _of(rows, order.at[0] + START), _last_end(rows, &order),
        )

    cpdef tuple tools(self, rows, agent, marks_of, models, bint canonical):
        """The tool calls, the path, whether all arguments are known, the first start and the last end. None where two have one id.

        `marks_of` says what calls are to one another, as columns: of these names, that failed or did not, with these arguments
        and results, None where none are known, from and to these times, None where calls came one after the other. `models` are the model calls
        between them, `canonical` is how calls at the same time stand in the path.
        """
        cdef Py_ssize_t at, known = 0
        cdef object names, columns, failed, starts, ends, id, retry = False, repeat = False, chain = 0
        cdef set ids = None
        cdef Order order
        if not _put_in_order(rows, TOOL_ROW, &order):
            return None
        for at in range(order.number):
            id = _of(rows, order.at[at] + CALL_ID)
            if id is not None:
                if ids is None:
                    ids = set()
                elif id in ids:
                    return None
                ids.add(id)
            known += _of(rows, order.at[at] + ARGUMENTS) is not None
        names, failed = _column(rows, NAME, &order), _shared(rows, SOFTLY, &order)
        starts, ends = _column(rows, START, &order), _column(rows, END, &order)
        if not _are_all_new(rows, names, known, &order):
            retry, repeat, chain = marks_of(
                names, _column(rows, SOFTLY, &order), _known(rows, ARGUMENTS, &order), _known(rows, RESULT, &order),
                None if order.in_turn else (starts, ends),
            )
        columns = (
            names, _turned(failed) if PyTuple_CheckExact(failed) else not failed, retry, repeat, chain, agent, starts, ends,
            _shared(rows, ARGUMENTS, &order), _shared(rows, RESULT, &order), _shared(rows, EFFECT, &order),
        )
        path = names if order.in_turn or not canonical else _path(names, models, &order)
        if path is None:
            return None
        return (
            _held(self.tool_calls, _rest(columns)), path, known == order.number,
            _of(rows, order.at[0] + START), _last_end(rows, &order),
        )


cdef bint _are_all_new(object rows, object names, Py_ssize_t known, Order *order) except -1:
    """Whether no call can be another attempt at an earlier one."""
    cdef Py_ssize_t at
    cdef set found
    if len(set(names)) == order.number:
        return True
    if known < order.number:
        return False
    found = set()
    for at in range(order.number):
        found.add((_of(rows, order.at[at] + NAME), _of(rows, order.at[at] + ARGUMENTS)))
    return len(found) == order.number


cdef object _path(object names, object models, Order *order):
    """The names of calls some of which ran at the same time: of those that were issued together names decide. As
    `calls.in_path_order`: a call joins those before it if it starts before the earliest of their ends, or with the last of them,
    and no model call began in between. None where a time is no usual number.
    """
    cdef Py_ssize_t at, model
    cdef long long earliest = 0, begin
    cdef bint joins
    cdef list group = [], path = []
    for at in range(order.number):
        joins = at > 0 and (order.begins[at] < earliest or order.begins[at] == order.begins[at - 1])
        for model in range(START, PyList_GET_SIZE(models) if joins else 0, MODEL_ROW):
            if not _number(_of(models, model), &begin):
                return None
            if order.begins[at - 1] < begin <= order.begins[at]:
                joins = False
        if joins:
            earliest = min(earliest, order.ends[at])
        else:
            path += sorted(group)
            group = []
            earliest = order.ends[at]
        group.append(_at(names, at))
    path += sorted(group)
    return _rest(tuple(path))


cdef object _turned(object failed):
    """Which calls succeeded, of which failed."""
    cdef Py_ssize_t at
    cdef object made = PyTuple_New(PyTuple_GET_SIZE(failed))
    for at in range(PyTuple_GET_SIZE(failed)):
        _put(made, at, not _at(failed, at))
    return _rest(made)


# --- Packed calls -----------------------------------------------------------------------------------------------------


cdef struct Calls:
    Py_ssize_t models, tools, number
    const Record *records
    const char *texts
    int64_t start, end  # of the first and of the last


cdef struct Models:
    int64_t used, wrote, most, largest, took
    bint asks
    PyObject *model
    PyObject *asked


cdef struct Tools:
    Py_ssize_t number, known
    Py_ssize_t order[FEW]
    bint in_turn  # whether each began after the one before it had ended


cdef inline bint _time(object value, int64_t *found) except -1:
    """Whether a value is a time that is meant."""
    cdef long long told
    if not PyLong_CheckExact(value) or not _number(value, &told) or not 0 <= told < LATEST:
        return False
    found[0] = told
    return True


cdef bint _are_calls(object packed, Calls *calls) except -1:
    """Whether these are a few calls with usual times, all of whose parts are there."""
    cdef Head head
    cdef Py_ssize_t at, size, told
    cdef const Record *record
    cdef object data
    if not PyTuple_CheckExact(packed) or PyTuple_GET_SIZE(packed) != PACKED:
        return False
    data = _at(packed, 0)
    if not PyBytes_CheckExact(data) or not PyTuple_CheckExact(_at(packed, 1)):
        return False
    for at in range(2, 4):
        if not PyTuple_CheckExact(_at(packed, at)) or PyTuple_GET_SIZE(_at(packed, at)) != ALIKE:
            return False
    size, told = PyBytes_GET_SIZE(data) - sizeof(Head), PyTuple_GET_SIZE(_at(packed, 1))
    if size < 0:
        return False
    memcpy(&head, PyBytes_AS_STRING(data), sizeof(Head))
    if <uint64_t>head.models + head.tools > FEW:
        return False
    calls.models, calls.tools = head.models, head.tools
    calls.number = calls.models + calls.tools
    if _at(packed, 4) != calls.number:
        return False
    size -= calls.number * sizeof(Record)
    if size < 0:
        return False
    calls.records = <const Record *>(PyBytes_AS_STRING(data) + sizeof(Head))
    calls.texts = <const char *>(calls.records + calls.number)
    calls.start, calls.end = LATEST, 0
    for at in range(calls.number):
        record = calls.records + at
        if record.told >= told or <uint64_t>record.text_at + record.text_size > <uint64_t>size:
            return False
        if not 0 <= record.start < LATEST or not 0 <= record.end < LATEST:
            return False
        calls.start = min(calls.start, record.start)
        calls.end = max(calls.end, record.end)
        calls.tools -= record.marks & IS_TOOL
    if calls.tools:
        return False
    calls.tools = calls.number - calls.models
    return True


cdef bint _are_apart(Calls *calls, object root) except -1:
    """Whether the calls surely differ from each other and from the root, whose id is of the usual length, and all hang on it."""
    cdef Py_ssize_t at, other
    cdef uint64_t top
    memcpy(&top, PyBytes_AS_STRING(root), sizeof(top))
    for at in range(calls.number):
        if not calls.records[at].marks & HAS_PARENT or calls.records[at].parent != top or calls.records[at].id == top:
            return False
        for other in range(at):
            if calls.records[other].id == calls.records[at].id:
                return False
    return True


cdef inline bint _comes_before(const Record *one, const Record *other) noexcept:
    if one.start != other.start:
        return one.start < other.start
    if one.end != other.end:
        return one.end < other.end
    return memcmp(&one.id, &other.id, sizeof(one.id)) < 0


cdef int _sort(Calls *calls, int kind, Py_ssize_t *order, Py_ssize_t *number) except -1:
    """The places of the calls of a kind in the order of the clock."""
    cdef Py_ssize_t at, place
    number[0] = 0
    for at in range(calls.number):
        if calls.records[at].marks & IS_TOOL != kind:
            continue
        place = number[0]
        while place and _comes_before(calls.records + at, calls.records + order[place - 1]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = at
        number[0] += 1
    return 0


cdef bint _sum_up(object told, Calls *calls, Models *models) except -1:
    """What model calls come to. False: they are not all of one model, or do not all tell their tokens, or say more."""
    cdef Py_ssize_t at
    cdef const Record *record
    cdef object what
    cdef int known = -1
    models.used = models.wrote = models.took = 0
    models.most = models.largest = -LATEST
    models.model = NULL
    for at in range(calls.number):
        record = calls.records + at
        if record.marks & IS_TOOL:
            continue
        if not record.marks & HAS_INPUT or not record.marks & HAS_OUTPUT or not 0 <= record.end - record.start < LONGEST:
            return False
        if not -SOME_TOKENS < record.given < SOME_TOKENS or not -SOME_TOKENS < record.output < SOME_TOKENS:
            return False
        models.used += record.given
        models.wrote += record.output
        models.took += record.end - record.start
        models.most = max(models.most, record.given + record.output)
        models.largest = max(models.largest, record.given)
        if record.told == known:
            continue
        known = record.told
        what = _at(told, known)
        if not PyTuple_Check(what) or PyTuple_GET_SIZE(what) != TOLD_MODEL or _at(what, 3) is not None:
            return False
        if models.model is NULL:
            models.model, models.asked = PyTuple_GET_ITEM(what, 0), PyTuple_GET_ITEM(what, 1)
            if not <object>models.model:
                return False
        elif not _same(_at(what, 0), <object>models.model) or not _same(_at(what, 1), <object>models.asked):
            return False
        if _at(what, 2):
            models.asks = True
    return True


cdef object _told_each(object told, Py_ssize_t at, Calls *calls, Tools *tools):
    """What is told of each tool call, in the order of the clock."""
    cdef Py_ssize_t place
    cdef object made = PyTuple_New(tools.number)
    for place in range(tools.number):
        _put(made, place, _at(_at(told, calls.records[tools.order[place]].told), at))
    return made


cdef object _times(Calls *calls, Tools *tools, bint ends):
    """When each tool call began, or ended."""
    cdef Py_ssize_t place
    cdef object made = PyTuple_New(tools.number)
    for place in range(tools.number):
        if ends:
            _put(made, place, calls.records[tools.order[place]].end)
        else:
            _put(made, place, calls.records[tools.order[place]].start)
    return made


cdef bint _are_first(object told, object names, Calls *calls, Tools *tools) except -1:
    """Whether no call can be another attempt at an earlier one."""
    cdef Py_ssize_t place
    cdef object what
    cdef set found
    if len(set(names)) == tools.number:
        return True
    if tools.known < tools.number:
        return False
    found = set()
    for place in range(tools.number):
        what = _at(told, calls.records[tools.order[place]].told)
        found.add((_at(what, 0), _at(what, 2)))
    return len(found) == tools.number


cdef object _path_of(object names, Calls *calls, Tools *tools):
    """The names of calls some of which ran at the same time: of those that were issued together names decide. As
    `calls.in_path_order`: a call joins those before it if it starts before the earliest of their ends, or with the last of them,
    and no model call began in between.
    """
    cdef Py_ssize_t at, model
    cdef int64_t earliest = 0
    cdef bint joins
    cdef const Record *record
    cdef const Record *before = NULL
    cdef list group = [], path = []
    for at in range(tools.number):
        record = calls.records + tools.order[at]
        joins = before is not NULL and (record.start < earliest or record.start == before.start)
        for model in range(calls.number if joins else 0):
            if not calls.records[model].marks & IS_TOOL and before.start < calls.records[model].start <= record.start:
                joins = False
        if joins:
            earliest = min(earliest, record.end)
        else:
            path += sorted(group)
            group = []
            earliest = record.end
        group.append(_at(names, at))
        before = record
    path += sorted(group)
    return _rest(tuple(path))


cdef object _as_one(object column):
    """The one value of a column where all are equal, else the column. There is a value."""
    cdef Py_ssize_t at
    for at in range(1, PyTuple_GET_SIZE(column)):
        if not _same(_at(column, at), _at(column, 0)):
            return _rest(column)
    return _at(column, 0)


cdef bint _are_told(object told, Calls *calls, Py_ssize_t *order, Py_ssize_t number, Py_ssize_t size) except -1:
    """Whether all that these calls refer to has as many parts."""
    cdef Py_ssize_t at
    cdef object what
    for at in range(number):
        what = _at(told, calls.records[order[at]].told)
        if not PyTuple_Check(what) or PyTuple_GET_SIZE(what) != size:
            return False
    return True


def models_in(packed, agent):
    """As `model.packed.models_in`; None where Python is to do it."""
    cdef Calls calls
    cdef Tools found
    cdef Py_ssize_t at, number
    cdef const Record *record
    cdef object told, what, names, inputs, outputs, failed, starts, ends
    if not _are_calls(packed, &calls) or not calls.models:
        return None
    told = _at(packed, 1)
    _sort(&calls, 0, found.order, &number)
    if not _are_told(told, &calls, found.order, number, TOLD_MODEL):
        return None
    names, inputs, outputs = PyTuple_New(number), PyTuple_New(number), PyTuple_New(number)
    failed, starts, ends = PyTuple_New(number), PyTuple_New(number), PyTuple_New(number)
    for at in range(number):
        record = calls.records + found.order[at]
        what = _at(told, record.told)
        _put(names, at, _at(what, 0) or _at(what, 1))
        _put(inputs, at, record.given if record.marks & HAS_INPUT else None)
        _put(outputs, at, record.output if record.marks & HAS_OUTPUT else None)
        _put(failed, at, True if record.marks & HAS_FAILED else False)
        _put(starts, at, record.start)
        _put(ends, at, record.end)
    return _rest((_as_one(names), _as_one(inputs), _as_one(outputs), _as_one(failed), agent, _rest(starts), _rest(ends)))


def tools_in(packed):
    """As `model.packed.tools_in`; None where Python is to do it."""
    cdef Calls calls
    cdef Tools found
    cdef object told
    if not _are_calls(packed, &calls) or not calls.tools:
        return None
    told = _at(packed, 1)
    _sort(&calls, IS_TOOL, found.order, &found.number)
    if not _are_told(told, &calls, found.order, found.number, TOLD_CALL):
        return None
    return (
        _rest(_times(&calls, &found, False)), _rest(_times(&calls, &found, True)),
        _as_one(_told_each(told, 2, &calls, &found)), _as_one(_told_each(told, 4, &calls, &found)),
        _as_one(_told_each(told, 5, &calls, &found)),
    )


cpdef ids_of(packed, others):
    """As `resting.ids_of`."""
    cdef Bare bare
    cdef Py_ssize_t at
    cdef object found, span
    cdef uint64_t *ids
    if not PyList_Check(others):
        raise TypeError("spans stand in a list")
    _lay_bare(packed, &bare)
    found = PyBytes_FromStringAndSize(NULL, (bare.number + PyList_GET_SIZE(others)) * sizeof(uint64_t))
    ids = <uint64_t *>PyBytes_AS_STRING(found)
    for at in range(bare.number):
        ids[at] = bare.records[at].id
    for at in range(PyList_GET_SIZE(others)):
        span = _of(others, at)
        if not _is_span(span) or not _put_id(_at(span, SPAN_ID), ids + bare.number + at):
            return None
    return found


def seek(packed, others, span_id):
    """As `resting.seek`."""
    cdef Bare bare
    cdef Py_ssize_t at, other, number, few
    cdef uint64_t sought = 0
    cdef uint64_t[FEW] found
    cdef int told = 0
    cdef bint is_usual = _put_id(span_id, &sought)
    cdef object span, id
    if not PyList_Check(others):
        raise TypeError("spans stand in a list")
    _lay_bare(packed, &bare)
    number = bare.number + PyList_GET_SIZE(others)
    few = number if is_usual and number <= FEW else 0
    for at in range(bare.number):
        if is_usual and bare.records[at].id == sought:
            told |= SEEN_HERE
        if is_usual and bare.records[at].marks & HAS_PARENT and bare.records[at].parent == sought:
            told |= SEEN_AWAITED
        if few:
            found[at] = bare.records[at].id
    for at in range(bare.number, number):
        span = _of(others, at - bare.number)
        if not _is_span(span):
            raise TypeError("no span")
        id = _at(span, SPAN_ID)
        if _same(id, span_id):
            told |= SEEN_HERE
        if _same(_at(span, PARENT_ID), span_id):
            told |= SEEN_AWAITED
        if few and not _put_id(id, &found[at]):
            few = 0
    for at in range(1, few):
        for other in range(at):
            if found[at] == found[other]:
                return told | SEEN_DOUBTFUL
    return told if few or not number and is_usual else told | _doubt(packed, others, span_id, number)


cdef int _doubt(object packed, object others, object span_id, Py_ssize_t number) except -1:
    """Of very many, or odd ones."""
    cdef object ids = ids_of(packed, others)
    if ids is None or not PyBytes_CheckExact(span_id) or PyBytes_GET_SIZE(span_id) != SPAN_ID_BYTES:
        return SEEN_DOUBTFUL
    return 0 if len({ids[at:at + SPAN_ID_BYTES] for at in range(0, number * SPAN_ID_BYTES, SPAN_ID_BYTES)}) == number else SEEN_DOUBTFUL


def lay_down(models, tools):
    """As `resting.lay_down`."""
    cdef Py_ssize_t at, number, size = 0, put = 0
    cdef object data
    cdef list told = []
    cdef Record *records
    cdef Head head
    if not _are_rows(models, MODEL_ROW) or not _are_rows(tools, TOOL_ROW):
        return None
    head.models, head.tools = <uint32_t>(PyList_GET_SIZE(models) // MODEL_ROW), <uint32_t>(PyList_GET_SIZE(tools) // TOOL_ROW)
    number = <Py_ssize_t>head.models + head.tools
    try:
        for at in range(MODEL_TEXT, PyList_GET_SIZE(models), MODEL_ROW):
            size += _size_of(_of(models, at))
        for at in range(CALL_ID, PyList_GET_SIZE(tools), TOOL_ROW):
            size += _size_of(_of(tools, at))
    except (TypeError, UnicodeEncodeError):
        return None
    if size >= <Py_ssize_t>1 << 32:
        return None
    data = PyBytes_FromStringAndSize(NULL, sizeof(Head) + number * sizeof(Record) + size)
    memcpy(PyBytes_AS_STRING(data), &head, sizeof(Head))
    records = <Record *>(PyBytes_AS_STRING(data) + sizeof(Head))
    memset(records, 0, number * sizeof(Record))
    for at in range(head.models):
        if not _lay_model(models, at * MODEL_ROW, records + at, told):
            return None
        put = _put_text(_of(models, at * MODEL_ROW + MODEL_TEXT), records + at, <char *>(records + number), put, size)
    for at in range(head.tools):
        if not _lay_tool(tools, at * TOOL_ROW, records + head.models + at, told):
            return None
        put = _put_text(_of(tools, at * TOOL_ROW + CALL_ID), records + head.models + at, <char *>(records + number), put, size)
    if put != size:
        return None
    return data, tuple(told), _alike(models), _alike(tools), number


cdef class Waker:
    """Makes rows of packed calls: lists of these two classes."""

    cdef object models, tools

    def __init__(self, models, tools):
        if not all([isinstance(kind, type) and issubclass(kind, list) for kind in (models, tools)]):
            raise TypeError("rows are lists")
        self.models, self.tools = models, tools

    def wake(self, packed):
        """As `resting.wake`."""
        cdef Bare bare
        cdef Py_ssize_t at
        cdef const Record *record
        cdef object models = self.models(), tools = self.tools(), rows, told, parent, text
        _lay_bare(packed, &bare)
        told = _at(packed, 1)
        parent = None
        for at in range(bare.number):
            record = bare.records + at
            if not record.marks & HAS_PARENT:
                parent = None
            elif parent is None or memcmp(PyBytes_AS_STRING(parent), &record.parent, sizeof(record.parent)):
                parent = PyBytes_FromStringAndSize(<const char *>&record.parent, sizeof(record.parent))
            if record.told >= PyTuple_GET_SIZE(told) or <uint64_t>record.text_at + record.text_size > <uint64_t>bare.size:
                raise ValueError("packed calls are cut off")
            text = None
            if record.marks & HAS_TEXT:
                text = PyUnicode_DecodeUTF8(bare.texts + record.text_at, record.text_size, NULL)
            rows = tools if record.marks & IS_TOOL else models
            PyList_Append(rows, PyBytes_FromStringAndSize(<const char *>&record.id, sizeof(record.id)))
            PyList_Append(rows, parent)
            PyList_Append(rows, record.start)
            PyList_Append(rows, record.end)
            PyList_Append(rows, True if record.marks & HAS_FAILED else False)
            if record.marks & IS_TOOL:
                self.call(rows, _at(told, record.told), text)
            else:
                self.model(rows, _at(told, record.told), record, text)
        for at in range(2):
            rows = tools if at else models
            rows.shared, rows.remote, rows.span_kind = _at(packed, 2 + at)
            rows.parent = _of(rows, PyList_GET_SIZE(rows) + 1 - (TOOL_ROW if at else MODEL_ROW)) if PyList_GET_SIZE(rows) else None
        return models, tools

    cdef int model(self, object rows, object what, const Record *record, object text) except -1:
        """What only a model call has."""
        if not PyTuple_Check(what) or PyTuple_GET_SIZE(what) != TOLD_MODEL:
            raise TypeError("no model call")
        PyList_Append(rows, _at(what, 0))
        PyList_Append(rows, _at(what, 1))
        PyList_Append(rows, record.given if record.marks & HAS_INPUT else None)
        PyList_Append(rows, record.output if record.marks & HAS_OUTPUT else None)
        PyList_Append(rows, _at(what, 2))
        PyList_Append(rows, text)
        PyList_Append(rows, _at(what, 3))
        return 0

    cdef int call(self, object rows, object what, object text) except -1:
        """What only a tool call has."""
        cdef Py_ssize_t at
        if not PyTuple_Check(what) or PyTuple_GET_SIZE(what) != TOLD_CALL:
            raise TypeError("no call")
        PyList_Append(rows, _at(what, 0))
        PyList_Append(rows, text)
        for at in range(2, TOLD_CALL):
            PyList_Append(rows, _at(what, at))
        return 0


cdef struct Bare:
    Head head
    Py_ssize_t number, size  # of the records, and of the texts
    const Record *records
    const char *texts


cdef int _lay_bare(object packed, Bare *bare) except -1:
    """What packed calls are made of. Raises `TypeError` or `ValueError` where they are none."""
    cdef object data
    if not PyTuple_CheckExact(packed) or PyTuple_GET_SIZE(packed) != PACKED:
        raise TypeError("no packed calls")
    data = _at(packed, 0)
    if not PyBytes_CheckExact(data) or not PyTuple_CheckExact(_at(packed, 1)):
        raise TypeError("no packed calls")
    bare.size = PyBytes_GET_SIZE(data) - <Py_ssize_t>sizeof(Head)
    if bare.size < 0:
        raise ValueError("packed calls are cut off")
    memcpy(&bare.head, PyBytes_AS_STRING(data), sizeof(Head))
    bare.number = <Py_ssize_t>bare.head.models + bare.head.tools
    if _at(packed, 4) != bare.number:
        raise ValueError("packed calls are cut off")
    bare.size -= bare.number * <Py_ssize_t>sizeof(Record)
    if bare.size < 0:
        raise ValueError("packed calls are cut off")
    bare.records = <const Record *>(PyBytes_AS_STRING(data) + sizeof(Head))
    bare.texts = <const char *>(bare.records + bare.number)
    return 0


def joined(packed, more):
    """As `resting.joined`."""
    cdef Bare one, other
    cdef Head head
    cdef Py_ssize_t at, place
    cdef uint16_t places[MOST_JOINED]
    cdef object data, first, second
    cdef list told
    cdef char *to
    cdef Record *records
    _lay_bare(packed, &one)
    _lay_bare(more, &other)
    first, second = _joined_alike(packed, more, 2, one.head.models, other.head.models), None
    if first is not None:
        second = _joined_alike(packed, more, 3, one.head.tools, other.head.tools)
    if second is None or PyTuple_GET_SIZE(_at(more, 1)) > MOST_JOINED or one.size + other.size >= <Py_ssize_t>1 << 32:
        return None
    told = list(_at(packed, 1))
    if PyList_GET_SIZE(told) + PyTuple_GET_SIZE(_at(more, 1)) > MOST_TOLD:
        return None
    for at in range(PyTuple_GET_SIZE(_at(more, 1))):
        for place in range(PyList_GET_SIZE(told) - 1, max(PyList_GET_SIZE(told) - 1 - RECENT, -1), -1):
            if PyList_GET_ITEM(told, place) == PyTuple_GET_ITEM(_at(more, 1), at):
                break
        else:
            place = PyList_GET_SIZE(told)
            PyList_Append(told, _at(_at(more, 1), at))
        places[at] = <uint16_t>place
    data = PyBytes_FromStringAndSize(
        NULL, sizeof(Head) + (one.number + other.number) * sizeof(Record) + one.size + other.size
    )
    to = PyBytes_AS_STRING(data)
    head.models, head.tools = one.head.models + other.head.models, one.head.tools + other.head.tools
    memcpy(to, &head, sizeof(Head))
    records = <Record *>(to + sizeof(Head))
    memcpy(records, one.records, one.number * sizeof(Record))
    memcpy(records + one.number, other.records, other.number * sizeof(Record))
    for at in range(one.number, one.number + other.number):
        if records[at].told >= PyTuple_GET_SIZE(_at(more, 1)):
            raise ValueError("packed calls are cut off")
        records[at].told = places[records[at].told]
        records[at].text_at += <uint32_t>one.size
    to = <char *>(records + one.number + other.number)
    memcpy(to, one.texts, one.size)
    memcpy(to + one.size, other.texts, other.size)
    return data, tuple(told), first, second, one.number + other.number


cdef object _joined_alike(object packed, object more, Py_ssize_t at, uint32_t number, uint32_t other):
    """What calls of both are alike in; None where they are not."""
    if not number and other:
        return _at(more, at)
    return _at(packed, at) if not other or _same(_at(packed, at), _at(more, at)) else None


cdef tuple _alike(object rows):
    return rows.shared, rows.remote, rows.span_kind


cdef Py_ssize_t _size_of(object text) except -1:
    cdef Py_ssize_t size = 0
    if text is None:
        return 0
    if not PyUnicode_CheckExact(text):
        raise TypeError("no text")
    PyUnicode_AsUTF8AndSize(text, &size)
    return size


cdef Py_ssize_t _put_text(object text, Record *record, char *texts, Py_ssize_t at, Py_ssize_t room) except -1:
    """Put a text where it belongs. Where the next one begins. Whoever was asked something since it was measured may have put another
    in its place.
    """
    cdef Py_ssize_t size = 0
    cdef const char *told
    record.text_at = <uint32_t>at
    if text is None:
        return at
    if not PyUnicode_CheckExact(text):
        raise TypeError("no text")
    told = PyUnicode_AsUTF8AndSize(text, &size)
    if size > room - at:
        raise IndexError("a text has become longer")
    memcpy(texts + at, told, size)
    record.text_size = <uint32_t>size
    record.marks |= HAS_TEXT
    return at + size


cdef bint _lay_row(object rows, Py_ssize_t at, Record *record) except -1:
    """What every row begins with."""
    cdef long long start, end
    cdef object parent = _of(rows, at + 1), failed = _of(rows, at + FAILED)
    if not _put_id(_of(rows, at), &record.id) or not _whole(_of(rows, at + START), &start) or not _whole(_of(rows, at + END), &end):
        return False
    if parent is not None:
        if not _put_id(parent, &record.parent):
            return False
        record.marks |= HAS_PARENT
    if failed is True:
        record.marks |= HAS_FAILED
    elif failed is not False:
        return False
    record.start, record.end = start, end
    return True


cdef bint _lay_model(object rows, Py_ssize_t at, Record *record, list told) except -1:
    cdef long long number
    cdef object given = _of(rows, at + INPUT), output = _of(rows, at + OUTPUT)
    if not _lay_row(rows, at, record):
        return False
    if given is not None:
        if not _whole(given, &number):
            return False
        record.given = number
        record.marks |= HAS_INPUT
    if output is not None:
        if not _whole(output, &number):
            return False
        record.output = number
        record.marks |= HAS_OUTPUT
    what = (_of(rows, at + MODEL), _of(rows, at + ASKED_MODEL), _of(rows, at + ASKS), _of(rows, at + MORE))
    return _tell(told, what, record)


cdef bint _lay_tool(object rows, Py_ssize_t at, Record *record, list told) except -1:
    if not _lay_row(rows, at, record):
        return False
    record.marks |= IS_TOOL
    what = (
        _of(rows, at + NAME), None, _of(rows, at + ARGUMENTS), _of(rows, at + SOFTLY), _of(rows, at + RESULT),
        _of(rows, at + EFFECT),
    )
    return _tell(told, what, record)


cdef bint _tell(list told, tuple what, Record *record) except -1:
    """What a record refers to: most refer to what those before them did."""
    cdef Py_ssize_t number = PyList_GET_SIZE(told), at, other
    cdef object known
    for at in range(number - 1, max(number - 1 - RECENT, -1), -1):
        known = _of(told, at)
        if PyTuple_GET_SIZE(known) != PyTuple_GET_SIZE(what):
            continue
        for other in range(PyTuple_GET_SIZE(what)):
            if PyTuple_GET_ITEM(known, other) != PyTuple_GET_ITEM(what, other):
                break
        else:
            record.told = <uint16_t>at
            return True
    if number == MOST_TOLD:
        return False
    PyList_Append(told, what)
    record.told = <uint16_t>number
    return True


cdef inline bint _whole(object value, long long *found) except -1:
    return PyLong_CheckExact(value) and _number(value, found)


# --- Runs -------------------------------------------------------------------------------------------------------------


cdef inline int _hex(bytes id, Py_ssize_t size, unsigned char *to) except -1:
    cdef Py_ssize_t at
    cdef const unsigned char *digits = b"0123456789abcdef"
    cdef const unsigned char *told = <const unsigned char *>PyBytes_AS_STRING(id)
    for at in range(size):
        to[2 * at] = digits[told[at] >> 4]
        to[2 * at + 1] = digits[told[at] & 15]
    return 0


cdef object _run_id(object trace_id, object span_id):
    """Both in hexadecimal digits; None where one is not of the usual length."""
    cdef object made
    cdef unsigned char *to
    if not PyBytes_CheckExact(trace_id) or PyBytes_GET_SIZE(trace_id) != TRACE_ID_BYTES:
        return None
    if not PyBytes_CheckExact(span_id) or PyBytes_GET_SIZE(span_id) != SPAN_ID_BYTES:
        return None
    made = PyUnicode_New(2 * TRACE_ID_BYTES + 1 + 2 * SPAN_ID_BYTES, 127)
    to = <unsigned char *>PyUnicode_DATA(made)
    _hex(trace_id, TRACE_ID_BYTES, to)
    to[2 * TRACE_ID_BYTES] = b"-"
    _hex(span_id, SPAN_ID_BYTES, to + 2 * TRACE_ID_BYTES + 1)
    return made


@cython.final
cdef class Maker:
    """Makes runs of one agent and its calls: what `SimpleBuilder.build` does where there is nothing else.

    `kinds` are the classes of model calls and tool calls. `usual` is a run of which it takes what nothing is said about, `none`
    are no model calls and no tool calls. `verdicts`: of one that failed, of one that came to a limit, of the others. `canonical`:
    whether names decide how calls at the same time stand in the path. `keys` are those that are known, by name: who told it, what
    else he told, and the key. The rest are asked: for the key of a name and a root, for the context limit of two models (which
    stays), for the marks of calls (names, that failed or did not, arguments and results, None where none are known, starts and
    ends, None where calls came one after the other), for the weight of a threshold and a trace.
    """

    cdef bint canonical
    cdef object model_calls, tool_calls
    cdef object run, usual, agent, facts, no_models, no_tools, failed, limited, ended, key_of, limit_of, marks_of, weight_of
    cdef dict keys
    cdef object model, asked, limit  # of the last that it was asked for

    def __init__(
        self, kinds, usual, agent, facts, none, verdicts, canonical, dict keys not None, key_of, limit_of, marks_of, weight_of
    ):
        self.canonical, self.keys = canonical, keys
        self.model_calls, self.tool_calls = _kinds(kinds[0], kinds[1])
        self.run, self.usual, self.agent, self.facts = type(usual), tuple(usual), agent, facts
        self.no_models, self.no_tools = none
        self.failed, self.limited, self.ended = verdicts
        self.key_of, self.limit_of, self.marks_of, self.weight_of = key_of, limit_of, marks_of, weight_of
        if not issubclass(self.run, tuple) or len(self.usual) != RUN or any(not isinstance(one, tuple) or len(one) != 2 for one in verdicts):
            raise ValueError("a run has other fields than this module knows")

    cpdef make(self, packed, others, reason):
        """The run of these calls and the one other span, an agent that nothing is above; None where anything is unusual, and where
        they are not surely told apart.
        """
        cdef object root, facts, name, session, told, made, verdict, run_id, limit, threshold
        cdef object pressure = None, used = None, wrote = None, path = ()
        cdef Calls calls
        cdef Models models
        cdef Tools tools
        cdef int64_t start, end
        cdef Py_ssize_t kind
        if not PyList_Check(others) or PyList_GET_SIZE(others) != 1:
            return None
        root = _of(others, 0)
        if not _is_span(root) or _at(root, KIND) is not self.agent:
            return None
        facts = _at(root, SPAN_FACTS)
        if <PyObject *>Py_TYPE(facts) != <PyObject *>self.facts or PyTuple_GET_SIZE(facts) != INVOCATION_FACTS:
            return None
        name = _at(facts, 0)
        if (
            not name or _at(facts, WEAK) or _at(facts, EXPECTS_FINISH) or _at(facts, HIDES_FAILURE)
            or _at(root, NOTES) is not None or _at(root, EVALUATIONS)
        ):
            return None
        run_id = _run_id(_at(root, 0), _at(root, SPAN_ID))
        if run_id is None or not _time(_at(root, 4), &start) or not _time(_at(root, 5), &end):
            return None
        if not _are_calls(packed, &calls) or not _are_apart(&calls, _at(root, SPAN_ID)):
            return None

        session = _at(root, SESSION)
        for kind in range(2):
            if calls.tools if kind else calls.models:
                told = _at(_at(packed, 2 + kind), 0)
                if not PyTuple_Check(told) or PyTuple_GET_SIZE(told) != SPAN - SHARED:
                    return None
                told = _at(told, SESSION - SHARED)
                if session is None:
                    session = told
                elif told is not None and not _same(told, session):
                    return None

        told, model_calls, tool_calls = _at(packed, 1), self.no_models, self.no_tools
        models.asks = False
        if calls.models:
            if not _sum_up(told, &calls, &models):
                return None
            used, wrote = models.used, models.wrote
            limit = self.limit_of_models(<object>models.model, <object>models.asked)
            if limit is not None:
                pressure = min(models.most / limit, 1.0)
            model_calls = _packed(
                self.model_calls, (<Py_ssize_t>calls.models, models.took, models.largest, models.wrote, name), packed
            )
        elif _at(facts, TOKENS) is not None:
            return None
        if calls.tools:
            front = self.front_of(told, &calls, &tools, name)
            if front is None:
                return None
            path = _at(front, 0)
            if not tools.in_turn and self.canonical:
                path = _path_of(path, &calls, &tools)
            tool_calls = _packed(self.tool_calls, front, packed)
        elif _at(facts, EMITS_NO_TOOLS) or models.asks:
            return None
        verdict = self.failed if _at(root, 8) else self.limited if _at(facts, LIMIT_REACHED) else self.ended
        threshold = _at(root, THRESHOLD)

        made = PyType_GenericAlloc(<PyTypeObject *><PyObject *>self.run, RUN)
        FORGET_HASH(made)
        for kind in range(RUN):
            _put(made, kind, _at(self.usual, kind))
        _set(made, 0, run_id)
        _set(made, 1, _at(root, 0))
        _set(made, 2, _at(root, SPAN_ID))
        _set(made, KEY, self.key(name, root))
        if session is not None:
            _set(made, 4, session.id)
        _set(made, 13, _at(root, 4) if start <= calls.start else calls.start)
        _set(made, 14, _at(root, 5) if end >= calls.end else calls.end)
        _set(made, 15, path)
        _set(made, 17, tool_calls)
        _set(made, 18, model_calls)
        _set(made, 19, used)
        _set(made, 20, wrote)
        _set(made, 21, pressure)
        _set(made, 22, calls.tools == 0 or tools.known == calls.tools)
        _set(made, 23, _at(verdict, 0))
        _set(made, 24, _at(verdict, 1))
        if threshold is not None:
            _set(made, 29, self.weight_of(threshold, _at(root, 0)))
        _set(made, 30, calls.number + 1)
        _set(made, 31, reason)
        PyObject_GC_UnTrack(<void *><PyObject *>made)  # nothing that it holds can ever lead back to it
        return made

    cdef object key(self, object name, object root):
        """The key of a name and a root: mostly of a name that is known, from who told it before."""
        cdef PyObject *found = PyDict_GetItemWithError(self.keys, name)
        cdef object known = None if found is NULL else <object>found
        if PyTuple_CheckExact(known) and PyTuple_GET_SIZE(known) == KNOWN:
            if _at(known, 0) is _at(root, RESOURCE) and _same(_at(known, 1), _at(root, EXTRA)):
                return _at(known, 2)
        return self.key_of(name, root)

    cdef object limit_of_models(self, object model, object asked):
        if model is not self.model or asked is not self.asked:
            self.limit = self.limit_of(model, asked)
            self.model, self.asked = model, asked
        return self.limit

    cdef object front_of(self, object told, Calls *calls, Tools *tools, object agent):
        """The first columns of the tool calls; None where two have one id, or anything is unusual."""
        cdef Py_ssize_t at, other, failures = 0, results = 0
        cdef object what, names, ok, retry = False, repeat = False, chain = 0
        cdef const Record *record
        cdef const Record *before
        _sort(calls, IS_TOOL, tools.order, &tools.number)
        tools.known, tools.in_turn = 0, True
        names = PyTuple_New(tools.number)
        for at in range(tools.number):
            record = calls.records + tools.order[at]
            what = _at(told, record.told)
            if not PyTuple_Check(what) or PyTuple_GET_SIZE(what) != TOLD_CALL or not PyUnicode_CheckExact(_at(what, 0)):
                return None
            if _at(what, 3) is not True and _at(what, 3) is not False:
                return None
            _put(names, at, _at(what, 0))
            failures += _at(what, 3) is True
            tools.known += _at(what, 2) is not None
            results += _at(what, 4) is not None
            if record.marks & HAS_TEXT:
                for other in range(at):
                    before = calls.records + tools.order[other]
                    if (
                        before.marks & HAS_TEXT and before.text_size == record.text_size
                        and memcmp(calls.texts + before.text_at, calls.texts + record.text_at, record.text_size) == 0
                    ):
                        return None
            if at:
                before = calls.records + tools.order[at - 1]
                if record.start < before.end or record.start == before.start:
                    tools.in_turn = False
        names = _rest(names)
        if failures in (0, tools.number):
            ok = failures == 0
        else:
            ok = PyTuple_New(tools.number)
            for at in range(tools.number):
                _put(ok, at, _at(_at(told, calls.records[tools.order[at]].told), 3) is False)
            ok = _rest(ok)
        # Of what nothing is known but that it succeeded, nothing is another attempt.
        if (failures or tools.known) and not _are_first(told, names, calls, tools):
            retry, repeat, chain = self.marks_of(
                names, _told_each(told, 3, calls, tools), _told_each(told, 2, calls, tools) if tools.known else None,
                _told_each(told, 4, calls, tools) if results else None,
                None if tools.in_turn else (_times(calls, tools, False), _times(calls, tools, True)),
            )
        return _rest((names, ok, retry, repeat, chain, agent))


cdef inline int _set(object made, Py_ssize_t at, object value) except -1:
    """Put a value where another is."""
    cdef PyObject *before = PyTuple_GET_ITEM(made, at)
    _put(made, at, value)
    Py_DECREF(<object>before)
    return 0


# --- Bundles ----------------------------------------------------------------------------------------------------------


@cython.final
cdef class Beginner:
    """Makes objects like one that is given, which has nothing but slots: `begin(trace_id, now, rest, others)` is a bundle with these
    rows at rest, as `Bundle` makes it. `block` is the class of blocks; it knows where the slots of both lie.
    """

    cdef object kind, blank, block
    cdef Py_ssize_t number
    cdef Py_ssize_t offsets[MOST_SLOTS]
    cdef Py_ssize_t trace_id, rest, others, born, latest, last_seen
    cdef Py_ssize_t places, open, index, is_plain, due, is_waiting, state, closed_at, run, told_ids, missing

    cdef Py_ssize_t of_rest, of_others, of_trace, of_count  # of a block

    def __init__(self, blank, block):
        self.kind, self.blank, self.number, self.block = type(blank), blank, 0, block
        if self.kind.__dictoffset__ or self.kind.__itemsize__ or len(self.kind.__slots__) > MOST_SLOTS:
            raise TypeError("bundles have other parts than this module knows")
        if block.__dictoffset__ or block.__itemsize__:
            raise TypeError("blocks have other parts than this module knows")
        self.of_rest, self.of_others = _slot(block, "rest"), _slot(block, "others")
        self.of_trace, self.of_count = _slot(block, "trace_id"), _slot(block, "count")
        for name in self.kind.__slots__:
            self.offsets[self.number] = _slot(self.kind, name)
            self.number += 1
        self.trace_id, self.rest, self.others = _slot(self.kind, "trace_id"), _slot(self.kind, "rest"), _slot(self.kind, "others")
        self.born, self.latest, self.last_seen = (
            _slot(self.kind, "born"), _slot(self.kind, "latest"), _slot(self.kind, "last_seen")
        )
        self.places, self.open, self.index = _slot(self.kind, "places"), _slot(self.kind, "open"), _slot(self.kind, "index")
        self.is_plain, self.due = _slot(self.kind, "is_plain"), _slot(self.kind, "due")
        self.is_waiting, self.state = _slot(self.kind, "is_waiting"), _slot(self.kind, "state")
        self.closed_at, self.run, self.told_ids = _slot(self.kind, "closed_at"), _slot(self.kind, "run"), _slot(self.kind, "told_ids")
        self.missing = _slot(self.kind, "missing")

    cpdef begin(self, trace_id, now, rest, others):
        cdef Py_ssize_t at
        cdef PyObject *value
        cdef object made = PyType_GenericAlloc(<PyTypeObject *><PyObject *>self.kind, 0)
        for at in range(self.number):
            value = (<PyObject **>(<char *><PyObject *>self.blank + self.offsets[at]))[0]
            if value is not NULL:
                _fill(made, self.offsets[at], <object>value)
        _fill(made, self.trace_id, trace_id)
        _fill(made, self.rest, rest)
        _fill(made, self.others, others)
        _fill(made, self.born, now)
        _fill(made, self.latest, now)
        _fill(made, self.last_seen, now)
        return _no_garbage(made)


@cython.final
cdef class Usual:
    """Does with many bundles in one call what `Assembler` does with each. It stops where one is not usual, or may not be, and leaves
    that as it is.

    `bundles` knows where their slots lie. `states` are those of bundles that grow, are closed, are past.
    `told` are the class of events and what is told of runs that are closed and settled; `reason` is why usual ones are closed.
    `weights` are those of a row and of another span. `limits` are how long a bundle lingers, how long a closed one can be reopened,
    and how many spans one may begin with. `maker` makes runs, and `top_of` tells what is missing above one that something is above
    (`simple.top_of`). The rest is the assembler's: its gathering, the runs that have
    settled, and its accounts.
    """

    cdef Beginner bundles
    cdef Maker maker
    cdef object growing, closed_state, past, event, closed, settled, reason, linger, top_of
    cdef object gathering, settled_runs, traces, quiet, pasts, remembered, accounts, of_used, of_closed
    cdef Py_ssize_t row_weight, span_weight, most
    cdef double lingers, reopens
    cdef dict held, open
    cdef tuple nothing
    cdef Py_ssize_t closings, used  # of this call
    cdef Py_ssize_t ahead  # so many of what is due have been fetched and not been looked at yet

    def __init__(
        self, Beginner bundles not None, states, told, reason, weights, limits, Maker maker not None, top_of, gathering,
        settled, accounts,
    ):
        self.bundles, self.maker, self.top_of, self.reason = bundles, maker, top_of, reason
        self.growing, self.closed_state, self.past = states
        self.event, self.closed, self.settled = told
        if not issubclass(self.event, tuple) or len(self.event._fields) != EVENT:
            raise ValueError("events have other fields than this module knows")
        self.row_weight, self.span_weight = weights
        self.linger, self.reopens, self.most = limits
        self.lingers, self.accounts, self.nothing = self.linger, accounts, (None,)
        self.of_used, self.of_closed = ("used", ""), ("closed", reason.value)
        self.gathering, self.quiet, self.open = gathering, gathering.quiet, gathering.open
        self.traces, self.held, self.pasts = gathering.traces, gathering.traces.bundles, gathering.traces.pasts
        self.settled_runs, self.remembered = settled, settled.by_trace
        if not all([isinstance(one, dict) for one in (self.traces, self.remembered, accounts)]):
            raise TypeError("traces stand in dicts, and so do accounts")

    def begin(self, blocks, now, looks):
        """Begin bundles with the blocks of an iterator, and plan to look at them. Gives the first that is not usual; None: there are no
        more.
        """
        cdef Py_ssize_t weight = 0
        cdef object block
        cdef list planned = None
        try:
            for block in blocks:
                if not self.is_new(block):
                    return block
                if planned is None:
                    planned = self.planned(now + self.linger, looks)
                    if planned is None:
                        return block
                weight += self.begin_one(block, now, planned)
        finally:
            if weight:
                self.gathering.open_bytes += weight
        return None

    cdef list planned(self, due, looks):
        """The bundles that are looked at then; None where others are looked at later."""
        cdef list made
        if looks:
            last, bundles = looks[len(looks) - 1]
            if last == due:
                return bundles
            if not last < due:
                return None
        made = []
        looks.append((due, made))
        return made

    cdef bint is_new(self, object block) except -1:
        """Whether a bundle can begin with it."""
        cdef object trace_id
        if <PyObject *>Py_TYPE(block) != <PyObject *>self.bundles.block:
            return False
        trace_id = _held_at(block, self.bundles.of_trace)
        if not PyBytes_CheckExact(trace_id) or not PyTuple_CheckExact(_held_at(block, self.bundles.of_rest)):
            return False
        if not PyList_CheckExact(_held_at(block, self.bundles.of_others)) or <Py_ssize_t>_held_at(block, self.bundles.of_count) > self.most:
            return False
        return not (
            PyDict_Contains(self.held, trace_id) or trace_id in self.pasts or PyDict_Contains(self.traces, trace_id)
        )

    cdef Py_ssize_t begin_one(self, object block, object now, list planned) except -1:
        """Gives its weight."""
        cdef object trace_id = _held_at(block, self.bundles.of_trace), others = _held_at(block, self.bundles.of_others), bundle
        cdef Py_ssize_t number = PyList_GET_SIZE(others)
        others = _no_garbage(PyList_GetSlice(others, 0, number))
        bundle = self.bundles.begin(trace_id, now, _held_at(block, self.bundles.of_rest), others)
        _fill(bundle, self.bundles.due, True)
        PyDict_SetItem(self.held, trace_id, bundle)
        PyDict_SetItem(self.open, bundle, None)
        PyList_Append(planned, bundle)
        return (<Py_ssize_t>_held_at(block, self.bundles.of_count) - number) * self.row_weight + number * self.span_weight

    def close(self, list left not None, now, closed, list events not None):
        """Close bundles, and let go of what grows no more, from the end of a list on; they are taken from it. True: of the one at the end
        no usual run can be made.
        """
        cdef double time
        cdef object run, remember, bundle
        cdef tuple top
        self.closings = self.used = 0
        if not PyFloat_CheckExact(now):
            return False
        time, remember = now, closed.append
        try:
            while PyList_GET_SIZE(left):
                bundle = <object>PyList_GET_ITEM(left, PyList_GET_SIZE(left) - 1)
                if <PyObject *>Py_TYPE(bundle) != <PyObject *>self.bundles.kind:
                    return False
                if _held_at(bundle, self.bundles.state) is self.growing:
                    top = self.top_of_whole(bundle, time)
                    if top is None:
                        return False
                    run = self.maker.make(_held_at(bundle, self.bundles.rest), _held_at(bundle, self.bundles.others), self.reason)
                    if run is None:
                        return True
                    self.close_one(bundle, run, _at(top, 0), now, remember, events)
                left.pop()
        finally:
            if self.closings:
                self.account()
        return False

    cdef int account(self) except -1:
        """For what was closed."""
        cdef Py_ssize_t weight = (self.used - self.closings) * self.row_weight + self.closings * self.span_weight
        self.gathering.open_bytes -= weight
        self.gathering.closed_bytes += weight
        self.count(self.of_used, self.used)
        self.count(self.of_closed, self.closings)
        return 0

    cdef int count(self, object what, Py_ssize_t number) except -1:
        cdef PyObject *known = PyDict_GetItemWithError(self.accounts, what)
        PyDict_SetItem(self.accounts, what, number if known is NULL else <object>known + number)
        return 0

    cdef tuple top_of_whole(self, object bundle, double time):
        """What is missing above a bundle, in a tuple, if it has lingered and is rows at rest beside one span; None of any other."""
        cdef object others = _held_at(bundle, self.bundles.others), seen = _held_at(bundle, self.bundles.last_seen), root
        if _held_at(bundle, self.bundles.open) is not None:
            return None
        if not PyFloat_CheckExact(seen) or PyFloat_AS_DOUBLE(seen) + self.lingers > time:
            return None
        if not PyTuple_CheckExact(_held_at(bundle, self.bundles.rest)) or not PyList_CheckExact(others) or PyList_GET_SIZE(others) != 1:
            return None
        root = _of(others, 0)
        if not _is_span(root):
            return None
        if _at(root, PARENT_ID) is None and _held_at(bundle, self.bundles.places) is None:
            return self.nothing
        return self.top_of(bundle)

    cdef int close_one(self, object bundle, object run, object missing, object now, object remember, list events) except -1:
        """As `Bundles.close_one`, and tell it."""
        cdef object others = _held_at(bundle, self.bundles.others), rest = _held_at(bundle, self.bundles.rest)
        cdef object ids = ids_of(rest, others), event = self.event_of(self.closed, run), entry = _no_garbage((now, bundle))
        _fill(bundle, self.bundles.told_ids, ids)
        _fill(bundle, self.bundles.missing, missing)
        _fill(bundle, self.bundles.due, False)
        _fill(bundle, self.bundles.is_plain, False)
        _fill(bundle, self.bundles.index, None)
        _fill(bundle, self.bundles.closed_at, now)
        _fill(bundle, self.bundles.run, run)
        _fill(bundle, self.bundles.state, self.closed_state)
        if PyDict_Contains(self.open, bundle):
            PyDict_DelItem(self.open, bundle)
        remember(entry)
        PyList_Append(events, event)
        self.closings += 1
        self.used += <Py_ssize_t>_at(rest, NUMBER) + 1
        return 0

    cdef object event_of(self, object change, object run):
        cdef object made = PyType_GenericAlloc(<PyTypeObject *><PyObject *>self.event, EVENT)
        FORGET_HASH(made)
        _put(made, 0, change)
        _put(made, 1, run)
        _put(made, 2, None)
        return _no_garbage(made)

    def settle(self, closed, now, list events not None):
        """Settle what was closed first. It is taken from there. Gives how many bundles that were."""
        cdef Py_ssize_t number = 0, spans = 0
        cdef double time
        cdef object entry, letting_go
        if not PyFloat_CheckExact(now):
            return 0
        time, letting_go = now, closed.popleft
        try:
            while len(closed):
                entry = closed[0]
                if self.ahead <= 0:
                    self.ahead = self.fetch_due(closed, time)
                self.ahead -= 1
                if not self.can_settle(entry, time):
                    break
                spans += self.settle_one(_at(entry, 1), _at(entry, 0), events)
                number += 1
                letting_go()
        finally:
            if number:
                self.gathering.closed_bytes -= (spans - number) * self.row_weight + number * self.span_weight
                self.gathering.gone_count += spans
                self.settled_runs.have_come(number)
        return number

    cdef Py_ssize_t fetch_due(self, object closed, double time) except -1:
        """Have what is due, and was not looked at for a minute, come nearer: bundles, what of them will be looked at, and what is freed
        with them. Gives how many are due. It changes nothing.
        """
        cdef Py_ssize_t at, due = 0, number = 0
        cdef PyObject *found[TOGETHER]
        cdef PyObject *one
        cdef object entry
        for at in range(min(<Py_ssize_t>len(closed), TOGETHER)):
            entry = closed[at]
            if not PyTuple_CheckExact(entry) or PyTuple_GET_SIZE(entry) != 2 or not PyFloat_CheckExact(_at(entry, 0)):
                break
            if PyFloat_AS_DOUBLE(_at(entry, 0)) + self.reopens > time:
                break
            due += 1
            one = PyTuple_GET_ITEM(entry, 1)
            if <PyObject *>Py_TYPE(<object>one) == <PyObject *>self.bundles.kind:
                found[number] = one
                number += 1
                _fetch_lines(one, 4)
        for at in range(number):
            one = found[at]
            _fetch_lines(_part(one, self.bundles.trace_id), 1)
            _fetch_lines(_part(one, self.bundles.told_ids), 1)
            _fetch_lines(_part(one, self.bundles.run), 5)
            _fetch_lines(_part(one, self.bundles.rest), 1)
            _fetch_lines(_part(one, self.bundles.others), 1)
        for at in range(number):
            found[at] = _part(found[at], self.bundles.others)
            if found[at] is not NULL and (not PyList_CheckExact(<object>found[at]) or not PyList_GET_SIZE(<object>found[at])):
                found[at] = NULL
            if found[at] is not NULL:
                FETCH((<PyListObject *>found[at]).ob_item)
        for at in range(number):
            if found[at] is not NULL:
                found[at] = PyList_GET_ITEM(<object>found[at], 0)
                _fetch_lines(found[at], 3)
        for at in range(number):
            if found[at] is not NULL and _is_span(<object>found[at]):
                _fetch_lines(PyTuple_GET_ITEM(<object>found[at], SPAN_FACTS), 2)
        return due

    cdef bint can_settle(self, object entry, double time) except -1:
        """Whether its time to be reopened has passed, and it is one run beside rows at rest, of a trace of which no other has
        settled.
        """
        cdef object at, bundle, trace_id, others
        cdef PyObject *held
        if not PyTuple_CheckExact(entry) or PyTuple_GET_SIZE(entry) != 2:
            return False
        at, bundle = _at(entry, 0), _at(entry, 1)
        if not PyFloat_CheckExact(at) or PyFloat_AS_DOUBLE(at) + self.reopens > time:
            return False
        if <PyObject *>Py_TYPE(bundle) != <PyObject *>self.bundles.kind:
            return False
        if _held_at(bundle, self.bundles.state) is not self.closed_state or _held_at(bundle, self.bundles.told_ids) is None:
            return False
        if _held_at(bundle, self.bundles.due) is not False or _held_at(bundle, self.bundles.is_waiting) is not False:
            return False
        trace_id, others = _held_at(bundle, self.bundles.trace_id), _held_at(bundle, self.bundles.others)
        if not PyBytes_CheckExact(trace_id) or PyList_GET_SIZE(others) != 1:
            return False
        held = PyDict_GetItemWithError(self.held, trace_id)
        return held == <PyObject *>bundle and not PyDict_Contains(self.remembered, trace_id)

    cdef Py_ssize_t settle_one(self, object bundle, object at, list events) except -1:
        """As `Bundles.settle`, and tell it. Gives the number of its spans."""
        cdef object trace_id = _held_at(bundle, self.bundles.trace_id), run = _held_at(bundle, self.bundles.run)
        cdef object ids = _held_at(bundle, self.bundles.told_ids), begun = _held_at(bundle, self.bundles.open)
        cdef object event = self.event_of(self.settled, run)
        cdef object past = (_agent_of(run), ids, _held_at(bundle, self.bundles.places), begun if begun else None)
        PyObject_SetItem(self.remembered, trace_id, run)
        PyObject_SetItem(self.quiet, trace_id, at)
        PyObject_SetItem(self.pasts, trace_id, past)
        PyDict_DelItem(self.held, trace_id)
        _fill(bundle, self.bundles.state, self.past)
        PyList_Append(events, event)
        return PyBytes_GET_SIZE(ids) // SPAN_ID_BYTES


cdef inline object _agent_of(object run):
    """The name of the agent of a run that was made here."""
    cdef object key = _at(run, KEY)
    return _at(key, AGENT) if PyTuple_Check(key) and PyTuple_GET_SIZE(key) > AGENT else key.agent


cdef inline object _no_garbage(object made):
    """What is given, of which it is sure that nothing it will ever hold leads back to it: nobody has to look whether it is garbage."""
    PyObject_GC_UnTrack(<void *><PyObject *>made)
    return made


cdef inline PyObject *_part(PyObject *one, Py_ssize_t offset) noexcept:
    return (<PyObject **>(<char *>one + offset))[0]


cdef inline void _fetch_lines(PyObject *one, Py_ssize_t lines) noexcept:
    """Have the processor fetch an object, so much of it, and what is to be known when it is freed."""
    cdef Py_ssize_t at
    if one is not NULL:
        for at in range(lines):
            FETCH(<char *>one + at * LINE)
        FETCH(<char *>(<size_t>one & ~<size_t>(POOL - 1)))


cdef inline object _held_at(object one, Py_ssize_t offset):
    """What a slot holds, None where it is empty."""
    cdef PyObject *held = (<PyObject **>(<char *><PyObject *>one + offset))[0]
    return None if held is NULL else <object>held


cdef inline int _fill(object made, Py_ssize_t offset, object value) except -1:
    cdef PyObject **slot = <PyObject **>(<char *><PyObject *>made + offset)
    cdef PyObject *before = slot[0]
    Py_INCREF(value)
    slot[0] = <PyObject *>value
    if before is not NULL:
        Py_DECREF(<object>before)
    return 0


# --- Memory -----------------------------------------------------------------------------------------------------------


cdef enum:
    MOST_PARTS = 64  # of an object, that are fetched
    DEPTH = 3


cdef class Fetcher:
    """Has the processor fetch what will be looked at, or freed, long after it has left every cache: many objects at the same time
    instead of one after the other. `kinds` are classes that have nothing but slots.
    """

    cdef tuple kinds

    def __init__(self, *kinds):
        if any([kind.__dictoffset__ or kind.__itemsize__ for kind in kinds]):
            raise TypeError("objects of these classes have other parts than slots")
        self.kinds = kinds

    def fetch(self, list objects not None):
        """Fetch these objects and what they hold. It changes nothing, and looks at nothing that might change."""
        cdef Py_ssize_t depth, at
        for at in range(PyList_GET_SIZE(objects)):
            _fetch(PyList_GET_ITEM(objects, at))
        for depth in range(1, DEPTH):
            for at in range(PyList_GET_SIZE(objects)):
                self.fetch_parts(PyList_GET_ITEM(objects, at), depth)

    cdef void fetch_parts(self, PyObject *one, Py_ssize_t depth) noexcept:
        """What an object holds, so deep; what lies above is on its way already."""
        cdef Py_ssize_t at, number
        cdef PyObject **parts = self.parts_of(one, &number)
        for at in range(number):
            if parts[at] is NULL:
                continue
            if depth == 1:
                _fetch(parts[at])
            else:
                self.fetch_parts(parts[at], depth - 1)

    cdef PyObject **parts_of(self, PyObject *one, Py_ssize_t *number) noexcept:
        cdef Py_ssize_t at
        number[0] = 0
        if PyTuple_Check(<object>one):
            number[0] = min(PyTuple_GET_SIZE(<object>one), MOST_PARTS)
            return &(<PyTupleObject *>one).ob_item[0]
        if PyList_Check(<object>one):
            number[0] = min(PyList_GET_SIZE(<object>one), MOST_PARTS)
            return (<PyListObject *>one).ob_item
        for at in range(PyTuple_GET_SIZE(self.kinds)):
            if <PyObject *>Py_TYPE(<object>one) == PyTuple_GET_ITEM(self.kinds, at):
                number[0] = min(
                    (Py_TYPE(<object>one).tp_basicsize - <Py_ssize_t>sizeof(PyObject)) // <Py_ssize_t>sizeof(void *), MOST_PARTS
                )
                return <PyObject **>(<char *>one + sizeof(PyObject))
        return NULL


cdef inline void _fetch(PyObject *one) noexcept nogil:
    FETCH(one)
    FETCH(<char *>one + LINE)
    FETCH(<char *>(<size_t>one & ~<size_t>(POOL - 1)))
