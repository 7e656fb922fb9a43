# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The hooks that a host's SDK calls at each span's start and end: what `telemetry.hooks` does, compiled.

It does what is usual: spans as the SDK makes them, ordinary ones, and others of known keys, without events, long text,
or links where there is no parent. Every other span is left to Python as it is. So there is one judge of what is unusual.
"""

from cpython.dict cimport PyDict_CheckExact, PyDict_GetItemWithError, PyDict_Next
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.set cimport PySet_Contains
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

FITS = 7
"""`otel_reliability.native` says what that is."""

cdef extern from "Python.h":
    bint PyLong_CheckExact(object of)
    bint PyUnicode_CheckExact(object of)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    long long PyLong_AsLongLongAndOverflow(object of, int *overflow) except? -1
    void PyObject_GC_UnTrack(void *of)

cdef enum:
    ROOM = 64  # of a queue that was just made
    CONTEXT = 6  # fields of a span's context
    PLACES = 32  # of keys in a span, whose last one is remembered


cdef class Queue:
    """What `deque` is of it: any thread adds at its end, and with `most` the oldest go.

    All of it happens while the interpreter is held, without a call in Python in between.
    """

    cdef PyObject **items
    cdef Py_ssize_t room, first, number, most

    def __cinit__(self, most=None):
        self.most = 0 if most is None else most
        self.items = <PyObject **> PyMem_Malloc(ROOM * sizeof(PyObject *))
        if self.items == NULL:
            raise MemoryError
        self.room = ROOM

    def __dealloc__(self):
        if self.items != NULL:
            while self.number:
                self._drop()
            PyMem_Free(self.items)

    def __len__(self):
        return self.number

    def __iter__(self):
        cdef Py_ssize_t at
        return iter([<object> self.items[(self.first + at) & (self.room - 1)] for at in range(self.number)])

    cdef void _drop(self) noexcept:
        cdef PyObject *oldest = self.items[self.first]
        self.first = (self.first + 1) & (self.room - 1)
        self.number -= 1
        Py_DECREF(<object> oldest)

    cdef int _grow(self, Py_ssize_t more) except -1:
        """Make room for so many more: a power of two."""
        cdef Py_ssize_t room = self.room, at
        cdef PyObject **items
        while room < self.number + more:
            room *= 2
        items = <PyObject **> PyMem_Malloc(room * sizeof(PyObject *))
        if items == NULL:
            raise MemoryError
        for at in range(self.number):
            items[at] = self.items[(self.first + at) & (self.room - 1)]
        PyMem_Free(self.items)
        self.items, self.room, self.first = items, room, 0
        return 0

    cdef inline int put(self, object one) except -1:
        if self.number == self.room:
            self._grow(1)
        Py_INCREF(one)
        self.items[(self.first + self.number) & (self.room - 1)] = <PyObject *> one
        self.number += 1
        if self.most and self.number > self.most:
            self._drop()
        return 0

    cdef inline int put_both(self, object one, object other) except -1:
        """Both, or none."""
        if self.number + 2 > self.room:
            self._grow(2)
        self.put(one)
        return self.put(other)

    def append(self, one):
        self.put(one)

    def extend(self, few):
        cdef tuple all_of_it = tuple(few)
        if self.number + len(all_of_it) > self.room:
            self._grow(len(all_of_it))
        for one in all_of_it:
            self.put(one)

    def popleft(self):
        cdef PyObject *oldest
        if not self.number:
            raise IndexError("pop from an empty queue")
        oldest = self.items[self.first]
        found = <object> oldest
        self._drop()
        if not self.number:
            self.first = 0  # what comes next lies where the processor's caches have it
        return found

    def clear(self):
        while self.number:
            self._drop()


cdef class Hooks:
    """`telemetry.hooks.Hooks`, compiled. `_begin_closely` and `_end_closely` do in Python what is not usual."""

    cdef Queue _begun_queue, _ended, _kept
    cdef set _keys, _names, _scopes
    cdef dict _known
    cdef long long _since, _latest_start
    cdef Py_ssize_t _ordinary_mark, _mark, _small
    cdef public bint _hindered
    cdef object _scope  # the last one that was found to be known
    cdef PyObject *_at[PLACES]  # in each place of a span's keys, the last one that was found to be known: mostly it is the same

    def __dealloc__(self):
        self._forget()

    cdef void _forget(self) noexcept:
        cdef Py_ssize_t at
        cdef PyObject *last
        for at in range(PLACES):
            last = self._at[at]
            self._at[at] = NULL
            if last != NULL:
                Py_DECREF(<object> last)

    def _serve(self, Queue begun not None, ordinary, Queue kept not None, known, Py_ssize_t small, long long latest):
        """From now on these are filled, and this is what spans are judged by."""
        self._begun_queue, self._ended, self._kept = begun, ordinary.ended, kept
        self._keys, self._names, self._scopes, self._known = ordinary.keys, ordinary.names, ordinary.scopes, known
        self._forget()
        self._scope = None
        self._small, self._latest_start = small, latest
        self._since = latest
        self._ordinary_mark = self._mark = 0

    def _aim(self, since, Py_ssize_t ordinary_mark, Py_ssize_t mark):
        """Look around once so many wait; ordinary spans are told at a glance from this start on."""
        cdef int overflow = 0
        cdef long long earliest = PyLong_AsLongLongAndOverflow(since, &overflow)
        self._since = self._latest_start if overflow else earliest
        self._ordinary_mark, self._mark = ordinary_mark, mark

    def on_start(self, span, parent_context=None):
        """Note that a span is open: its run will not be closed before it ends."""
        try:
            context, parent = span._context, span._parent
            if not PyTuple_Check(context) or PyTuple_GET_SIZE(context) != CONTEXT:
                raise TypeError
            if self._begun_queue is None:  # a class of the user's that has not called ours yet
                raise TypeError
            self._begun_queue.put_both(
                <object> PyTuple_GET_ITEM(context, 1), context if parent is None else parent
            )
        except Exception:
            self._begin_closely(span)

    def on_end(self, span):
        """Take what is needed of a span and leave at once. Of one that is ordinary at a glance that is its id."""
        cdef int taken = 0
        try:
            if not self._hindered:
                taken = self._take(span)
        except Exception:
            pass  # no span as the SDK makes them
        if not taken:
            self._end_closely(span)
        elif self._ended.number > self._ordinary_mark or self._kept.number > self._mark:
            self._look_guarded(span)

    cdef int _take(self, object span) except -1:
        """Whether it was kept. Nothing is, where it is left to Python or fails."""
        context, attributes, name = span._context, span._attributes._dict, span._name
        scope, parent = span._instrumentation_scope, span._parent
        if not PyTuple_Check(context) or PyTuple_GET_SIZE(context) != CONTEXT or not PyDict_CheckExact(attributes):
            return 0
        if PySet_Contains(self._names, name) and self._is_ordinary(span, <dict> attributes, scope, parent):
            self._ended.put(<object> PyTuple_GET_ITEM(context, 1))
            return 1
        return self._keep(span, context, <dict> attributes, name, scope, parent)

    cdef bint _is_ordinary(self, object span, dict attributes, object scope, object parent) except -1:
        cdef PyObject *key
        cdef PyObject *value
        cdef Py_ssize_t at = 0, place = 0
        cdef int overflow = 0
        cdef long long start, end
        if scope is not self._scope or scope is None:
            if not PySet_Contains(self._scopes, scope._name):
                return False
            self._scope = scope
        while PyDict_Next(attributes, &at, &key, &value):
            if place >= PLACES:
                if not PySet_Contains(self._keys, <object> key):
                    return False
            elif key != self._at[place]:
                if not PySet_Contains(self._keys, <object> key):
                    return False
                self._remember(place, <object> key)
            place += 1
        if span._events._dq or (parent is None and span._links._dq):
            return False
        started, ended = span._start_time, span._end_time
        if not PyLong_CheckExact(started) or not PyLong_CheckExact(ended):
            return False
        start, end = PyLong_AsLongLongAndOverflow(started, &overflow), 0
        if not overflow:
            end = PyLong_AsLongLongAndOverflow(ended, &overflow)
        return not overflow and self._since <= start <= end <= self._latest_start

    cdef void _remember(self, Py_ssize_t place, object key) noexcept:
        cdef PyObject *last = self._at[place]
        Py_INCREF(key)
        self._at[place] = <PyObject *> key
        if last != NULL:
            Py_DECREF(<object> last)

    cdef bint _keep(
        self, object span, object context, dict attributes, object name, object scope, object parent
    ) except -1:
        cdef PyObject *found = PyDict_GetItemWithError(self._known, tuple(attributes))
        cdef tuple wanted, values, kept
        cdef Py_ssize_t at
        if found == NULL or span._events._dq or (parent is None and span._links._dq):
            return False
        plan = <object> found
        wanted = plan.keys
        if not wanted or plan.suspects:
            return False
        for key in <tuple> plan.arguments:
            text = attributes[key]
            if not PyUnicode_CheckExact(text) or PyUnicode_GET_LENGTH(text) > self._small:
                return False
        values = PyTuple_New(PyTuple_GET_SIZE(wanted))
        for at in range(PyTuple_GET_SIZE(wanted)):
            value = attributes[<object> PyTuple_GET_ITEM(wanted, at)]
            Py_INCREF(value)
            PyTuple_SET_ITEM(values, at, value)
        kept = (
            plan, 0, () if parent is not None else [], <object> PyTuple_GET_ITEM(context, 0),
            <object> PyTuple_GET_ITEM(context, 1), <object> PyTuple_GET_ITEM(context, 4), parent, name, span._kind,
            span._start_time, span._end_time, span._status._status_code, span._resource, scope, values,
        )
        PyObject_GC_UnTrack(<void *> values)  # no part of any circle: the collector need not look at them
        PyObject_GC_UnTrack(<void *> kept)
        self._kept.put(kept)
        return True
