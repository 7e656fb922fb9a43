# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""OTLP trace requests in protobuf → spans in the vocabulary of the service, in one pass over the bytes.

It knows the wire format and no convention: for each instrumentation scope and set of keys it asks once which attributes to read,
and for each combination of the values that tell spans apart once what such spans are; into the answer it puts what is each span's
own. It keeps nothing of a span. Whatever is encoded in another way than encoders do, it leaves to the decoder in Python: it then
returns None for the whole request and has changed nothing.

All reading goes through `_varint` and `_field`, which check the end of the bytes before every step.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

FIELDS = {
    "AgentSpan": (
        "trace_id", "span_id", "parent_id", "parent_remote", "start_ns", "end_ns", "span_kind", "kind", "failed", "facts",
        "scope", "resource", "session", "notes", "evaluations", "link", "threshold", "extra",
    ),
    "Call": ("name", "call_id", "arguments", "failed", "result", "effect"),
    "HashedResult": ("digest", "failed", "error_word", "is_soft_error"),
    "Own": ("reader", "keys", "joined", "once", "of_events"),
    "Session": ("rank", "id"),
    "Template": ("kind", "failed", "facts", "single", "others", "build", "session", "has_result"),
    "TextRules": ("wrapped", "unusual", "max_text", "free_text_length", "free_text_spaces"),
    "ToolFacts": ("calls", "finish"),
}
"""The fields of what is passed in and out. Where the package has other ones, this is not used."""

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

include "hashing.pxi"

cdef enum:
    MAX_KEYS = 128
    MAX_KEY_BYTES = 8192
    MAX_ASKED = 1024
    MAX_TEXT = 256  # characters of a name or an id; longer ones are shortened by Python
    MAX_GROUPS = 1024
    LARGE = 1 << 20  # as `sources.otlp_protobuf.check` says
    LEAST_SPAN = 40
    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    FIXED32 = 5
    TEXT = 0x0A
    INTEGER = 0x18
    ERROR = 2
    REMOTE_KNOWN = 0x100
    REMOTE = 0x200

cdef uint64_t LATEST = 0x7FFFFFFFFFFFFFFF

cdef enum Reads:  # what a reader does, as far as it is known here
    UNKNOWN
    AN_INTEGER
    A_TEXT
    AN_ID
    AS_IT_IS
    ARGUMENTS
    RESULT

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
    bint has_events, has_message, is_unusual
    int number
    Part keys[MAX_KEYS]
    Part values[MAX_KEYS]


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
    if not _varint(&here, end, &tag) or tag > 0x7FFF or tag < 8:
        return False
    field.number = <int>(tag >> 3)
    field.kind = <int>(tag & 7)
    if field.kind == LENGTH:
        if not _varint(&here, end, &field.value) or field.value > <uint64_t>(end - here):
            return False
        field.part.at, field.part.size = here, <Py_ssize_t>field.value
        here += field.part.size
    elif field.kind == VARINT:
        if not _varint(&here, end, &field.value):
            return False
    elif field.kind == FIXED64 or field.kind == FIXED32:
        field.value = 0
        if end - here < (8 if field.kind == FIXED64 else 4):
            return False
        memcpy(&field.value, here, 8 if field.kind == FIXED64 else 4)
        here += 8 if field.kind == FIXED64 else 4
    else:
        return False
    at[0] = here
    return True


cdef inline uint8_t _bits(const uint8_t *at, Py_ssize_t size) noexcept nogil:
    """The bits that any of some bytes has: none where all are zero, fewer than 128 where all are ASCII."""
    cdef uint8_t found = 0
    for place in range(size):
        found |= at[place]
    return found


cdef bint _attribute(Part part, Part *key, Part *value) noexcept nogil:
    """Key and value of a pair. False: it has another part, one in another type, or one of them twice."""
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    cdef int seen = 0
    key.at = value.at = at
    key.size = value.size = 0
    while at < end:
        if not _field(&at, end, &field) or field.kind != LENGTH or field.number > 2 or seen & field.number:
            return False
        seen |= field.number
        if field.number == 1:
            key[0] = field.part
        else:
            value[0] = field.part
    return True


