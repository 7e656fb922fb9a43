"""The canonical JSON of a text, and its hash: `conventions/hashing.py`, for what most texts are.

Whatever is not so common (escapes of characters, redaction marks, wrappers, deep nesting, free text in arguments) is left to
Python. What decides is its data (`conventions.hashing.TextRules`), which it hands over once.
"""

cdef enum:
    MAX_DEPTH = 32
    MAX_MEMBERS = 64
    MAX_MARKS = 64
    MAX_MARK = 32


cdef struct Mark:  # a text that only Python reads around
    uint8_t text[MAX_MARK]
    Py_ssize_t size


cdef struct Rules:  # of `TextRules`
    Mark wrapped
    Mark unusual[MAX_MARKS]
    int number
    bint begins[256]  # whether one of `unusual` begins with this byte
    Py_ssize_t max_text, free_text_length, free_text_spaces


cdef struct Member:  # of an object: its key, and where its canonical text lies in the output
    const uint8_t *key
    Py_ssize_t key_size, begin, end


cdef int _copy(Mark *mark, str text) except -1:
    cdef bytes raw = text.encode()
    if not 1 < len(raw) <= MAX_MARK:
        raise ValueError(f"a mark of {len(raw)} bytes: it may have 2 to {MAX_MARK}")
    memcpy(mark.text, PyBytes_AS_STRING(raw), len(raw))
    mark.size = len(raw)
    return 0


cdef int _follow(Rules *rules, told) except -1:
    """Take rules over from Python."""
    memset(rules, 0, sizeof(Rules))
    if len(told.unusual) > MAX_MARKS:
        raise ValueError(f"{len(told.unusual)} marks: there may be {MAX_MARKS}")
    _copy(&rules.wrapped, told.wrapped)
    for text in told.unusual:
        _copy(&rules.unusual[rules.number], text)
        rules.begins[rules.unusual[rules.number].text[0]] = True
        rules.number += 1
    rules.max_text = told.max_text
    rules.free_text_length, rules.free_text_spaces = told.free_text_length, told.free_text_spaces
    return 0


cdef struct Canon:  # a JSON text being read, and its canonical form being written
    const Rules *rules
    const uint8_t *at
    const uint8_t *end
    uint8_t *out
    Py_ssize_t size
    bint has_free_text


cdef inline uint8_t _next(Canon *canon) noexcept nogil:
    """Read the next byte that is no blank; 0 at the end, and at a zero byte, which is left there."""
    cdef uint8_t byte
    while canon.at < canon.end and canon.at[0] != 0:
        byte = canon.at[0]
        canon.at += 1
        if byte != 32 and byte != 10 and byte != 13 and byte != 9:
            return byte
    return 0


cdef inline void _put(Canon *canon, uint8_t byte) noexcept nogil:
    canon.out[canon.size] = byte
    canon.size += 1


cdef bint _canonical_text(Canon *canon, bint is_key) noexcept nogil:
    """A text behind its quote, up to and with the other one. False: Python must read it."""
    cdef uint8_t byte, escaped
    cdef Py_ssize_t characters = 0, spaces = 0
    _put(canon, 34)
    while canon.at < canon.end:
        byte = canon.at[0]
        canon.at += 1
        if byte == 34:
            _put(canon, 34)
            if not is_key and characters > canon.rules.free_text_length and spaces >= canon.rules.free_text_spaces:
                canon.has_free_text = True
            return True
        if byte < 32:
            return False
        characters += byte & 0xC0 != 0x80
        spaces += byte == 32
        _put(canon, byte)
        if byte == 92:
            if is_key or canon.at == canon.end:
                return False
            escaped = canon.at[0]
            canon.at += 1
            if escaped == 47:
                canon.size -= 1
            elif escaped not in b'"\\bfnrt':
                return False
            _put(canon, escaped)
    return False


cdef bint _canonical_integer(Canon *canon) noexcept nogil:
    """The rest of an integer. False: it is another number, which Python must read."""
    cdef const uint8_t *begin = canon.at - 1
    cdef const uint8_t *digits = canon.at if begin[0] == 45 else begin
    while canon.at < canon.end and 48 <= canon.at[0] <= 57:
        canon.at += 1
    if canon.at == digits or canon.at - digits > 30 or (digits[0] == 48 and canon.at - begin > 1):
        return False
    memcpy(canon.out + canon.size, begin, canon.at - begin)
    canon.size += canon.at - begin
    return canon.at == canon.end or (canon.at[0] != 46 and canon.at[0] | 32 != 101)


cdef bint _canonical_word(Canon *canon, const char *word, Py_ssize_t size) noexcept nogil:
    canon.at -= 1
    if canon.end - canon.at < size or memcmp(canon.at, word, size) != 0:
        return False
    memcpy(canon.out + canon.size, word, size)
    canon.size += size
    canon.at += size
    return True


cdef bint _canonical_value(Canon *canon, uint8_t byte, int depth) noexcept nogil:
    """A value that begins with this byte, which is read."""
    if depth > MAX_DEPTH:
        return False
    if byte == 34:
        return _canonical_text(canon, False)
    if byte == 123:
        return _canonical_object(canon, depth)
    if byte == 91:
        return _canonical_list(canon, depth)
    if byte == 116:
        return _canonical_word(canon, b"true", 4)
    if byte == 102:
        return _canonical_word(canon, b"false", 5)
    if byte == 110:
        return _canonical_word(canon, b"null", 4)
    return (byte == 45 or 48 <= byte <= 57) and _canonical_integer(canon)


