# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""OTLP trace requests in protobuf → spans, without a message object or an attribute object between.

One pass over the bytes. A span whose attributes have the keys of spans before it is read by what was worked out for those
(`Layout`); the values that such spans share are looked up together, and only what is the span's own becomes an object.

It knows the wire format and nothing else: which attributes matter, and what a span is, is told to it (`Scanner`). It reads what
every encoder writes. Whatever is encoded in another way, or is not sound, it leaves to the decoders in Python: it then gives None
for the whole request and has changed nothing. So there is one judge of what is malformed.

All reading goes through `_varint` and `_field`, which look at the end of the bytes before every step.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcmp, memcpy

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    object PyType_GenericAlloc(PyTypeObject *of, Py_ssize_t size)
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)


cdef enum:
    MOST_KEYS = 128
    MOST_SHARED = 8
    MOST_RECENT = 4
    LONGEST_KEY = 0xFFFF
    LONGEST_SHARED = 1024
    LONGEST_PLAIN = 256
    LONGEST_GROUP = 16384
    MOST_GROUPS = 1024
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

ASK, MODEL, TOOL, AGENT, PLAIN = range(5)
"""What is made of a stencil: nothing, a model call, a tool call or an agent, which are filled in, or what it says as it is."""
cdef int _ASK = 0, _MODEL = 1, _TOOL = 2, _AGENT = 3, _PLAIN = 4

cdef enum Answer:
    STRANGE = 0  # not what encoders write: for the decoders in Python
    GOOD = 1

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
    cdef Py_ssize_t number
    for number in range(size):
        if at[number]:
            return False
    return True


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


cdef bint _wire(Part part, Wire *span) noexcept nogil:
    """The parts of a sound span. False: it is none, or not as encoders write it."""
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    span.trace.size = span.id.size = span.parent.size = span.name.size = 0
    span.name.at = at
    span.start = span.end = 0
    span.kind = span.flags = 0
    span.status = span.number = 0
    span.unusual = False
    while at < end:
        if not _field(&at, end, &field):
            return False
        if field.kind == LENGTH:
            if field.number == 9:
                if span.number == MOST_KEYS:
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
    return _is_sound(span)


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


cdef inline object _named(object of, Py_ssize_t size):
    """An instance of a named tuple's class, its places not filled yet."""
    return PyType_GenericAlloc(<PyTypeObject *><PyObject *>of, size)


cdef inline void _set(object made, Py_ssize_t at, object value) noexcept:
    Py_INCREF(value)
    PyTuple_SET_ITEM(made, at, value)


# --- What is known of spans -------------------------------------------------------------------------------------------


cdef class Layout:
    """The spans of a scope whose attributes have certain keys, in this order.

    `shared` are the places of the attributes whose values tell what a span is, `own` those of the values that are each span's
    own: input and output tokens, agent, response, call id, arguments, result, conversation; -1 where there is none.
    `learn(values, failed)` gives `(what, kind, failed, facts)` for values seen for the first time, as they lie on the wire.
    No `learn`: a span is a place (`is_place`), or told undecoded.
    """

    cdef readonly tuple keys
    cdef readonly bint is_place
    cdef object learn
    cdef bytes _joined
    cdef int _number
    cdef uint16_t _sizes[MOST_KEYS]
    cdef int _shared_number
    cdef int _shared[MOST_SHARED]
    cdef int _input, _output, _agent, _response, _call, _arguments, _result, conversation
    cdef dict _well, _failed

    def __init__(self, tuple keys not None, shared=(), own=(-1,) * 8, learn=None, bint is_place=False):
        cdef int at
        encoded = [(<str>key).encode() for key in keys]
        if len(keys) > MOST_KEYS or len(shared) > MOST_SHARED or any(len(key) > LONGEST_KEY for key in encoded):
            raise ValueError(f"a layout of {len(keys)} keys, {len(shared)} of them shared, is more than there is room for")
        if any(not -1 <= place < len(keys) for place in own) or any(not 0 <= place < len(keys) for place in shared):
            raise ValueError(f"places of {len(keys)} keys that are none: {shared}, {own}")
        self.keys, self.is_place, self.learn = keys, is_place, learn
        self._joined, self._number = b"".join(encoded), len(keys)
        for at, key in enumerate(encoded):
            self._sizes[at] = len(key)
        self._shared_number = len(shared)
        for at, place in enumerate(shared):
            self._shared[at] = place
        (
            self._input, self._output, self._agent, self._response, self._call, self._arguments, self._result,
            self.conversation,
        ) = own
        self._well, self._failed = {}, {}

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

    cdef object stencil(self, Wire *span):
        """What spans of these values share; None where they are too long to be kept."""
        cdef uint8_t joined[LONGEST_SHARED + 2 * MOST_SHARED]
        cdef Py_ssize_t size = 0
        cdef int at
        cdef Part value
        for at in range(self._shared_number):
            value = span.values[self._shared[at]]
            if size + value.size > LONGEST_SHARED:
                return None
            joined[size] = <uint8_t>(value.size & 255)
            joined[size + 1] = <uint8_t>(value.size >> 8)
            memcpy(joined + size + 2, value.at, value.size)
            size += value.size + 2
        known = self._failed if span.status == ERROR else self._well
        key = PyBytes_FromStringAndSize(<const char *>joined, size)
        cdef PyObject *found = PyDict_GetItem(known, key)
        if found is not NULL:
            return <object>found
        values = tuple([_bytes(span.values[self._shared[at]]) for at in range(self._shared_number)])
        learnt = self.learn(values, span.status == ERROR)
        PyDict_SetItem(known, key, learnt)
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

    def __init__(self, resource, sender, scope, version, told, layout, dict layouts not None):
        self.resource, self.sender, self.scope, self.version, self.told = resource, sender, scope, version, told
        self._make, self._layouts, self._recent, self._next = layout, layouts, [], 0

    cdef Layout of(self, Wire *span):
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