cdef bint _status(Part part, Wire *span) noexcept nogil:
    """The code of a status. The message of an error is read as an event."""
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    cdef bint has_message = False
    span.status = 0
    while at < end:
        if not _field(&at, end, &field):
            return False
        if field.number == 3 and field.kind == VARINT and field.value < 128:
            span.status = <int>field.value
        elif field.number == 2 and field.kind == LENGTH:
            has_message = field.part.size != 0
        else:
            return False
    if has_message and span.status == ERROR:
        span.has_events = span.has_message = True
    return True


cdef bint _is_common_event(Part part) noexcept nogil:
    """Whether an event is as encoders write it, and no evaluation and no part of a request: then nothing of it is read, unless a
    convention asks for it."""
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    cdef Part key, value
    while at < end:
        if not _field(&at, end, &field):
            return False
        if field.number == 3 and field.kind == LENGTH:
            if not _attribute(field.part, &key, &value) or _bits(key.at, key.size) > 127:
                return False
        elif field.number == 2 and field.kind == LENGTH:
            if _bits(field.part.at, field.part.size) > 127 or (
                field.part.size > 7 and memcmp(field.part.at, b"gen_ai.", 7) == 0
            ):
                return False
        elif not (field.number == 1 and field.kind == FIXED64 or field.number == 4 and field.kind == VARINT):
            return False
    return True


cdef bint _wire(Part part, Wire *span) noexcept nogil:
    """The parts of a span. False: it is not as encoders write it."""
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    memset(span, 0, <size_t>(<char *>&span.keys[0] - <char *>span))
    while at < end:
        if not _field(&at, end, &field):
            return False
        if field.number == 9 and field.kind == LENGTH:
            if span.number == MAX_KEYS or not _attribute(
                field.part, &span.keys[span.number], &span.values[span.number]
            ):
                return False
            span.number += 1
        elif field.kind == LENGTH:
            if field.number == 1:
                span.trace = field.part
            elif field.number == 2:
                span.id = field.part
            elif field.number == 4:
                span.parent = field.part
            elif field.number == 5 and span.name.size == 0:
                span.name = field.part
            elif field.number == 11:
                span.has_events = True
                if not _is_common_event(field.part):
                    span.is_unusual = True
            elif field.number == 3 or field.number == 13:
                span.is_unusual = True
            elif field.number != 15 or not _status(field.part, span):
                return False
        elif field.kind == VARINT:
            if field.number == 6 and field.value < 128:
                span.kind = <uint32_t>field.value
            elif field.number == 10 or field.number == 12 or field.number == 14:
                span.is_unusual = span.is_unusual or field.value != 0
            else:
                return False
        elif field.kind == FIXED64 and field.number == 7:
            span.start = field.value
        elif field.kind == FIXED64 and field.number == 8:
            span.end = field.value
        elif field.kind == FIXED32 and field.number == 16:
            span.flags = <uint32_t>field.value
        else:
            return False
    return True


cdef bint _is_sound(Wire *span) noexcept nogil:
    if span.trace.size != 16 or span.id.size != 8 or (span.parent.size != 0 and span.parent.size != 8):
        return False
    if not (_bits(span.trace.at, 16) and _bits(span.id.at, 8)):
        return False
    return 0 < span.start <= LATEST and 0 < span.end <= LATEST


# --- Values -----------------------------------------------------------------------------------------------------------


cdef inline bytes _bytes(Part part):
    return PyBytes_FromStringAndSize(<const char *>part.at, part.size)


cdef inline object _string(Part text):
    """Raises `UnicodeDecodeError` where the bytes are no text."""
    return PyUnicode_DecodeUTF8(<const char *>text.at, text.size, NULL)


cdef inline bint _begins_like_an_id(str text):
    """Whether a text begins like most ids, and unlike a mask that stands in the place of one."""
    cdef Py_UCS4 first = text[0]
    return 97 <= first <= 122 or 48 <= first <= 57


cdef inline bint _text(Part value, Part *text) noexcept nogil:
    """The bytes of a value that is a text, and nothing else."""
    cdef Place at = value.at + 1, end = value.at + value.size
    cdef uint64_t size
    if value.size < 2 or value.at[0] != TEXT or not _varint(&at, end, &size) or size != <uint64_t>(end - at):
        return False
    text.at, text.size = at, end - at
    return True


