# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Traces of which nothing comes any more, until they are forgotten: what `assembly.quiet` does, compiled.

There are tens of thousands, each looked at twice: when its run settles, and a quarter of an hour later.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE

include "line.pxi"

FITS = 7
"""`otel_reliability.native` says what that is."""

cdef extern from "Python.h":
    bint PyUnicode_CheckExact(object of)


cdef object NOTHING = object()


cdef enum:
    ID = 8  # bytes of the id of a span
    PAST = 4  # fields of what is remembered of a trace
    IN_BYTES = 1  # the form of one of which there are only the name of an agent and ids of the usual length


cdef struct Ids:
    PyObject *agent
    Py_ssize_t size  # bytes of the ids, which stand behind


cdef class Traces(Line):
    """Records by the ids of traces."""

    def __contains__(self, trace_id):
        cdef Key key = _trace_key(trace_id)
        return self.find(&key) is not NULL

    def __iter__(self):
        cdef uint64_t since = self.changes
        cdef Head *one = self.first()
        while one is not NULL:
            yield _id_of(one)
            self.unchanged(since)
            one = self.next_to(one)

    def items(self):
        """As a dictionary's."""
        return [(trace_id, self[trace_id]) for trace_id in self]


cdef inline Key _trace_key(object trace_id) except *:
    if not PyBytes_CheckExact(trace_id):
        raise TypeError("the id of a trace is bytes")
    return _key_of(trace_id, 0, PyBytes_AS_STRING(trace_id), PyBytes_GET_SIZE(trace_id), 0)


cdef inline object _id_of(Head *record):
    return PyBytes_FromStringAndSize(<char *> record + sizeof(Head), record.key_size)


cdef class Quiet(Traces):
    """As `assembly.quiet.PlainQuiet`: since when, in the order in which they came."""

    def __getitem__(self, trace_id):
        cdef Key key = _trace_key(trace_id)
        cdef Head *one = self.find(&key)
        if one is NULL:
            raise KeyError(trace_id)
        return (<double *> _behind(one))[0]

    def __setitem__(self, trace_id, double since):
        cdef Key key = _trace_key(trace_id)
        cdef Head *one = self.find(&key)
        if one is NULL:
            one = self.append(&key, sizeof(double))
        (<double *> _behind(one))[0] = since

    def pop(self, trace_id, default=NOTHING):
        """As there."""
        cdef Key key = _trace_key(trace_id)
        cdef Head *one = self.find(&key)
        cdef double since
        if one is NULL and default is NOTHING:
            raise KeyError(trace_id)
        if one is NULL:
            return default
        since = (<double *> _behind(one))[0]
        self.remove(one)
        return since

    def due(self, double horizon):
        """As there."""
        cdef list found = []
        cdef Head *one = self.first()
        while one is not NULL and (<double *> _behind(one))[0] <= horizon:
            found.append(_id_of(one))  # bytes, which let nobody in
            one = self.next_to(one)
        return found

    def drop(self, list trace_ids not None):
        """As there."""
        cdef Key key
        cdef Head *one
        for trace_id in trace_ids:
            key = _trace_key(trace_id)
            one = self.find(&key)
            if one is not NULL:
                self.remove(one)


cdef class Pasts(Traces):
    """As `assembly.quiet.PlainPasts`: what is remembered of a trace, nearly always the name of its agent and its spans' ids."""

    def __dealloc__(self):
        cdef Head *one = self.first()
        while one is not NULL:
            Py_XDECREF((<PyObject **> _behind(one))[0])  # in either form an object stands there
            one = self.next_to(one)

    def __getitem__(self, trace_id):
        cdef Key key = _trace_key(trace_id)
        cdef Head *one = self.find(&key)
        if one is NULL:
            raise KeyError(trace_id)
        return self.past_of(one)

    def __setitem__(self, trace_id, tuple past not None):
        cdef Key key = _trace_key(trace_id)
        cdef Head *one = self.find(&key)
        cdef PyObject *before = NULL
        cdef PyObject *held = <PyObject *> past
        cdef Ids *ids
        cdef bint is_plain = _is_plain(past)
        cdef size_t needed = sizeof(Ids) + <size_t> PyBytes_GET_SIZE(<object> PyTuple_GET_ITEM(past, 1)) if is_plain else sizeof(held)
        if one is NULL:
            one = self.append(&key, needed)
        else:
            before = (<PyObject **> _behind(one))[0]
            is_plain = is_plain and needed <= one.size - sizeof(Head) - _even(one.key_size)
        ids = <Ids *> _behind(one)
        if is_plain:
            held = PyTuple_GET_ITEM(past, 0)
            ids.size = PyBytes_GET_SIZE(<object> PyTuple_GET_ITEM(past, 1))
            memcpy(<char *> ids + sizeof(Ids), PyBytes_AS_STRING(<object> PyTuple_GET_ITEM(past, 1)), ids.size)
        Py_INCREF(<object> held)
        ids.agent, one.form = held, IN_BYTES if is_plain else 0
        Py_XDECREF(before)

    def get(self, trace_id):
        """As there."""
        cdef Key key = _trace_key(trace_id)
        cdef Head *one = self.find(&key)
        return None if one is NULL else self.past_of(one)

    def pop(self, trace_id, default=NOTHING):
        """As there."""
        cdef Key key = _trace_key(trace_id)
        cdef Head *one = self.find(&key)
        cdef uint64_t since = self.changes
        cdef object past
        if one is NULL and default is NOTHING:
            raise KeyError(trace_id)
        if one is NULL:
            return default
        past = self.past_of(one)
        self.unchanged(since)
        self.drop(one)
        return past

    def forget(self, list trace_ids not None):
        """As there."""
        cdef list others = []
        cdef Py_ssize_t number = 0
        cdef Key key
        cdef Head *one
        for trace_id in trace_ids:
            key = _trace_key(trace_id)
            one = self.find(&key)
            if one is NULL or one.form != IN_BYTES:
                others.append(trace_id)
            else:
                number += (<Ids *> _behind(one)).size // ID
                self.drop(one)
        return number, others

    cdef object past_of(self, Head *record):
        cdef Ids *ids = <Ids *> _behind(record)
        cdef object agent = <object> ids.agent
        if record.form != IN_BYTES:
            return agent
        return (agent, PyBytes_FromStringAndSize(<char *> ids + sizeof(Ids), ids.size), None, None)

    cdef void drop(self, Head *record) noexcept:
        cdef PyObject *held = (<PyObject **> _behind(record))[0]
        self.remove(record)
        Py_XDECREF(held)


cdef inline bint _is_plain(tuple past):
    return (
        PyTuple_GET_SIZE(past) == PAST
        and PyUnicode_CheckExact(<object> PyTuple_GET_ITEM(past, 0))
        and PyBytes_CheckExact(<object> PyTuple_GET_ITEM(past, 1))
        and <object> PyTuple_GET_ITEM(past, 2) is None
        and <object> PyTuple_GET_ITEM(past, 3) is None
    )
