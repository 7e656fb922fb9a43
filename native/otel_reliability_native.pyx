# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""OTLP trace requests in protobuf → packed model and tool calls by trace, and the other spans, without an object between.

One pass over the bytes. A span whose attributes have the keys of spans before it is read by what was worked out for those
(`Layout`); the values that such spans share are looked up together, and only what is the span's own becomes an object. Spans
mostly follow each other as they did before: so the layouts that came next are tried first.

It knows the wire format and nothing else: which attributes matter, and what a span is, is told to it (`Scanner`). It reads what
every encoder writes. Whatever is encoded in another way, or is not sound, it leaves to the decoders in Python: it then gives None
for the whole request and has changed nothing. So there is one judge of what is malformed.

All reading goes through `_varint` and `_field`, which look at the end of the bytes before every step.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.list cimport PyList_Append, PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM
from libc.string cimport memcmp, memcpy, memset

include "packed.pxi"

FITS = 7
"""`otel_reliability.native` says what that is."""

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    object PyType_GenericAlloc(PyTypeObject *of, Py_ssize_t size)
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
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
    MOST_KEYS = 128
    MOST_SHARED = 8
    MOST_RECENT = 4
    LONGEST_KEY = 0xFFFF
    LONGEST_SHARED = 1024
    LONGEST_PLAIN = 256
    LONGEST_GROUP = 16384
    MOST_GROUPS = 1024
    MOST_OF_A_BLOCK = 512
    SPAN = 18  # fields of each named tuple
    TOKENS = 2
    MODEL_FACTS = 10
    AGENT_FACTS = 12
    TOOL_FACTS = 2
    CALL = 6
    SESSION = 2
    STENCIL = 5
    MODEL_ROW = 4  # what the rows of model calls have in common
    SLOTS = 64
    UUID_SHORT = 32
    UUID_LONG = 36
    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    FIXED32 = 5
    TEXT = 0x0A
    INTEGER = 0x18
    ERROR = 2
    REMOTE_KNOWN = 0x100
    REMOTE = 0x200
    TRACE_ID = 0x0A  # how the fields of a span begin
    SPAN_ID = 0x12
    PARENT_ID = 0x22
    NAME = 0x2A
    KIND = 0x30
    START = 0x39
    END = 0x41
    ATTRIBUTE = 0x4A
    OFTEN = 2  # so many times in a row, and it is what mostly comes next

ASK, MODEL, TOOL, AGENT, PLAIN = range(5)
"""What is made of a stencil: nothing, a model call, a tool call or an agent, which are filled in, or what it says as it is."""
cdef int _ASK = 0, _MODEL = 1, _TOOL = 2, _AGENT = 3, _PLAIN = 4

cdef enum Answer:
    STRANGE = 0  # not what encoders write: for the decoders in Python
    GOOD = 1
    APART = 2  # sound, and not like those before it

ctypedef const uint8_t *Place


cdef struct Part:
    Place at
    Py_ssize_t size


cdef struct Field:
    int number
    int kind
    Part part
    uint64_t value


cdef struct Wire:  # a span as it lies in the request
    Part trace, id, parent, name
    uint64_t start, end
    uint32_t kind, flags
    int status
    bint unusual
    int number
    Part keys[MOST_KEYS]
    Part values[MOST_KEYS]


# --- The wire ---------------------------------------------------------------------------------------------------------


cdef inline bint _varint(Place *at, Place end, uint64_t *value) noexcept nogil:
    cdef uint64_t found = 0, byte
    cdef int shift = 0
    cdef Place here = at[0]
    if here < end and here[0] < 128:
        value[0] = here[0]
        at[0] = here + 1
        return True
    while here < end and shift < 64:
        byte = here[0]
        here += 1
        found |= (byte & 127) << shift
        if byte < 128:
            at[0] = here
            value[0] = found
            return True
        shift += 7
    return False


cdef inline bint _field(Place *at, Place end, Field *field) noexcept nogil:
    """The field at a place, which moves behind it. False: none that encoders write."""
    cdef uint64_t tag
    cdef Place here = at[0]
    if not _varint(&here, end, &tag) or tag > 0x7FFF:
        return False
    field.number = <int>(tag >> 3)
    field.kind = <int>(tag & 7)
    if field.number == 0:
        return False
    if field.kind == LENGTH:
        if not _varint(&here, end, &field.value) or field.value > <uint64_t>(end - here):
            return False
        field.part.at = here
        field.part.size = <Py_ssize_t>field.value
        here += field.part.size
    elif field.kind == VARINT:
        if not _varint(&here, end, &field.value):
            return False
    elif field.kind == FIXED64:
        if end - here < 8:
            return False
        memcpy(&field.value, here, 8)
        here += 8
    elif field.kind == FIXED32:
        if end - here < 4:
            return False
        field.value = 0
        memcpy(&field.value, here, 4)
        here += 4
    else:
        return False
    at[0] = here
    return True


cdef inline bint _is_zero(Place at, Py_ssize_t size) noexcept nogil:
    cdef uint64_t some, all = 0
    while size >= 8:
        memcpy(&some, at, 8)
        all |= some
        at, size = at + 8, size - 8
    while size > 0:
        all |= at[0]
        at, size = at + 1, size - 1
    return all == 0


cdef bint _attribute(Part part, Part *key, Part *value) noexcept nogil:
    """Key and value of a pair. False: it has another part, one in another type, or two keys, of which each must be a text."""
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    cdef bint named = False
    key.at = value.at = at
    key.size = value.size = 0
    while at < end:
        if not _field(&at, end, &field) or field.kind != LENGTH:
            return False
        if field.number == 1 and field.part.size <= LONGEST_KEY and not named:
            key[0] = field.part
            named = True
        elif field.number == 2:
            value[0] = field.part
        else:
            return False
    return True