cdef inline bint _join(uint8_t *joined, Py_ssize_t *size, Py_ssize_t most, Part part) noexcept nogil:
    """Append a length and the bytes that long. False: there is no room for them."""
    cdef uint16_t length = <uint16_t>part.size
    if size[0] + part.size + 2 > most:
        return False
    memcpy(joined + size[0], &length, 2)
    memcpy(joined + size[0] + 2, part.at, length)
    size[0] += 2 + length
    return True


# --- What is known of spans -------------------------------------------------------------------------------------------


cdef class Own:
    """A part that is read from each span: its name, what reads it, and the places of its attributes, -1 for an absent one."""

    cdef int reads
    cdef object name, own, reader
    cdef bint is_joined, is_once, of_events
    cdef list at

    def __init__(self, name, own, dict places, dict known):
        self.name, self.own = name, own
        self.reader, self.is_joined, self.is_once, self.of_events = own.reader, own.joined, own.once, own.of_events
        self.reads = known.get(self.reader, UNKNOWN)
        self.at = [places.get(key, -1) for key in own.keys]


cdef class Filled:
    """A template for the spans of one layout."""

    cdef object kind, failed, facts, build, session
    cdef list own
    cdef bint is_tool, has_result, reads_events
    cdef Own own_session


cdef class Layout:
    """How the spans of one scope and one set of keys are read, as far as their `plan` knows it; None: by Python, as a whole.

    `asked` are the places of the values that answers depend on. Where the plan learns of more, another layout takes its place.
    """

    cdef object plan
    cdef bytes key
    cdef tuple keys
    cdef dict places, templates
    cdef bint by_name, by_kind
    cdef int version, asked_number, session_number
    cdef int asked[MAX_KEYS], session_at[4], session_rank[4]
    cdef list derived

    def __init__(self, plan, bytes key, tuple keys):
        self.plan, self.key, self.keys, self.templates = plan, key, keys, {}
        self.places = {name: at for at, name in enumerate(keys)}
        if len(self.places) < len(keys) or plan.has_more or plan.is_judged or len(plan.sessions) > 4:
            self.plan = None
            return
        self.version, self.by_name, self.by_kind = plan.version, plan.by_name, plan.by_kind
        self.asked_number, self.session_number = len(plan.asked), len(plan.sessions)
        for at, name in enumerate(plan.asked):
            self.asked[at] = self.places[name]
        for at, (rank, name) in enumerate(plan.sessions):
            self.session_at[at], self.session_rank[at] = self.places[name], rank
        self.derived = [(reader, self.places[name]) for reader, name in plan.derived]


cdef class Group:
    """The spans of one scope of one resource."""

    cdef object resource, sender, scope, name, version
    cdef dict layouts


cdef bint _depends_on_events(plan, Wire *span):
    """Whether answers for spans of a plan depend on the events of this one."""
    return span.has_events and (plan.in_events or (span.status == ERROR and plan.failures))


cdef bytes _owner(Part part, Py_ssize_t *parts, Py_ssize_t most, bint holds_groups):
    """The resource of a resource's spans, or the scope of a scope's, wherever in them it stands. None: Python must read them."""
    cdef Place at = part.at, end = part.at + part.size
    cdef Field field
    cdef bytes owner = b""
    while at < end:
        parts[0] += 1
        if not _field(&at, end, &field) or field.kind != LENGTH or field.number > 3 or parts[0] > most:
            return None
        if field.part.size > LARGE and not (holds_groups and field.number == 2):
            return None
        if field.number == 1:
            owner += _bytes(field.part)
    return owner