# --- Spans ------------------------------------------------------------------------------------------------------------


cdef class Scanner:
    """Reads requests: `scan(body)`.

    - `group(resource, scope)` gives the `Group` of the messages of a resource and a scope, undecoded.
    - `unusual(states, events, links)` reads what few spans have, from the bytes of each.
    - `span`, `tokens`, `model`, `agent`, `tool`, `call` are the classes of the named tuples to make.
    - `kind` is the kind of a place.
    - `text`, `name`, `identifier` read a text that is long or odd; `hashed(call, call_id, arguments, result)` makes a call of
      which content is told; `session(text)` a session.
    - `names`, `end`: how the names of spans begin (four letters) and end that are told by their name; `never` is a name that is
      always told undecoded.
    """

    cdef object _group, _unusual
    cdef object _span, _tokens, _model, _agent, _tool, _call, _kind
    cdef object _read_text, _read_name, _read_identifier, _hashed, _session
    cdef frozenset _names
    cdef bytes _end, _never
    cdef dict _groups
    cdef object _last_trace, _last_parent, _last_session, _no_tokens
    cdef bytes _last_conversation

    def __init__(
        self, *, group, unusual, span, tokens, model, agent, tool, call, kind, text, name, identifier, hashed, session,
        frozenset names, bytes end, bytes never,
    ):
        self._group, self._unusual = group, unusual
        self._span, self._tokens, self._model, self._agent = span, tokens, model, agent
        self._tool, self._call, self._kind = tool, call, kind
        self._read_text, self._read_name, self._read_identifier = text, name, identifier
        self._hashed, self._session = hashed, session
        self._names, self._end, self._never = names, end, never
        self._last_trace = self._last_parent = b""
        self._no_tokens = tokens(None, None)
        self.forget()

    def forget(self):
        """Let go of everything known of spans."""
        self._groups = {}
        self._last_conversation, self._last_session = b"", None

    def scan(self, bytes body not None, undecoded):
        """The spans of a request in its order, or None: it is for the decoders in Python.

        A span that no layout tells is what `undecoded` makes of its parts (in the order of `RawSpan`). Raises what the callbacks
        raise, and `UnicodeDecodeError` for a name or a key that is no text.
        """
        cdef Place at = <Place>PyBytes_AS_STRING(body), end = at + PyBytes_GET_SIZE(body)
        cdef Field field
        cdef list found = []
        while at < end:
            if not _field(&at, end, &field) or field.number != 1 or field.kind != LENGTH:
                return None
            if self._of_resource(field.part, undecoded, found) == STRANGE:
                return None
        return found

    cdef int _of_resource(self, Part part, undecoded, list found) except -1:
        cdef Place at = part.at, end = part.at + part.size
        cdef Field field
        cdef bint is_read = False
        resource = b""
        while at < end:
            if not _field(&at, end, &field) or field.kind != LENGTH or field.number > 3:
                return STRANGE
            if field.number == 1:
                resource = resource + _bytes(field.part) if resource else _bytes(field.part)
            is_read = is_read or field.number == 2
        if resource and not is_read:
            return STRANGE
        at = part.at
        while at < end:
            _field(&at, end, &field)
            if field.number == 2 and self._of_scope(field.part, resource, undecoded, found) == STRANGE:
                return STRANGE
        return GOOD

    cdef int _of_scope(self, Part part, bytes resource, undecoded, list found) except -1:
        cdef Place at = part.at, end = part.at + part.size
        cdef Field field
        cdef Wire span
        cdef Group group
        scope = b""
        while at < end:
            if not _field(&at, end, &field) or field.kind != LENGTH or field.number > 3:
                return STRANGE
            if field.number == 1:
                scope = scope + _bytes(field.part) if scope else _bytes(field.part)
        group = self._known(resource, scope)
        at = part.at
        while at < end:
            _field(&at, end, &field)
            if field.number != 2:
                continue
            if not _wire(field.part, &span):
                return STRANGE
            told = self._told(&span, group)
            found.append(undecoded(self._parts(&span, field.part, group)) if told is None else told)
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

    cdef object _told(self, Wire *span, Group group):
        """The span in our vocabulary, None where no layout tells it."""
        cdef Layout layout = group.of(span)
        if span.unusual:
            return None
        if layout.is_place:
            return None if self._is_told_by_name(span) else self._made(
                span, group, self._kind, span.status == ERROR, None, None
            )
        if layout.learn is None or _is(span.name, self._never):
            return None
        stencil = layout.stencil(span)
        if stencil is None:
            return None
        _string(span.name)
        return self._filled(span, group, layout, stencil)

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
        _string(name)
        head.size = min(name.size, 4)
        if name.size >= end and memcmp(name.at + name.size - end, PyBytes_AS_STRING(self._end), end) == 0:
            return True
        return _bytes(head) in self._names

    cdef object _made(self, Wire *span, Group group, kind, failed, facts, session):
        made = _named(self._span, 18)
        _set(made, 0, self._trace(span))
        _set(made, 1, _bytes(span.id))
        _set(made, 2, self._parent(span))
        _set(made, 3, _remote(span))
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
        if memcmp(span.trace.at, PyBytes_AS_STRING(self._last_trace), 16) or not self._last_trace:
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
        cdef int64_t number
        if layout._input < 0 and layout._output < 0:
            return self._no_tokens
        given = output = None
        if layout._input >= 0:
            if not _integer(span.values[layout._input], &number):
                return None
            given = number
        if layout._output >= 0:
            if not _integer(span.values[layout._output], &number):
                return None
            output = number
        made = _named(self._tokens, 2)
        _set(made, 0, given)
        _set(made, 1, output)
        return made

    cdef object _session_of(self, Part value):
        """The session of a conversation; spans in a row share it."""
        cdef Part text
        if _is(value, self._last_conversation):
            return self._last_session
        session = self._session(_string(text)) if _text(value, &text) else None
        if session is not None:
            self._last_session, self._last_conversation = session, _bytes(value)
        return session

    # --- Spans that no layout tells -----------------------------------------------------------------------------------

    cdef tuple _parts(self, Wire *span, Part part, Group group):
        cdef int at
        cdef Layout layout = group.of(span)
        cdef dict values = {}
        for at in range(span.number):
            PyDict_SetItem(values, <object>PyTuple_GET_ITEM(layout.keys, at), _bytes(span.values[at]))
        state, events, links = self._rest(part) if span.unusual else ("", (), ())
        return (
            self._trace(span), _bytes(span.id), self._parent(span), _string(span.name), span.kind, span.start,
            max(span.start, span.end), span.status, _remote(span), values, events, links, group.scope, group.version,
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


cdef inline object _remote(Wire *span):
    if not span.flags & REMOTE_KNOWN:
        return None
    return True if span.flags & REMOTE else False


cdef inline object _plain(Part text, reader):
    """A short text that means itself; any other is for its reader to say. (Four letters may be `null` or `None`.)"""
    found = _string(text)
    return found if 0 < text.size <= LONGEST_PLAIN and text.size != 4 else reader(found)


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