cdef bint _status(Part part, int *code) noexcept nogil:
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    code[0] = 0
    while at < end:
        if not _field(&at, end, &field):
            return False
        if field.number == 3 and field.kind == VARINT and field.value < 128:
            code[0] = <int>field.value
        elif field.number != 2 or field.kind != LENGTH:
            return False
    return True


cdef inline Place _front(Place at, Place end, Wire *span) noexcept nogil:
    """Note what nearly every span begins with, as far as it lies as encoders write it: its ids and its parent's, its name, its
    kind, its times. Gives the place behind that.
    """
    if end - at < 28 or at[0] != TRACE_ID or at[1] != 16 or at[18] != SPAN_ID or at[19] != 8:
        return at
    span.trace.at, span.trace.size = at + 2, 16
    span.id.at, span.id.size = at + 20, 8
    at += 28
    if end - at >= 10 and at[0] == PARENT_ID and at[1] == 8:
        span.parent.at, span.parent.size = at + 2, 8
        at += 10
    if end - at < 2 or at[0] != NAME or at[1] > 127 or end - at < 2 + at[1]:
        return at
    span.name.at, span.name.size = at + 2, at[1]
    at += 2 + at[1]
    if end - at >= 20 and at[0] == KIND and at[1] < 128 and at[2] == START and at[11] == END:
        span.kind = at[1]
        memcpy(&span.start, at + 3, 8)
        memcpy(&span.end, at + 12, 8)
        at += 20
    return at


cdef bint _wire(Part part, Wire *span, Place keys, const uint32_t *sizes, int number) noexcept nogil:
    """The parts of a sound span. False: it is none, or not as encoders write it, or another than was expected.

    `keys`: the attributes that are expected, each as it lies before its value, and how long that is; the keys of the span are
    not noted then. NULL: any.
    """
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    cdef uint64_t size
    span.trace.size = span.id.size = span.parent.size = span.name.size = 0
    span.name.at = at
    span.start = span.end = 0
    span.kind = span.flags = 0
    span.status = span.number = 0
    span.unusual = False
    at = _front(at, end, span)
    while at < end:
        if keys is not NULL and at[0] == ATTRIBUTE:
            at += 1
            if span.number == number or not _varint(&at, end, &size) or size > <uint64_t>(end - at):
                return False
            if not _expected(at, <Py_ssize_t>size, keys, sizes[span.number], &span.values[span.number]):
                return False
            keys += sizes[span.number]
            span.number += 1
            at += size
            continue
        if not _field(&at, end, &field):
            return False
        if field.kind == LENGTH:
            if field.number == 9:
                if span.number == MOST_KEYS or keys is not NULL:
                    return False
                if not _attribute(field.part, &span.keys[span.number], &span.values[span.number]):
                    return False
                span.number += 1
            elif field.number == 1:
                span.trace = field.part
            elif field.number == 2:
                span.id = field.part
            elif field.number == 4:
                span.parent = field.part
            elif field.number == 5 and span.name.size == 0:
                span.name = field.part
            elif field.number == 15:
                if not _status(field.part, &span.status):
                    return False
            elif field.number == 3 or field.number == 11 or field.number == 13:
                span.unusual = True
            else:
                return False
        elif field.kind == VARINT:
            if field.number == 6:
                if field.value > 127:
                    return False
                span.kind = <uint32_t>field.value
            elif field.number != 10 and field.number != 12 and field.number != 14:
                return False
        elif field.kind == FIXED64:
            if field.number == 7:
                span.start = field.value
            elif field.number == 8:
                span.end = field.value
            else:
                return False
        elif field.number == 16:
            span.flags = <uint32_t>field.value
        else:
            return False
    return (keys is NULL or span.number == number) and _is_sound(span)


cdef inline bint _are_same(Place one, Place other, Py_ssize_t size) noexcept nogil:
    """Whether two places hold the same bytes. Keys are too short for it to be worth a call."""
    cdef uint64_t some, more
    cdef Py_ssize_t at = 0
    if size < 8:
        return memcmp(one, other, size) == 0
    while at + 8 < size:
        memcpy(&some, one + at, 8)
        memcpy(&more, other + at, 8)
        if some != more:
            return False
        at += 8
    memcpy(&some, one + size - 8, 8)
    memcpy(&more, other + size - 8, 8)
    return some == more


cdef inline bint _expected(Place at, Py_ssize_t size, Place key, Py_ssize_t length, Part *value) noexcept nogil:
    """Whether a pair is a key, as it lies before its value, and one value after it."""
    cdef Place here = at + length, end = at + size
    cdef uint64_t found
    if size <= length or not _are_same(at, key, length) or not _varint(&here, end, &found) or found != <uint64_t>(end - here):
        return False
    value.at = here
    value.size = end - here
    return True


cdef bint _is_sound(Wire *span) noexcept nogil:
    cdef uint64_t latest = 0x7FFFFFFFFFFFFFFF
    if span.trace.size != 16 or span.id.size != 8 or (span.parent.size != 0 and span.parent.size != 8):
        return False
    if _is_zero(span.trace.at, 16) or _is_zero(span.id.at, 8):
        return False
    return 0 < span.start <= latest and 0 < span.end <= latest


# --- Values -----------------------------------------------------------------------------------------------------------


cdef inline object _bytes(Part part):
    return PyBytes_FromStringAndSize(<const char *>part.at, part.size)


cdef inline bint _is(Part part, bytes other) noexcept:
    return part.size == PyBytes_GET_SIZE(other) and memcmp(part.at, PyBytes_AS_STRING(other), part.size) == 0


cdef inline bint _text(Part value, Part *text) noexcept nogil:
    """The bytes of a value that is a text, and nothing else."""
    cdef Place at = value.at + 1, end = value.at + value.size
    cdef uint64_t size
    if value.size < 2 or value.at[0] != TEXT or not _varint(&at, end, &size) or size != <uint64_t>(end - at):
        return False
    text.at = at
    text.size = end - at
    return True