cdef bint _canonical_list(Canon *canon, int depth) noexcept nogil:
    cdef uint8_t byte = _next(canon)
    _put(canon, 91)
    while byte != 93:
        if not _canonical_value(canon, byte, depth + 1):
            return False
        byte = _next(canon)
        if byte == 44:
            _put(canon, 44)
            byte = _next(canon)
            if byte == 93:
                return False
        elif byte != 93:
            return False
    _put(canon, 93)
    return True


cdef bint _canonical_object(Canon *canon, int depth) noexcept nogil:
    """An object, its members in the order of their keys; the wrapper of arguments is left to Python."""
    cdef Member members[MAX_MEMBERS]
    cdef Member member
    cdef int number = 0, place
    cdef Py_ssize_t begin = canon.size, order
    cdef uint8_t byte = _next(canon)
    while byte != 125:
        if byte != 34 or number == MAX_MEMBERS:
            return False
        member.key, member.begin = canon.at, canon.size
        if not _canonical_text(canon, True):
            return False
        member.key_size = canon.at - 1 - member.key
        if depth == 0 and member.key_size == canon.rules.wrapped.size and (
            memcmp(member.key, canon.rules.wrapped.text, member.key_size) == 0
        ):
            return False
        if _next(canon) != 58:
            return False
        _put(canon, 58)
        if not _canonical_value(canon, _next(canon), depth + 1):
            return False
        member.end = canon.size
        place = number
        while place:
            order = memcmp(member.key, members[place - 1].key, min(member.key_size, members[place - 1].key_size))
            order = order or member.key_size - members[place - 1].key_size
            if order == 0:
                return False
            if order > 0:
                break
            members[place] = members[place - 1]
            place -= 1
        members[place] = member
        number += 1
        byte = _next(canon)
        if byte == 44:
            byte = _next(canon)
            if byte == 125:
                return False
        elif byte != 125:
            return False
    return _sorted(canon, members, number, begin)


cdef bint _sorted(Canon *canon, Member *members, int number, Py_ssize_t begin) noexcept nogil:
    """Write the members again, in their order, with what stands around them."""
    cdef Py_ssize_t size, at = 1
    cdef uint8_t *copy = <uint8_t *>malloc(canon.size - begin + number + 2)
    if copy is NULL:
        return False
    copy[0] = 123
    for place in range(number):
        size = members[place].end - members[place].begin
        memcpy(copy + at, canon.out + members[place].begin, size)
        copy[at + size] = 44
        at += size + 1
    copy[at - 1 if number else at] = 125
    canon.size = begin + (at if number else 2)
    memcpy(canon.out + begin, copy, canon.size - begin)
    free(copy)
    return True


cdef object canonical(const Rules *rules, const uint8_t *text, Py_ssize_t size, bint is_arguments):
    """The canonical JSON of a sound text; None where Python must read it. Arguments with free text have two, so Python must."""
    cdef Canon canon
    cdef uint8_t near[4096]
    cdef bint known = False
    if size == 0 or size > rules.max_text or _is_marked(rules, text, size):
        return None
    canon.rules = rules
    canon.at, canon.end, canon.size, canon.has_free_text = text, text + size, 0, False
    canon.out = &near[0] if size < 1024 else <uint8_t *>malloc(4 * size)
    if canon.out is NULL:
        raise MemoryError
    if text[0] == 123 or text[0] == 91:
        known = _canonical_value(&canon, _next(&canon), 0) and not _next(&canon) and canon.at == canon.end
        known = known and not (is_arguments and canon.has_free_text)
    elif not is_arguments and size > 16 and 65 <= text[0] & 0xDF <= 90:  # longer than a word, and no number
        known = _quoted(&canon)
    found = PyBytes_FromStringAndSize(<char *>canon.out, canon.size) if known else None
    if canon.out is not &near[0]:
        free(canon.out)
    return found


def canonical_json(str text not None, told, bint is_arguments=True):
    """The same of a text under rules, for tests."""
    cdef Py_ssize_t size
    cdef Rules rules
    _follow(&rules, told)
    cdef const char *raw = PyUnicode_AsUTF8AndSize(text, &size)
    found = canonical(&rules, <const uint8_t *>raw, size, is_arguments)
    return None if found is None else found.decode()


cdef bint _quoted(Canon *canon) noexcept nogil:
    """Free text as a JSON text. False: it has characters that are escaped."""
    cdef uint8_t byte
    _put(canon, 34)
    while canon.at < canon.end:
        byte = canon.at[0]
        if byte < 32 or byte == 92 or byte == 34:
            if byte != 34 and byte != 92 and byte != 10:
                return False
            _put(canon, 92)
            byte = 110 if byte == 10 else byte
        _put(canon, byte)
        canon.at += 1
    _put(canon, 34)
    return True


cdef bint _is_marked(const Rules *rules, const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Whether a text holds what only Python reads: a redaction mark, a memory address, an escaped character."""
    cdef const Mark *mark
    cdef Py_ssize_t place
    cdef int number
    for place in range(size - 1):
        if not rules.begins[text[place]]:
            continue
        for number in range(rules.number):
            mark = &rules.unusual[number]
            if text[place + 1] == mark.text[1] and mark.size <= size - place and (
                memcmp(text + place, mark.text, mark.size) == 0
            ):
                return True
    return False