cdef class Scanner:
    """Reads requests by a `reader` of conventions; `python` has what this needs of the package (`service.native_decoder`)."""

    cdef object _reader, _python, _span, _tool, _call, _own_type, _session, _decoded, _builder, _generation, _session_found
    cdef object _digest, _read_once, _fault, _raw, _identifier, _rank, _error_word, _hashed_result
    cdef bint _has_soft_errors
    cdef dict _groups, _readers
    cdef object _known
    cdef bytes _last_trace, _last_session
    cdef Rules _rules

    def __init__(self, reader, python):
        self._reader, self._python = reader, python
        self._span, self._tool, self._call, self._session = python.AgentSpan, python.ToolFacts, python.Call, python.Session
        self._decoded, self._fault, self._raw = python.decoded, python.fault, python.raw
        templates, hasher = reader.templates, reader.hasher
        self._digest, self._read_once, self._known = hasher.digest, hasher.once, hasher.known
        self._has_soft_errors = hasher.has_soft_errors
        self._error_word, self._hashed_result = python.error_word, python.HashedResult
        _follow(&self._rules, python.text_rules)
        self._identifier, self._rank, self._own_type = templates.readers[2], reader.convention_rank, templates.own
        self._readers = dict(zip(templates.readers, (AN_INTEGER, A_TEXT, AN_ID, AS_IT_IS, ARGUMENTS, RESULT)))
        self._builder = templates.tool
        self._groups, self._generation = {}, None
        self._last_trace = self._last_session = b""

    def scan(self, bytes body not None):
        """Spans and malformed spans of a request; None where the decoder in Python must read it.

        Raises what Python raises for a resource, a scope or a text that cannot be read: that decoder says what it means.
        """
        cdef Place at = <Place>PyBytes_AS_STRING(body), end = at + PyBytes_GET_SIZE(body)
        cdef Field field
        cdef list spans = [], malformed = []
        if self._generation != self._reader.generation or len(self._groups) > MAX_GROUPS:
            self._groups, self._generation = {}, self._reader.generation
        cdef Py_ssize_t parts = 0, most = end - at  # beyond, Python reads the request, or refuses it
        if most > LARGE:
            most //= LEAST_SPAN
        while at < end:
            if not _field(&at, end, &field) or field.kind != LENGTH or field.number != 1:
                return None
            parts += 1
            if parts > most or not self._resource_spans(field.part, spans, malformed, &parts, most):
                return None
        return spans, malformed

    cdef bint _resource_spans(
        self, Part part, list spans, list malformed, Py_ssize_t *parts, Py_ssize_t most
    ) except -1:
        cdef Place at = part.at, end = part.at + part.size
        cdef Field field
        cdef bytes resource = _owner(part, parts, most, True)
        if resource is None:
            return False
        while at < end:
            _field(&at, end, &field)
            if field.number == 2 and not self._scope_spans(field.part, resource, spans, malformed, parts, most):
                return False
        return True

    cdef bint _scope_spans(
        self, Part part, bytes resource, list spans, list malformed, Py_ssize_t *parts, Py_ssize_t most
    ) except -1:
        cdef Place at = part.at, end = part.at + part.size
        cdef Field field
        cdef Wire span
        cdef bytes scope = _owner(part, parts, most, False)
        if scope is None:
            return False
        cdef Group group = self._group(resource, scope)
        while at < end:
            _field(&at, end, &field)
            if field.number != 2:
                continue
            if not _wire(field.part, &span):
                return False
            if _is_sound(&span):
                spans.append(self._read(group, &span, field.part))
                continue
            malformed.append(self._fault(_bytes(span.trace), _bytes(span.id), _bytes(span.parent), span.start, span.end))
            _string(span.name)
            for place in range(span.number):
                _string(span.keys[place])
        return True

    cdef Group _group(self, bytes resource, bytes scope):
        cdef Group group = self._groups.get((resource, scope))
        if group is None:
            group = Group()
            group.resource, (group.name, group.version) = self._python.resource_of(resource), self._python.scope_of(scope)
            group.sender = group.resource.sender(group.version)
            group.scope, group.layouts = self._reader.scope(group.name), {}
            if len(resource) + len(scope) <= MAX_KEY_BYTES:
                self._reader.remember(len(resource) + len(scope) + MAX_ASKED)
                self._groups[resource, scope] = group
        return group

    cdef Layout _layout(self, Group group, Wire *span):
        cdef uint8_t joined[MAX_KEY_BYTES]
        cdef Py_ssize_t size = 0
        for place in range(span.number):
            if not _join(joined, &size, MAX_KEY_BYTES, span.keys[place]):
                return None
        cdef bytes key = PyBytes_FromStringAndSize(<char *>joined, size)
        cdef Layout layout = group.layouts.get(key)
        if layout is None:
            keys = tuple([_string(span.keys[place]) for place in range(span.number)])
            layout = Layout(self._reader.plan(group.scope, keys), key, keys)
            self._reader.remember(MAX_ASKED + 2 * size)
            group.layouts[key] = layout
        return layout

    cdef object _read(self, Group group, Wire *span, Part whole):
        """A sound span."""
        cdef Layout layout = self._layout(group, span)
        if layout is None or layout.plan is None or span.is_unusual or _depends_on_events(layout.plan, span):
            return self._by_python(group, span, whole)
        if span.end < span.start:  # the reader mends and notes it
            return self._by_python(group, span, whole)
        cdef Filled filled = self._filled(group, layout, span, whole)
        if filled is None or (filled.reads_events and span.has_events):
            return self._by_python(group, span, whole)
        facts, failed = (filled.facts, filled.failed) if filled.build is None else self._facts(filled, span)
        cdef bytes trace = self._last_trace
        if PyBytes_GET_SIZE(trace) != 16 or memcmp(PyBytes_AS_STRING(trace), span.trace.at, 16) != 0:
            trace = self._last_trace = _bytes(span.trace)
        parent = None if span.parent.size == 0 or not _bits(span.parent.at, 8) else _bytes(span.parent)
        remote = None
        if span.flags & REMOTE_KNOWN:
            remote = (span.flags & REMOTE) != 0
        return self._span(
            trace, _bytes(span.id), parent, remote, span.start, span.end, span_kind=span.kind,
            kind=filled.kind, failed=failed, facts=facts, scope=group.scope.name, resource=group.sender,
            session=self._session_of(layout, filled, span),
        )

    cdef object _by_python(self, Group group, Wire *span, Part whole):
        return self._reader.read(self._undecoded(group, span, whole))

    cdef object _undecoded(self, Group group, Wire *span, Part whole):
        """The span as the decoder in Python gives it."""
        cdef Place at = whole.at, end = whole.at + whole.size
        cdef Field field
        pairs = {}
        for place in range(span.number):
            pairs[_string(span.keys[place])] = _bytes(span.values[place])
        unusual = []
        while at < end and (span.is_unusual or span.has_events):
            _field(&at, end, &field)
            if field.kind == LENGTH and (field.number == 3 or field.number == 11 or field.number == 13):
                unusual.append((field.number, LENGTH, _bytes(field.part)))
            elif field.number == 15 and span.has_message:
                unusual.append((field.number, LENGTH, _bytes(field.part)))
            elif field.kind == VARINT and field.number != 6:
                unusual.append((field.number, VARINT, field.value))
        return self._raw(
            _bytes(span.trace), _bytes(span.id), _bytes(span.parent), _string(span.name), span.kind, span.start, span.end,
            span.status, span.flags, pairs, unusual, group.name, group.version, group.resource,
        )

    cdef Filled _filled(self, Group group, Layout layout, Wire *span, Part whole):
        """The template of a span; None where spans like it share none."""
        cdef uint8_t asked[MAX_ASKED]
        cdef Py_ssize_t size = 2
        by_name = _string(span.name).startswith(group.scope.names) or layout.by_name
        asked[0], asked[1] = span.status, span.kind if layout.by_kind else 0
        for place in range(layout.asked_number + by_name):
            if not _join(
                asked, &size, MAX_ASKED, span.name if place == layout.asked_number else span.values[layout.asked[place]]
            ):
                return None
        key = PyBytes_FromStringAndSize(<char *>asked, size)
        if layout.derived:
            found = [reader(self._value(span.values[<int>at])) for reader, at in layout.derived]
            if sum([len(one) for one in found if one is not None]) > MAX_ASKED:
                return None
            key = (key, *found)
        cdef Filled filled = layout.templates.get(key)
        if filled is None:
            plan = layout.plan
            template, is_shared = self._reader.ask(group.scope, plan, self._undecoded(group, span, whole))
            filled = self._made(layout, template)
            if layout.plan is None or _depends_on_events(plan, span):
                return None
            if plan.version != layout.version:
                group.layouts[layout.key] = Layout(plan, layout.key, layout.keys)
            elif is_shared:
                self._reader.remember(2 * MAX_ASKED + size)
                layout.templates[key] = filled
        return filled

    cdef Filled _made(self, Layout layout, template):
        cdef Filled filled = Filled()
        filled.kind, filled.failed, filled.facts = template.kind, template.failed, template.facts
        filled.build, filled.has_result = template.build, template.has_result
        filled.is_tool = filled.build == self._builder and (
            filled.facts["name"] is not None or filled.facts["reported"] is None
        )
        owns = [*[(name, self._own_type(reader, (key,))) for name, reader, key in template.single], *template.others]
        filled.own = [Own(name, own, layout.places, self._readers) for name, own in owns]
        filled.reads_events = any([own.of_events for _, own in owns])
        session = template.session
        if isinstance(session, str):
            filled.session = self._session(self._rank, session)
        elif session is not None:
            filled.own_session = Own("session", session, layout.places, self._readers)
        return filled

    cdef object _value(self, Part value):
        """Any value, decoded."""
        cdef Place at = value.at + 1, end = value.at + value.size
        cdef Part text
        cdef uint64_t number
        if _text(value, &text):
            try:
                return _string(text)
            except UnicodeDecodeError:
                return None
        if value.size > 1 and value.at[0] == INTEGER and _varint(&at, end, &number) and at == end and number <= LATEST:
            return number
        return self._decoded(_bytes(value))

    cdef object _own(self, Own own, Wire *span):
        """A part that is the span's own."""
        if own.is_once:
            return self._once(own, span)
        if own.is_joined:
            given = [None if at < 0 else self._value(span.values[<int>at]) for at in own.at]
            return own.reader((), *given) if own.of_events else own.reader(*given)
        for at in own.at:
            if at < 0:
                continue
            found = self._value(span.values[<int>at])
            if not (
                own.reads == AS_IT_IS
                or (own.reads == AN_INTEGER and type(found) is int and found >= 0)
                or (own.reads == A_TEXT and type(found) is str and 4 < len(found) <= MAX_TEXT)  # shorter ones may mean none
                or (own.reads == AN_ID and type(found) is str and 4 < len(found) <= MAX_TEXT and _begins_like_an_id(found))
            ):
                found = own.reader(found)
            if found is not None:
                return found
        return None

    cdef object _session_of(self, Layout layout, Filled filled, Wire *span):
        cdef Part value
        cdef bytes given
        for at in range(layout.session_number):
            value = span.values[layout.session_at[at]]
            if self._session_found is not None and self._session_found.rank == layout.session_rank[at] and (
                PyBytes_GET_SIZE(self._last_session) == value.size
                and memcmp(PyBytes_AS_STRING(self._last_session), value.at, value.size) == 0
            ):
                return self._session_found
            found = self._identifier(self._value(value))
            if found is not None:
                given, found = _bytes(value), self._session(layout.session_rank[at], found)
                self._last_session, self._session_found = given, found
                return found
        if filled.own_session is not None:
            found = self._own(filled.own_session, span)
            return None if found is None else self._session(self._rank, found)
        return filled.session

    cdef object _facts(self, Filled filled, Wire *span):
        """Facts of a template's parts and the span's own, and whether it failed."""
        cdef dict parts = filled.facts.copy()
        cdef Own own
        for own in filled.own:
            parts[own.name] = self._own(own, span)
        result = parts["result"] if filled.is_tool or filled.has_result else None
        failed = filled.failed or (filled.has_result and result is not None and result.is_soft_error)
        if not filled.is_tool or (result is not None and result.error_word is not None):  # Python counts words of errors
            return filled.build(parts), failed
        arguments, has_failed, result_digest = parts["arguments"], parts["failed"], None
        digest, effect = (None, None) if arguments is None else arguments
        if result is not None:
            has_failed, result_digest = has_failed or result.failed, result.digest
        call = self._call(
            parts["name"], parts["call_id"], digest, failed=has_failed, result=result_digest, effect=effect
        )
        return self._tool((call,)), failed

    cdef object _once(self, Own own, Wire *span):
        """A part that is read once for equal values. Arguments and results that are most often new are hashed here.

        Only Python opens the envelopes of results, which begin with one of `{["c`.
        """
        cdef Part text
        cdef bint is_arguments = own.reads == ARGUMENTS
        if is_arguments or (own.reads == RESULT and not self._has_soft_errors):
            if len(own.at) == 1 and _text(span.values[<int>own.at[0]], &text) and (
                is_arguments or (text.size > 0 and text.at[0] not in (0x7B, 0x5B, 0x22, 0x63))
            ):
                known = canonical(&self._rules, text.at, text.size, is_arguments)
                if known is not None:
                    digest = self._digest(known)
                    if is_arguments:
                        return digest, digest
                    return self._hashed_result(
                        digest=digest, failed=False, error_word=self._error_word(_string(text)), is_soft_error=False
                    )
        given = tuple([None if at < 0 else _bytes(span.values[<int>at]) for at in own.at])
        found = self._known.get((own.reader, self._decoded, hash(given)))
        return self._read_once(own.own, given, self._decoded) if found is None else found