cdef inline bint _integer(Part value, int64_t *number) noexcept nogil:
    """A value that is a whole number and not negative, and nothing else."""
    cdef Place at = value.at + 1, end = value.at + value.size
    cdef uint64_t found
    if value.size < 2 or value.at[0] != INTEGER or not _varint(&at, end, &found) or at != end:
        return False
    number[0] = <int64_t>found
    return number[0] >= 0


cdef inline object _string(Part text):
    """Raises `UnicodeDecodeError` where the bytes are no text."""
    return PyUnicode_DecodeUTF8(<const char *>text.at, text.size, NULL)


cdef inline bint _is_plain(Part text) noexcept nogil:
    """Whether it is ASCII."""
    cdef uint64_t some, all = 0
    cdef Py_ssize_t at = 0
    while at + 8 <= text.size:
        memcpy(&some, text.at + at, 8)
        all |= some
        at += 8
    while at < text.size:
        all |= text.at[at]
        at += 1
    return not all & <uint64_t>0x8080808080808080


cdef inline int _check_text(Part text) except -1:
    """Raises `UnicodeDecodeError` where the bytes are no text."""
    if not _is_plain(text):
        _string(text)
    return 0


cdef inline object _named(object of, Py_ssize_t size):
    """An instance of a named tuple's class, its places not filled yet."""
    made = PyType_GenericAlloc(<PyTypeObject *><PyObject *>of, size)
    FORGET_HASH(made)
    return _at_ease(made)


cdef inline object _at_ease(object made):
    """What is made here of a span, or of several, holds plain values and the like of itself: nothing of that can ever lead back to
    it, so it need not be looked at for garbage.
    """
    PyObject_GC_UnTrack(<void *><PyObject *>made)
    return made


cdef inline bint _has(object value, Py_ssize_t size) noexcept:
    """Whether it is a tuple of this size."""
    return PyTuple_Check(value) and PyTuple_GET_SIZE(value) == size


cdef inline void _set(object made, Py_ssize_t at, object value) noexcept:
    Py_INCREF(value)
    PyTuple_SET_ITEM(made, at, value)


# --- What is known of spans -------------------------------------------------------------------------------------------


cdef object _sound(object learnt):
    """What was learnt, if it has the parts that are taken from it; else that each span is to be told undecoded."""
    if _has(learnt, STENCIL):
        what, facts, row = learnt[0], learnt[3], learnt[4]
        if what == _MODEL:
            if _has(facts, MODEL_FACTS) and (row is None or _has(row, MODEL_ROW)):
                return learnt
        elif what == _TOOL:
            if _has(facts, TOOL_FACTS) and _has(facts[0], 1) and _has(facts[0][0], CALL) and (row is None or _has(row, CALL)):
                return learnt
        elif row is None and (what == _PLAIN or (what == _AGENT and _has(facts, AGENT_FACTS))):
            return learnt
    return _ASK, None, False, None, None


@cython.trashcan(True)  # one may hold the next, and so on: they are freed one after the other, not one inside the other
cdef class Layout:
    """The spans of a scope whose attributes have certain keys, in this order.

    `shared` are the places of the attributes whose values tell what a span is, `own` those of the values that are each span's
    own: input and output tokens, agent, response, call id, arguments, result, conversation; -1 where there is none.
    `learn(values, failed)` gives `(what, kind, failed, facts, row)` for values seen for the first time, as they lie on the wire;
    `row` is what the rows of such calls have in common, None where they are no rows. No `learn`: a span is a place (`is_place`),
    or told undecoded.
    """

    cdef readonly tuple keys
    cdef readonly bint is_place
    cdef object learn
    cdef Layout after, otherwise  # what mostly comes next, and what comes now and then
    cdef int exceptions  # how often, without a break, that was it
    cdef bytes _joined, _ahead
    cdef int _number
    cdef uint16_t _sizes[MOST_KEYS]
    cdef uint32_t _ahead_sizes[MOST_KEYS]
    cdef int _shared_number
    cdef int _shared[MOST_SHARED]
    cdef int _input, _output, _agent, _response, _call, _arguments, _result, conversation
    cdef dict _known
    cdef list _slots

    def __init__(self, tuple keys not None, shared=(), own=(-1,) * 8, learn=None, bint is_place=False):
        cdef int at
        encoded = [(<str>key).encode() for key in keys]
        if len(keys) > MOST_KEYS or len(shared) > MOST_SHARED or any(len(key) > LONGEST_KEY for key in encoded):
            raise ValueError(f"a layout of {len(keys)} keys, {len(shared)} of them shared, is more than there is room for")
        if any(not -1 <= place < len(keys) for place in own) or any(not 0 <= place < len(keys) for place in shared):
            raise ValueError(f"places of {len(keys)} keys that are none: {shared}, {own}")
        self.keys, self.is_place, self.learn = keys, is_place, learn
        ahead = [b"\x0a" + _size_of(len(key)) + key + b"\x12" for key in encoded]
        self._joined, self._ahead, self._number = b"".join(encoded), b"".join(ahead), len(keys)
        for at, key in enumerate(encoded):
            self._sizes[at] = len(key)
            self._ahead_sizes[at] = len(ahead[at])
        self._shared_number = len(shared)
        for at, place in enumerate(shared):
            self._shared[at] = place
        (
            self._input, self._output, self._agent, self._response, self._call, self._arguments, self._result,
            self.conversation,
        ) = own
        self._known, self._slots = {}, [None] * SLOTS

    cdef bint fits(self, Wire *span) noexcept:
        """Whether a span has these keys."""
        cdef int at
        cdef const char *key = PyBytes_AS_STRING(self._joined)
        if span.number != self._number:
            return False
        for at in range(self._number):
            if span.keys[at].size != self._sizes[at] or memcmp(span.keys[at].at, key, self._sizes[at]):
                return False
            key += self._sizes[at]
        return True

    cdef bint reads(self, Part part, Wire *span) noexcept:
        """Whether a span has these keys; then all its parts are noted but its keys."""
        return _wire(part, span, <Place>PyBytes_AS_STRING(self._ahead), self._ahead_sizes, self._number)

    cdef object stencil(self, Wire *span):
        """What spans of these values share; None where they are too long to be kept."""
        cdef uint8_t joined[LONGEST_SHARED + 2 * MOST_SHARED + 9]
        cdef Py_ssize_t size = 1
        cdef int at, place
        cdef uint64_t some, mixed = 0
        cdef Part value, all
        joined[0] = span.status == ERROR
        for at in range(self._shared_number):
            value = span.values[self._shared[at]]
            if size + value.size > LONGEST_SHARED:
                return None
            joined[size] = <uint8_t>(value.size & 255)
            joined[size + 1] = <uint8_t>(value.size >> 8)
            memcpy(joined + size + 2, value.at, value.size)
            size += value.size + 2
        all.at, all.size = joined, size
        memset(joined + size, 0, 8)  # what is read with its last bytes
        for at in range(0, <int>size, 8):
            memcpy(&some, joined + at, 8)
            mixed = (mixed ^ some) * <uint64_t>0x9E3779B97F4A7C15
            mixed ^= mixed >> 29
        at = <int>((mixed ^ (mixed >> 32)) % SLOTS)
        for place in (at, at ^ 1):
            slot = <object>PyList_GET_ITEM(self._slots, place)
            if slot is not None and _is(all, <bytes>PyTuple_GET_ITEM(slot, 0)):
                return <object>PyTuple_GET_ITEM(slot, 1)
        key = _bytes(all)
        learnt = self._known.get(key)
        if learnt is None:
            values = tuple([_bytes(span.values[self._shared[at]]) for at in range(self._shared_number)])
            learnt = self._known[key] = _sound(self.learn(values, span.status == ERROR))
        if self._slots[at] is not None:
            self._slots[at ^ 1] = self._slots[at]
        self._slots[at] = key, learnt
        return learnt


