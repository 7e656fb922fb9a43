# Sessions, in the order in which they were touched: as `windows.shelf.PlainShelf`, of which this does what is said there.

cdef extern from "Python.h":
    void *PyUnicode_DATA(object text)


cdef enum:
    SIGNALS = 4
    TRACE = 8  # fields of one
    SESSION_EVENT = 5  # of what is told of a session
    LOOPS = 1  # of the signals
    TOOLS = 2
    IN_BYTES = 1  # the form of a session of one run


cdef struct One:  # a session of one run
    double touched
    int64_t start
    int64_t end
    double[SIGNALS] scores
    uint32_t id_size
    uint8_t id_kind
    uint8_t known  # of which signals there are scores
    uint8_t derived  # whether both that can be are derived; else none is
    uint8_t unused


cdef inline Py_ssize_t _bytes_of(object text):
    return PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text)


cdef inline Key _session_key(int64_t number, object session_id) except *:
    return _key_of(session_id, number, PyUnicode_DATA(session_id), _bytes_of(session_id), PyUnicode_KIND(session_id))


cdef inline object _text(int kind, const void *symbols, size_t size):
    return PyUnicode_FromKindAndData(kind, symbols, size // kind)


cdef inline bint _whole(object value, int64_t *found) except -1:
    """Whether a value is a number that has a place in a record."""
    cdef int overflow = 0
    if not PyLong_CheckExact(value):
        return False
    found[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return not overflow


@cython.final
cdef class Shelf(Line):
    """A session of one run lies here as bytes, any other as the object that it is. `rows` says what runs tell, `agent` is the
    class of agents, `baseline` the condition of undisturbed runs, `derived` the names of the signals that are derived.
    """

    cdef Rows rows
    cdef object agent, baseline
    cdef tuple derived
    cdef Py_ssize_t a_key, a_number, a_recent, a_sessions
    cdef object told  # what the session that was closed last scored,
    cdef object told_weights  # by these weights,
    cdef uint8_t told_known  # and its run's scores
    cdef double[SIGNALS] told_scores

    def __init__(self, Rows rows not None, agent, baseline, tuple derived not None):
        self.rows, self.agent, self.baseline, self.derived = rows, agent, baseline, derived
        self.a_key, self.a_number = _slot(agent, "key"), _slot(agent, "number")
        self.a_recent, self.a_sessions = _slot(agent, "recent"), _slot(agent, "sessions")

    def __dealloc__(self):
        cdef Head *one = self.first()
        while one is not NULL:
            if one.form != IN_BYTES:
                Py_XDECREF((<PyObject **> _behind(one))[0])
            one = self.next_to(one)

    # --- As a dictionary in order -------------------------------------------------------------------------------------

    def __contains__(self, key):
        return self.known(key) is not NULL

    def __getitem__(self, key):
        cdef Head *one = self.known(key)
        if one is NULL:
            raise KeyError(key)
        return self.session_of(one)

    def get(self, key):
        """As there."""
        cdef Head *one = self.known(key)
        return None if one is NULL else self.session_of(one)

    def __setitem__(self, key, tuple session not None):
        """As there: in the place of what was there, or as the last."""
        cdef Key found
        cdef One one
        cdef object run_id = self.one_of(session, &one)
        cdef Head *there = self.known(key)
        cdef PyObject *before = NULL
        cdef size_t needed = sizeof(PyObject *) if run_id is None else sizeof(One) + <size_t> _bytes_of(run_id)
        if there is NULL:
            found = _session_key(key[0], key[1])
            there = self.append(&found, needed)
        else:
            if there.form != IN_BYTES:
                before = (<PyObject **> _behind(there))[0]
            if needed > there.size - sizeof(Head) - _even(there.key_size):
                run_id = None  # there always is room for an object
        if run_id is None:
            Py_INCREF(session)
            there.form, (<PyObject **> _behind(there))[0] = 0, <PyObject *> session
        else:
            self.write(there, &one, run_id)
        Py_XDECREF(before)

    def pop(self, key, default=None):
        """As there; without a default there is None."""
        cdef Head *one = self.known(key)
        return default if one is NULL else self.taken(one)

    def popitem(self, bint last=True):
        """As there, of the first."""
        cdef Head *one = self.first()
        cdef uint64_t since = self.changes
        cdef object key
        if last or one is NULL:
            raise KeyError("only the first can be taken, if there is one")
        key = self.key_of(one)
        self.unchanged(since)
        return key, self.taken(one)

    def move_to_end(self, key):
        """As there."""
        cdef Head *one = self.known(key)
        cdef Head *moved
        cdef Key found
        if one is NULL:
            raise KeyError(key)
        if self.next_to(one) is NULL:
            return
        self.reserve(one.size)
        one = self.known(key)
        found = _session_key(key[0], key[1])
        self.remove(one)  # what it holds stays as it was until something is written there
        moved = self.append(&found, one.size - sizeof(Head) - _even(one.key_size))
        memcpy(_behind(moved), _behind(one), one.size - sizeof(Head) - _even(one.key_size))
        moved.form = one.form

    def __iter__(self):
        cdef list keys = []
        cdef uint64_t since = self.changes
        cdef Head *one = self.first()
        while one is not NULL:
            keys.append(self.key_of(one))
            self.unchanged(since)
            one = self.next_to(one)
        return iter(keys)

    def items(self):
        """As there."""
        return [(key, self[key]) for key in self]

    # --- What sessions ask --------------------------------------------------------------------------------------------

    def due(self, double now, double idle):
        """As there."""
        cdef list keys = []
        cdef uint64_t since = self.changes
        cdef Head *one = self.first()
        while one is not NULL and not now - self.touched(one) < idle:
            keys.append(self.key_of(one))
            self.unchanged(since)
            one = self.next_to(one)
        return keys

    def keys_of(self, set numbers not None):
        """As there."""
        cdef list keys = []
        cdef uint64_t since = self.changes
        cdef Head *one = self.first()
        while one is not NULL:
            if one.number in numbers:
                keys.append(self.key_of(one))
            self.unchanged(since)
            one = self.next_to(one)
        return keys

    def take(self, run, now, dict agents not None, known, Shelf closed not None):
        """As there. It is usual that nobody has judged the run, and that its session is new."""
        cdef object session_id, key, agent, run_id
        cdef PyObject *found
        cdef Py_ssize_t number, repeats, failed
        cdef int64_t agent_number
        cdef One one
        cdef Key place
        cdef Head *made
        if not self.rows.faults(run, &number, &repeats, &failed):
            return 0
        session_id, key, run_id = _of(run, 4), _of(run, 3), _of(run, 0)
        if not PyUnicode_CheckExact(session_id) or not PyUnicode_CheckExact(run_id) or not PyFloat_CheckExact(now):
            return 0
        if _of(run, 10) is not False or not PyObject_RichCompareBool(_of(run, 7), self.baseline, Py_EQ):
            return 0
        if not _whole(_of(run, 13), &one.start) or not _whole(_of(run, 14), &one.end):
            return 0
        found = PyDict_GetItemWithError(agents, key)
        if found is NULL or not _is(<object> found, self.agent):
            return 0
        agent = <object> found
        if not PyObject_IsTrue(known(key)):
            return 0
        agent_number = _number(agent, self.a_number)
        place = _session_key(agent_number, session_id)
        if self.find(&place) is not NULL or closed.find(&place) is not NULL:
            return 0
        one.touched, one.known, one.derived = <double> now, 1 << LOOPS | 1 << TOOLS, True
        one.scores[0] = one.scores[SIGNALS - 1] = 0.0
        one.scores[LOOPS] = 1.0 - <double> repeats / number if repeats else 1.0
        one.scores[TOOLS] = 1.0 - <double> failed / number if failed else 1.0
        made = self.append(&place, sizeof(One) + <size_t> _bytes_of(run_id))
        self.write(made, &one, run_id)
        _set(agent, self.a_sessions, _get(agent, self.a_sessions) + 1)
        return self.number + closed.number

    def close(self, dict agents not None, weights, scores_of, telling):
        """As there."""
        cdef Head *record = self.first()
        cdef uint64_t since = self.changes
        cdef object key, session, trace, agent, told, closed, recent, event, kind, by_name
        cdef list events
        cdef One *one
        kind, by_name, events = telling
        if record is NULL or record.form != IN_BYTES:
            return False
        key, session = self.key_of(record), self.session_of(record)
        trace = _of(session, 1)
        agent = agents[_of(key, 0)]
        if not _is(agent, self.agent) or _get(agent, self.a_recent) is None or len(kind._fields) != SESSION_EVENT:
            return False
        recent = _get(agent, self.a_recent)
        self.unchanged(since)
        one = <One *> _behind(record)
        if self.told is None or self.told_weights is not weights or one.known != self.told_known or memcmp(one.scores, self.told_scores, sizeof(one.scores)):
            memcpy(self.told_scores, one.scores, sizeof(one.scores))
            self.told_known, self.told_weights, self.told = one.known, weights, None
            told = scores_of(trace[3 : 3 + SIGNALS], weights)
            if not PyTuple_CheckExact(told) or PyTuple_GET_SIZE(told) != 4:
                raise TypeError("no scores")
            self.unchanged(since)
            self.told = told
        told = self.told
        self.remove(record)
        _set(agent, self.a_sessions, _get(agent, self.a_sessions) - 1)
        closed = (_of(trace, 2), _of(key, 1), _of(told, 0), _of(told, 1), _of(told, 2), _of(told, 3), _of(trace, TRACE - 1))
        event = PyType_GenericAlloc(<PyTypeObject *> <PyObject *> kind, SESSION_EVENT)
        FORGET_HASH(event)
        _put(event, 0, _get(agent, self.a_key))
        _put(event, 1, closed)
        _put(event, 2, True)
        _put(event, 3, (trace,))
        _put(event, 4, by_name)
        recent.add(closed)
        events.append(event)
        return True

    # --- Records ------------------------------------------------------------------------------------------------------

    cdef Head *known(self, object key) except? NULL:
        """The record of a key as Python has it, NULL where there is none."""
        cdef Key found
        if not PyTuple_CheckExact(key) or PyTuple_GET_SIZE(key) != 2 or not PyUnicode_CheckExact(_of(key, 1)):
            raise TypeError("a session's key is a number and a text")
        found = _session_key(_of(key, 0), _of(key, 1))
        return self.find(&found)

    cdef object key_of(self, Head *record):
        return (record.number, _text(record.key_kind, <char *> record + sizeof(Head), record.key_size))

    cdef object one_of(self, tuple session, One *one):
        """What is to be written of a session of one run, and the id of that; None where it has no place in a record."""
        cdef object trace, score
        cdef Py_ssize_t at
        if PyTuple_GET_SIZE(session) != 2 or not PyFloat_CheckExact(_of(session, 0)):
            return None
        trace = _of(session, 1)
        if not PyTuple_CheckExact(trace) or PyTuple_GET_SIZE(trace) != TRACE or not PyUnicode_CheckExact(_of(trace, 1)):
            return None
        if not _whole(_of(trace, 0), &one.start) or not _whole(_of(trace, 2), &one.end):
            return None
        one.touched, one.known = <double> _of(session, 0), 0
        for at in range(SIGNALS):
            score, one.scores[at] = _of(trace, 3 + at), 0.0
            if PyFloat_CheckExact(score):
                one.known |= 1 << at
                one.scores[at] = <double> score
            elif score is not None:
                return None
        score = _of(trace, TRACE - 1)
        if not PyTuple_CheckExact(score) or (PyTuple_GET_SIZE(score) and score != self.derived):
            return None
        one.derived = PyTuple_GET_SIZE(score) > 0
        return _of(trace, 1)

    cdef void write(self, Head *record, One *one, object run_id) noexcept:
        """Write a session of one run."""
        cdef char *behind = _behind(record)
        one.id_size, one.id_kind = <uint32_t> _bytes_of(run_id), PyUnicode_KIND(run_id)
        memcpy(behind, one, sizeof(One))
        memcpy(behind + sizeof(One), PyUnicode_DATA(run_id), one.id_size)
        record.form = IN_BYTES

    cdef object session_of(self, Head *record):
        """The session as Python has it."""
        cdef One *one = <One *> _behind(record)
        cdef object run_id
        if record.form != IN_BYTES:
            return <object> (<PyObject **> _behind(record))[0]
        run_id = _text(one.id_kind, <char *> one + sizeof(One), one.id_size)
        return (one.touched, (
            one.start, run_id, one.end,
            _score(one, 0), _score(one, 1), _score(one, 2), _score(one, 3), self.derived if one.derived else (),
        ))

    cdef object taken(self, Head *record):
        """The session of a record, which goes."""
        cdef uint64_t since = self.changes
        cdef object session = self.session_of(record)
        cdef PyObject *held
        self.unchanged(since)
        held = NULL if record.form == IN_BYTES else (<PyObject **> _behind(record))[0]
        self.remove(record)
        Py_XDECREF(held)
        return session

    cdef double touched(self, Head *record) except? -1.0:
        cdef object touched
        if record.form == IN_BYTES:
            return (<One *> _behind(record)).touched
        touched = (<tuple> (<PyObject **> _behind(record))[0])[0]
        if not PyFloat_CheckExact(touched) and not PyLong_CheckExact(touched):
            raise TypeError("no time")
        return touched


cdef inline object _score(One *one, int at):
    if not one.known >> at & 1:
        return None
    return ALL if one.scores[at] == 1.0 else one.scores[at]


# --- The latest of an agent -------------------------------------------------------------------------------------------

cdef enum:
    MOST_LATEST = 100


@cython.final
cdef class Latest:
    """As `recent_sessions.PlainLatest`: what is compared to find a session's place stands together, apart from the sessions."""

    cdef int64_t[MOST_LATEST + 1] ends
    cdef Py_hash_t[MOST_LATEST + 1] hashes  # of their ids
    cdef PyObject* sessions[MOST_LATEST + 1]
    cdef Py_ssize_t number, most

    def __init__(self, Py_ssize_t most):
        if not 0 < most <= MOST_LATEST:
            raise ValueError(f"from 1 to {MOST_LATEST} sessions can be the latest")
        self.most = most

    def __dealloc__(self):
        cdef Py_ssize_t at
        for at in range(self.number):
            Py_XDECREF(self.sessions[at])

    def __len__(self):
        return self.number

    def order(self):
        """As there."""
        return [<object> self.sessions[at] for at in range(self.number)]

    def add(self, tuple closed not None):
        """As there."""
        cdef int overflow = 0
        cdef int64_t end = PyLong_AsLongLongAndOverflow(closed[0], &overflow)
        cdef Py_hash_t hashed = hash(closed[1])
        cdef Py_ssize_t place
        cdef PyObject *gone = NULL
        if overflow:
            end = (<int64_t> 1 << 62) - 1 + (<int64_t> 1 << 62) if overflow > 0 else -(<int64_t> 1 << 62) - (<int64_t> 1 << 62)
        self.drop(closed[1])
        place = self.number
        while place and (
            self.ends[place - 1] > end
            or self.ends[place - 1] == end and PyObject_RichCompareBool(closed, <object> self.sessions[place - 1], Py_LT)
        ):
            place -= 1
        if self.number == self.most:
            if not place:
                return
            gone = self.sessions[0]
            self.close_gap(0)
            place -= 1
        self.open_gap(place)
        Py_INCREF(closed)
        self.ends[place], self.hashes[place], self.sessions[place] = end, hashed, <PyObject *> closed
        Py_XDECREF(gone)

    def drop(self, session_id):
        """As there."""
        cdef Py_hash_t hashed = hash(session_id)
        cdef Py_ssize_t at
        cdef PyObject *gone
        for at in range(self.number):
            if self.hashes[at] == hashed and (<tuple> self.sessions[at])[1] == session_id:
                gone = self.sessions[at]
                self.close_gap(at)
                Py_XDECREF(gone)
                return

    cdef void close_gap(self, Py_ssize_t at) noexcept:
        cdef Py_ssize_t behind = self.number - at - 1
        memmove(&self.ends[at], &self.ends[at + 1], behind * sizeof(int64_t))
        memmove(&self.hashes[at], &self.hashes[at + 1], behind * sizeof(Py_hash_t))
        memmove(&self.sessions[at], &self.sessions[at + 1], behind * sizeof(PyObject *))
        self.number -= 1

    cdef void open_gap(self, Py_ssize_t at) noexcept:
        cdef Py_ssize_t behind = self.number - at
        memmove(&self.ends[at + 1], &self.ends[at], behind * sizeof(int64_t))
        memmove(&self.hashes[at + 1], &self.hashes[at], behind * sizeof(Py_hash_t))
        memmove(&self.sessions[at + 1], &self.sessions[at], behind * sizeof(PyObject *))
        self.number += 1