cdef class Group:
    """The spans of one scope of one resource.

    `layout(keys)` gives the layout of keys seen for the first time; `layouts` keeps those of the scope. `told` is the scope as
    spans in our vocabulary name it, `sender` the resource without its attributes.
    """

    cdef readonly object resource, sender, scope, version, told
    cdef object _make
    cdef dict _layouts
    cdef list _recent
    cdef int _next
    cdef Layout _last

    def __init__(self, resource, sender, scope, version, told, layout, dict layouts not None):
        self.resource, self.sender, self.scope, self.version, self.told = resource, sender, scope, version, told
        self._make, self._layouts, self._recent, self._next = layout, layouts, [], 0

    cdef Layout read(self, Part part, Wire *span):
        """The parts of a span, and its layout; None: it is no sound span, or not as encoders write it."""
        cdef Layout last = self._last, layout = None
        if last is not None:
            layout = last if last.after is None else last.after
            if layout.reads(part, span):
                last.exceptions = 0
            else:
                layout = last.otherwise
                if layout is not None and not layout.reads(part, span):
                    layout = None
                if layout is not None:
                    last.exceptions += 1
                    if last.exceptions == OFTEN:
                        last.after, last.otherwise, last.exceptions = layout, last.after, 0
        if layout is None:
            if not _wire(part, span, NULL, NULL, 0):
                return None
            layout = self._of(span)
            if last is not None:
                last.after, last.otherwise, last.exceptions = layout, last.after, 0
        self._last = layout
        return layout

    cdef Layout _of(self, Wire *span):
        """The layout of a span."""
        cdef Layout layout
        for layout in self._recent:
            if layout.fits(span):
                return layout
        keys = tuple([_bytes(span.keys[at]) for at in range(span.number)])
        layout = self._layouts.get(keys)
        if layout is None:
            layout = self._make(tuple([(<bytes>key).decode() for key in keys]))
            self._layouts[keys] = layout
        if len(self._recent) < MOST_RECENT:
            self._recent.append(layout)
        else:
            self._recent[self._next] = layout
            self._next = (self._next + 1) % MOST_RECENT
        return layout


cdef bytes _size_of(Py_ssize_t size):
    """A length as it lies on the wire."""
    found = bytearray()
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    found.append(size)
    return bytes(found)


# --- Rows -------------------------------------------------------------------------------------------------------------


cdef class Alike:
    """What the rows of one kind of a block are alike in."""

    cdef object shared
    cdef Group group
    cdef bytes conversation
    cdef uint32_t kind, remote, number

    cdef inline bint has(self, Wire *span, Group group, Layout layout) noexcept:
        """Whether a span is surely like them."""
        return span.kind == self.kind and _origin(span) == self.remote and self.shares(span, group, layout)

    cdef inline bint shares(self, Wire *span, Group group, Layout layout) noexcept:
        """Whether a span surely tells what they share."""
        if group is not self.group:
            return False
        if layout.conversation < 0 or self.conversation is None:
            return layout.conversation < 0 and self.conversation is None
        return _is(span.values[layout.conversation], self.conversation)

    cdef tuple told(self):
        return _at_ease((self.shared, _told_remote(self.remote), self.kind))


cdef class Block:
    """The spans of one trace: rows of model and of tool calls, the other spans, and those of which is not known yet what they are.

    `room` and `space` are for how many records, and bytes of texts, there is memory.
    """

    cdef bytes trace
    cdef Alike models, tools
    cdef list told, others, undecided
    cdef int number
    cdef Record *records
    cdef char *texts
    cdef Py_ssize_t rows, room, size, space

    def __dealloc__(self):
        PyMem_Free(self.records)
        PyMem_Free(self.texts)

    cdef Record *add(self, Wire *span, Alike alike, what, bint failed, Part text) except NULL:
        """A row, with its text; no text where that is at no place. Its marks say no more than what it always has."""
        cdef Record *record
        cdef void *more
        cdef Py_ssize_t room
        if self.rows == self.room:
            room = 2 * self.room + 2  # most traces of ordinary requests have a span or two
            more = PyMem_Realloc(self.records, room * sizeof(Record))
            if more is NULL:
                raise MemoryError
            self.records, self.room = <Record *>more, room
        if self.space - self.size < text.size:
            room = 2 * self.space + text.size + 32
            more = PyMem_Realloc(self.texts, room)
            if more is NULL:
                raise MemoryError
            self.texts, self.space = <char *>more, room
        record = self.records + self.rows
        record.told = self.place_of(what)
        memcpy(&record.id, span.id.at, 8)
        record.parent, record.marks = 0, HAS_FAILED if failed else 0
        if span.parent.size and not _is_zero(span.parent.at, 8):
            memcpy(&record.parent, span.parent.at, 8)
            record.marks |= HAS_PARENT
        record.start, record.end = <int64_t>span.start, <int64_t>max(span.start, span.end)
        record.given = record.output = 0
        record.text_at, record.text_size = <uint32_t>self.size, <uint32_t>text.size
        memset(record.unused, 0, sizeof(record.unused))
        if text.at is not NULL:
            memcpy(self.texts + self.size, text.at, text.size)
            self.size += text.size
            record.marks |= HAS_TEXT
        self.rows += 1
        alike.number += 1
        return record

    cdef uint16_t place_of(self, what) except? 0xFFFF:
        """Where it stands what a row tells: most tell what those before them told."""
        cdef Py_ssize_t number = len(self.told), at
        for at in range(number - 1, max(number - 1 - RECENT, -1), -1):
            if PyList_GET_ITEM(self.told, at) == <PyObject *>what:
                return <uint16_t>at
        PyList_Append(self.told, what)
        return <uint16_t>number

    cdef tuple packed(self):
        """Its rows, once: it gives their memory back."""
        cdef Head head
        cdef char *to
        cdef bytes data = PyBytes_FromStringAndSize(NULL, sizeof(Head) + self.rows * sizeof(Record) + self.size)
        head.models, head.tools = self.models.number, self.tools.number
        to = PyBytes_AS_STRING(data)
        memcpy(to, &head, sizeof(Head))
        to += sizeof(Head)
        if self.rows:
            memcpy(to, self.records, self.rows * sizeof(Record))
        if self.size:
            memcpy(to + self.rows * sizeof(Record), self.texts, self.size)
        PyMem_Free(self.records)
        PyMem_Free(self.texts)
        self.records, self.texts, self.room, self.space = NULL, NULL, 0, 0
        return _at_ease((data, _at_ease(tuple(self.told)), self.models.told(), self.tools.told(), self.rows))


cdef class Reading:
    """What one request holds, as far as it is read. `rest` are the spans that are in no block."""

    cdef object undecoded
    cdef dict open
    cdef list blocks, rest
    cdef Block last

    cdef Block block(self, Wire *span):
        """Where a span belongs: spans of a trace mostly come in a row."""
        cdef Block block = self.last
        if block is None or memcmp(span.trace.at, PyBytes_AS_STRING(block.trace), 16):
            trace = _bytes(span.trace)
            found = PyDict_GetItem(self.open, trace)
            if found is NULL:
                block = self._begun(trace)
            else:
                block = <Block><object>found
        if block.number == MOST_OF_A_BLOCK:
            block = self._begun(block.trace)
        self.last = block
        return block

    cdef Block _begun(self, bytes trace):
        cdef Block block = Block.__new__(Block)
        block.trace, block.told, block.others = trace, [], []
        block.models, block.tools = Alike.__new__(Alike), Alike.__new__(Alike)
        PyDict_SetItem(self.open, trace, block)
        PyList_Append(self.blocks, block)
        return block


# --- Spans ------------------------------------------------------------------------------------------------------------


cdef class Scanner:
    """Reads requests: `scan(body)`.

    - `group(resource, scope)` gives the `Group` of the messages of a resource and a scope, undecoded.
    - `unusual(states, events, links)` reads what few spans have, from the bytes of each.
    - `span`, `tokens`, `model`, `agent`, `tool`, `call` are the classes of the named tuples to make.
    - `block(trace, packed, others)` is told the spans of a trace; `mixed(trace, packed, others, undecided)` where of some it is not
      known yet what they are.
    - `kind` is the kind of a place.
    - `text`, `name`, `identifier` read a text that is long or odd; `hashed(call, call_id, arguments, result)` makes a call of
      which content is told; `session` is the class of sessions, `rank` that of one which a conversation tells.
    - `names`, `end`: how the names of spans begin (four letters) and end that are told by their name; `never` is a name that is
      always told undecoded.
    """

    cdef object _group, _unusual, _block, _mixed
    cdef object _span, _tokens, _model, _agent, _tool, _call, _kind
    cdef object _read_text, _read_name, _read_identifier, _hashed, _session, _rank
    cdef frozenset _names
    cdef bytes _end, _never
    cdef dict _groups
    cdef object _last_trace, _last_parent, _last_session, _no_tokens
    cdef bytes _last_conversation

    def __init__(
        self, *, group, unusual, span, tokens, model, agent, tool, call, block, mixed, kind, text, name, identifier,
        hashed, session, rank, frozenset names, bytes end, bytes never,
    ):
        self._group, self._unusual = group, unusual
        self._span, self._tokens, self._model, self._agent = span, tokens, model, agent
        self._tool, self._call, self._kind = tool, call, kind
        sizes = ((span, SPAN), (tokens, TOKENS), (model, MODEL_FACTS), (agent, AGENT_FACTS), (tool, TOOL_FACTS), (call, CALL), (session, SESSION))
        if any(not issubclass(of, tuple) or len(of._fields) != size for of, size in sizes):
            raise TypeError("named tuples have other fields than this module knows")
        self._block, self._mixed = block, mixed
        self._read_text, self._read_name, self._read_identifier = text, name, identifier
        self._hashed, self._session, self._rank = hashed, session, rank
        self._names, self._end, self._never = names, end, never
        self._last_trace = self._last_parent = b""
        self._no_tokens = tokens(None, None)
        self.forget()

    def forget(self):
        """Let go of everything known of spans."""
        self._groups = {}
        self._last_conversation, self._last_session = b"", None

    def scan(self, bytes body not None, undecoded):
        """The spans of a request: its blocks, those that are in none, and whether any in a block was told undecoded. None: it is for
        the decoders in Python.

        A span that no layout tells is what `undecoded` makes of its parts (in the order of `RawSpan`). Raises what the callbacks
        raise, and `UnicodeDecodeError` for a name or a key that is no text.
        """
        cdef Place at = <Place>PyBytes_AS_STRING(body), end = at + PyBytes_GET_SIZE(body)
        cdef Field field
        cdef Reading reading = Reading.__new__(Reading)
        cdef Block block
        reading.undecoded, reading.open, reading.blocks, reading.rest = undecoded, {}, [], []
        while at < end:
            if not _field(&at, end, &field) or field.number != 1 or field.kind != LENGTH:
                return None
            if self._of_resource(field.part, reading) == STRANGE:
                return None
        found, mixed = [], False
        for block in reading.blocks:
            if not block.number:
                continue
            if block.undecided is None:
                found.append(self._block(block.trace, block.packed(), block.others))
            else:
                found.append(self._mixed(block.trace, block.packed(), block.others, block.undecided))
                mixed = True
        return found, reading.rest, mixed

    cdef int _of_resource(self, Part part, Reading reading) except -1:
        cdef Place at = part.at, end = part.at + part.size
        cdef Field field
        cdef bint is_read = False
        resource = b""
        while at < end:
            if not _field(&at, end, &field) or field.kind != LENGTH or field.number > 3:
                return STRANGE
            if field.number == 1:
                if resource:
                    return STRANGE
                resource = _bytes(field.part)
            is_read = is_read or field.number == 2
        if resource and not is_read:
            return STRANGE
        at = part.at
        while at < end:
            _field(&at, end, &field)
            if field.number == 2 and self._of_scope(field.part, resource, reading) == STRANGE:
                return STRANGE
        return GOOD

    cdef int _of_scope(self, Part part, bytes resource, Reading reading) except -1:
        cdef Place at = part.at, end = part.at + part.size
        cdef Field field
        cdef Wire span
        cdef Group group
        cdef Layout layout
        cdef bint is_read = False
        scope = b""
        group = None
        while at < end:
            if not _field(&at, end, &field) or field.kind != LENGTH or field.number > 3 or (field.number == 1 and is_read):
                return STRANGE
            if field.number == 1:
                if scope:
                    return STRANGE
                scope = _bytes(field.part)
            if field.number != 2:
                continue
            if not is_read:
                group, is_read = self._known(resource, scope), True
            layout = group.read(field.part, &span)
            if layout is None:
                return STRANGE
            if not self._take(&span, group, layout, reading):
                self._take_undecoded(&span, field.part, group, layout, reading)
        if not is_read:
            self._known(resource, scope)
        return GOOD

    cdef Group _known(self, bytes resource, bytes scope):
        key = (resource, scope)
        found = self._groups.get(key)
        if found is None:
            found = self._group(resource, scope)
            if len(resource) + len(scope) <= LONGEST_GROUP:
                if len(self._groups) >= MOST_GROUPS:
                    self._groups.clear()
                self._groups[key] = found
        return found

    cdef bint _take(self, Wire *span, Group group, Layout layout, Reading reading) except -1:
        """Put a span where it belongs. False: no layout tells what it is."""
        cdef Block block
        cdef int what, answer
        if span.unusual:
            return False
        if layout.is_place:
            if self._is_told_by_name(span):
                return False
            PyList_Append(reading.rest, self._made(span, group, self._kind, span.status == ERROR, None, None))
            return True
        if layout.learn is None or _is(span.name, self._never):
            return False
        stencil = layout.stencil(span)
        if stencil is None:
            return False
        _check_text(span.name)
        what = <object>PyTuple_GET_ITEM(stencil, 0)
        row = <object>PyTuple_GET_ITEM(stencil, 4)
        block = None
        if row is not None:
            block = reading.block(span)
            if what == _MODEL:
                answer = self._model_row(span, group, layout, row, <object>PyTuple_GET_ITEM(stencil, 2), block)
            else:
                answer = self._tool_row(span, group, layout, row, block)
            if answer == GOOD:
                block.number += 1
                return True
            if answer == STRANGE:
                return False
        made = self._filled(span, group, layout, stencil)
        if made is None:
            return False
        if <object>PyTuple_GET_ITEM(stencil, 1) is self._kind:
            PyList_Append(reading.rest, made)
            return True
        if block is None:
            block = reading.block(span)
        PyList_Append(block.others, made)
        block.number += 1
        return True

    cdef int _take_undecoded(self, Wire *span, Part part, Group group, Layout layout, Reading reading) except -1:
        """A span that no layout tells. What is only a place, or names its parent otherwise, is in no block."""
        cdef Block block
        told = reading.undecoded(self._parts(span, part, group, layout))
        if told.kind is self._kind or told.link is not None:
            PyList_Append(reading.rest, told)
            return 0
        block = reading.block(span)
        if block.undecided is None:
            block.undecided = []
        PyList_Append(block.undecided, told)
        block.number += 1
        return 0

    # --- Rows ---------------------------------------------------------------------------------------------------------
    # STRANGE: a value of another type than it should have; the span is told undecoded. APART: it is not like the other rows.

    cdef int _model_row(self, Wire *span, Group group, Layout layout, row, failed, Block block) except -1:
        cdef Part text
        cdef Alike alike = block.models
        cdef Record *record
        cdef int answer
        cdef int64_t given = 0, output = 0
        response = None
        if layout._input >= 0 and not _integer(span.values[layout._input], &given):
            return STRANGE
        if layout._output >= 0 and not _integer(span.values[layout._output], &output):
            return STRANGE
        text.at, text.size = NULL, 0
        if layout._response >= 0:
            if not _text(span.values[layout._response], &text):
                return STRANGE
            response = _said(&text, self._read_text)
        if not alike.has(span, group, layout):
            answer = self._joins(span, group, layout, block, alike)
            if answer != GOOD:
                return answer
        record = block.add(span, alike, row, failed, text)
        if layout._input >= 0:
            record.given = given
            record.marks |= HAS_INPUT
        if layout._output >= 0:
            record.output = output
            record.marks |= HAS_OUTPUT
        return GOOD

    cdef int _tool_row(self, Wire *span, Group group, Layout layout, call, Block block) except -1:
        cdef Part text, long
        cdef Alike alike = block.tools
        cdef Record *record
        cdef int answer
        call_id = arguments = result = None
        text.at, text.size = NULL, 0
        if layout._call >= 0:
            if not _text(span.values[layout._call], &text):
                return STRANGE
            call_id = _said(&text, self._read_identifier)
        if layout._arguments >= 0:
            if not _text(span.values[layout._arguments], &long):
                return STRANGE
            arguments = _string(long)
        if layout._result >= 0:
            if not _text(span.values[layout._result], &long):
                return STRANGE
            result = _string(long)
        if not alike.has(span, group, layout):
            answer = self._joins(span, group, layout, block, alike)
            if answer != GOOD:
                return answer
        if arguments is not None or result is not None:
            call = self._hashed(call, None, arguments, result)
            if not _has(call, CALL):
                raise TypeError("a call has other fields than this module knows")
        record = block.add(span, alike, call, <object>PyTuple_GET_ITEM(call, 3), text)
        record.marks |= IS_TOOL
        return GOOD

    cdef int _joins(self, Wire *span, Group group, Layout layout, Block block, Alike alike) except -1:
        """Whether a span is like the rows that it did not seem to be like; the first is what the others are to be like. Model and
        tool calls mostly share the same.
        """
        cdef Alike others = block.tools if alike is block.models else block.models
        cdef bytes conversation = None
        session = None
        if alike.shared is None and others.shared is not None and others.shares(span, group, layout):
            alike.shared, alike.kind, alike.remote = others.shared, span.kind, _origin(span)
            alike.group, alike.conversation = group, others.conversation
            return GOOD
        if layout.conversation >= 0:
            session = self._session_of(span.values[layout.conversation])
            if session is None:
                return STRANGE
            conversation = _bytes(span.values[layout.conversation])
        shared = _at_ease((group.told, group.sender, session, None, (), None, None, ()))
        if alike.shared is None:
            alike.shared, alike.kind, alike.remote = shared, span.kind, _origin(span)
        elif alike.kind != span.kind or alike.remote != _origin(span) or alike.shared != shared:
            return APART
        alike.group, alike.conversation = group, conversation
        return GOOD

    # --- Other spans --------------------------------------------------------------------------------------------------

    cdef object _filled(self, Wire *span, Group group, Layout layout, stencil):
        """What a stencil says, with what is the span's own. None: one of its values is of another type than it should be."""
        cdef int what = <object>PyTuple_GET_ITEM(stencil, 0)
        failed, facts = <object>PyTuple_GET_ITEM(stencil, 2), <object>PyTuple_GET_ITEM(stencil, 3)
        if what == _MODEL:
            facts = self._model_of(span, layout, facts)
        elif what == _TOOL:
            facts = self._tool_of(span, layout, facts)
            failed = facts[0][0].failed if facts is not None else failed
        elif what == _AGENT:
            facts = self._agent_of(span, layout, facts)
        if what == _ASK or (facts is None and what != _PLAIN):
            return None
        session = None
        if layout.conversation >= 0:
            session = self._session_of(span.values[layout.conversation])
            if session is None:
                return None
        return self._made(span, group, <object>PyTuple_GET_ITEM(stencil, 1), failed, facts, session)

    cdef bint _is_told_by_name(self, Wire *span):
        cdef Part name = span.name
        cdef Part head = name
        cdef Py_ssize_t end = PyBytes_GET_SIZE(self._end)
        _check_text(name)
        head.size = min(name.size, 4)
        if name.size >= end and memcmp(name.at + name.size - end, PyBytes_AS_STRING(self._end), end) == 0:
            return True
        return _bytes(head) in self._names

    cdef object _made(self, Wire *span, Group group, kind, failed, facts, session):
        made = _named(self._span, SPAN)
        _set(made, 0, self._trace(span))
        _set(made, 1, _bytes(span.id))
        _set(made, 2, self._parent(span))
        _set(made, 3, _told_remote(span.flags))
        _set(made, 4, span.start)
        _set(made, 5, max(span.start, span.end))
        _set(made, 6, span.kind)
        _set(made, 7, kind)
        _set(made, 8, failed)
        _set(made, 9, facts)
        _set(made, 10, group.told)
        _set(made, 11, group.sender)
        _set(made, 12, session)
        _set(made, 13, None)
        _set(made, 14, ())
        _set(made, 15, None)
        _set(made, 16, None)
        _set(made, 17, ())
        return made

    cdef object _trace(self, Wire *span):
        """The spans of a trace that come in a row share its id."""
        if not self._last_trace or memcmp(span.trace.at, PyBytes_AS_STRING(self._last_trace), 16):
            self._last_trace = _bytes(span.trace)
        return self._last_trace

    cdef object _parent(self, Wire *span):
        if span.parent.size == 0 or _is_zero(span.parent.at, 8):
            return None
        if not self._last_parent or memcmp(span.parent.at, PyBytes_AS_STRING(self._last_parent), 8):
            self._last_parent = _bytes(span.parent)
        return self._last_parent

    # --- What is a span's own -----------------------------------------------------------------------------------------
    # None: a value of another type than it should have; the span is told undecoded.

    cdef object _model_of(self, Wire *span, Layout layout, template):
        cdef Part text
        tokens = self._tokens_of(span, layout)
        if tokens is None:
            return None
        response = None
        if layout._response >= 0:
            if not _text(span.values[layout._response], &text):
                return None
            response = _plain(text, self._read_text)
        made = _copy_but(self._model, template, 2, tokens, 8, response)
        return made

    cdef object _agent_of(self, Wire *span, Layout layout, template):
        cdef Part text
        tokens = None
        if layout._input >= 0 or layout._output >= 0:
            tokens = self._tokens_of(span, layout)
            if tokens is None:
                return None
        name = None
        if layout._agent >= 0:
            if not _text(span.values[layout._agent], &text):
                return None
            name = self._read_name(_string(text)) if UUID_SHORT <= text.size <= UUID_LONG else _plain(text, self._read_name)
        return _copy_but(self._agent, template, 0, name, 4, tokens)

    cdef object _tool_of(self, Wire *span, Layout layout, template):
        cdef Part text
        call_id = arguments = result = None
        if layout._call >= 0:
            if not _text(span.values[layout._call], &text):
                return None
            call_id = _plain(text, self._read_identifier)
        if layout._arguments >= 0:
            if not _text(span.values[layout._arguments], &text):
                return None
            arguments = _string(text)
        if layout._result >= 0:
            if not _text(span.values[layout._result], &text):
                return None
            result = _string(text)
        call = <object>PyTuple_GET_ITEM(<object>PyTuple_GET_ITEM(template, 0), 0)
        if arguments is None and result is None:
            call = _copy_but(self._call, call, 1, call_id, 1, call_id)
        else:
            call = self._hashed(call, call_id, arguments, result)
        return _copy_but(self._tool, template, 0, (call,), 0, (call,))

    cdef object _tokens_of(self, Wire *span, Layout layout):
        cdef int64_t given = 0, output = 0
        if layout._input < 0 and layout._output < 0:
            return self._no_tokens
        if layout._input >= 0 and not _integer(span.values[layout._input], &given):
            return None
        if layout._output >= 0 and not _integer(span.values[layout._output], &output):
            return None
        made = _named(self._tokens, TOKENS)
        _set(made, 0, None if layout._input < 0 else given)
        _set(made, 1, None if layout._output < 0 else output)
        return made

    cdef object _session_of(self, Part value):
        """The session of a conversation; spans in a row share it."""
        cdef Part text
        if _is(value, self._last_conversation):
            return self._last_session
        found = _plain(text, self._read_identifier) if _text(value, &text) else None
        if found is None:
            return None
        session = _named(self._session, SESSION)
        _set(session, 0, self._rank)
        _set(session, 1, found)
        self._last_session, self._last_conversation = session, _bytes(value)
        return session

    # --- Spans that no layout tells -----------------------------------------------------------------------------------

    cdef tuple _parts(self, Wire *span, Part part, Group group, Layout layout):
        cdef int at
        cdef dict values = {}
        for at in range(span.number):
            PyDict_SetItem(values, <object>PyTuple_GET_ITEM(layout.keys, at), _bytes(span.values[at]))
        state, events, links = self._rest(part) if span.unusual else ("", (), ())
        return (
            self._trace(span), _bytes(span.id), self._parent(span), _string(span.name), span.kind, span.start,
            max(span.start, span.end), span.status, _told_remote(span.flags), values, events, links, group.scope, group.version,
            group.resource, state,
        )

    cdef object _rest(self, Part part):
        """What few spans have: trace states, events, links."""
        cdef Place at = part.at, end = part.at + part.size
        cdef Field field
        states, events, links = [], [], []
        while at < end:
            _field(&at, end, &field)
            if field.kind == LENGTH and field.number == 3:
                states.append(_bytes(field.part))
            elif field.kind == LENGTH and field.number == 11:
                events.append(_bytes(field.part))
            elif field.kind == LENGTH and field.number == 13:
                links.append(_bytes(field.part))
        return self._unusual(states, events, links)


cdef inline uint32_t _origin(Wire *span) noexcept nogil:
    """The flags that tell where a parent is."""
    return span.flags & (REMOTE_KNOWN | REMOTE) if span.flags & REMOTE_KNOWN else 0


cdef inline object _told_remote(uint32_t flags):
    """Whether a parent is in another process; None: not known."""
    if not flags & REMOTE_KNOWN:
        return None
    return True if flags & REMOTE else False


cdef inline object _plain(Part text, reader):
    """A short text that means itself; any other is for its reader to say. (Four letters may be `null` or `None`.)"""
    found = _string(text)
    return found if 0 < text.size <= LONGEST_PLAIN and text.size != 4 else reader(found)


cdef inline object _said(Part *text, reader):
    """See to it that a text is sound, and is what its reader says of it where it does not mean itself; at no place where that is
    nothing. What is given must be held as long as the text.
    """
    if 0 < text.size <= LONGEST_PLAIN and text.size != 4:
        _check_text(text[0])
        return None
    found = reader(_string(text[0]))
    if found is None:
        text.at, text.size = NULL, 0
        return None
    held = (<str>found).encode()
    text.at, text.size = <Place>PyBytes_AS_STRING(held), PyBytes_GET_SIZE(held)
    return held


cdef inline object _copy_but(object of, template, Py_ssize_t one, first, Py_ssize_t other, second):
    """A named tuple like another, with other values in two places."""
    cdef Py_ssize_t size = PyTuple_GET_SIZE(template), at
    made = _named(of, size)
    for at in range(size):
        if at == one:
            _set(made, at, first)
        elif at == other:
            _set(made, at, second)
        else:
            _set(made, at, <object>PyTuple_GET_ITEM(template, at))
    return made
