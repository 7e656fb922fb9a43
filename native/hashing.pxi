"""The canonical JSON of a text, and its hash: `conventions/hashing.py`, for what most texts are.

Whatever is not so common (escapes of characters, redaction marks, wrappers, deep nesting, free text in arguments) is left to
Python, whose rules these are.
"""

cdef enum:
    MAX_DEPTH = 32
    MAX_MEMBERS = 64
    MAX_HASHED = 1 << 20
    FREE_TEXT = 40
    FREE_TEXT_SPACES = 3


cdef struct Member:  # of an object: its key, and where its canonical text lies in the output
    const uint8_t *key
    Py_ssize_t key_size, begin, end


cdef struct Canon:  # a JSON text being read, and its canonical form being written
    const uint8_t *at
    const uint8_t *end
    uint8_t *out
    Py_ssize_t size
    bint has_free_text


cdef inline void _blank(Canon *canon) noexcept nogil:
    while canon.at < canon.end and (canon.at[0] == 32 or canon.at[0] == 10 or canon.at[0] == 13 or canon.at[0] == 9):
        canon.at += 1


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
            if not is_key and characters > FREE_TEXT and spaces >= FREE_TEXT_SPACES:
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


cdef bint _canonical_number(Canon *canon) noexcept:
    """An integer, or a number with a fraction, which is an integer too or a text. False: Python must read it."""
    cdef const uint8_t *begin = canon.at
    cdef Py_ssize_t digits = 0
    cdef bint has_fraction = False
    if canon.at[0] == 45:
        canon.at += 1
    if canon.at < canon.end and canon.at[0] == 48 and canon.at + 1 < canon.end and 48 <= canon.at[1] <= 57:
        return False
    while canon.at < canon.end and (48 <= canon.at[0] <= 57 or canon.at[0] == 46):
        if canon.at[0] == 46:
            if has_fraction or not digits:
                return False
            has_fraction = True
        digits += 1
        canon.at += 1
    if not digits or digits > 30 or (canon.at - 1)[0] == 46 or (canon.at < canon.end and canon.at[0] | 32 == 101):
        return False
    cdef Py_ssize_t size = canon.at - begin
    if not has_fraction:
        if begin[0] == 45 and begin[1] == 48:
            return False
        memcpy(canon.out + canon.size, begin, size)
        canon.size += size
        return True
    number = float(begin[:size])
    shown = (str(int(number)) if number.is_integer() else f'"{number!r}"').encode()
    memcpy(canon.out + canon.size, PyBytes_AS_STRING(shown), len(shown))
    canon.size += len(shown)
    return True


cdef bint _canonical_word(Canon *canon) noexcept nogil:
    cdef const char *word = b"true" if canon.at[0] == 116 else b"null" if canon.at[0] == 110 else b"false"
    cdef Py_ssize_t size = 5 if word[0] == 102 else 4
    if canon.end - canon.at < size or memcmp(canon.at, word, size) != 0:
        return False
    memcpy(canon.out + canon.size, word, size)
    canon.size += size
    canon.at += size
    return True


cdef bint _canonical_value(Canon *canon, int depth) noexcept:
    cdef uint8_t byte
    _blank(canon)
    if canon.at == canon.end or depth > MAX_DEPTH:
        return False
    byte = canon.at[0]
    if byte == 34:
        canon.at += 1
        return _canonical_text(canon, False)
    if byte == 123:
        return _canonical_object(canon, depth)
    if byte == 91:
        return _canonical_list(canon, depth)
    if byte == 45 or 48 <= byte <= 57:
        return _canonical_number(canon)
    return _canonical_word(canon)


cdef bint _canonical_list(Canon *canon, int depth) noexcept:
    canon.at += 1
    _put(canon, 91)
    _blank(canon)
    if canon.at < canon.end and canon.at[0] == 93:
        canon.at += 1
        _put(canon, 93)
        return True
    while _canonical_value(canon, depth + 1):
        _blank(canon)
        if canon.at == canon.end:
            return False
        canon.at += 1
        _put(canon, (canon.at - 1)[0])
        if (canon.at - 1)[0] == 93:
            return True
        if (canon.at - 1)[0] != 44:
            return False
    return False


cdef bint _canonical_object(Canon *canon, int depth) noexcept:
    """An object, its members in the order of their keys; the wrapper of arguments is left to Python."""
    cdef Member members[MAX_MEMBERS]
    cdef Member member
    cdef int number = 0, place
    cdef Py_ssize_t begin = canon.size, order
    canon.at += 1
    _blank(canon)
    if canon.at < canon.end and canon.at[0] == 125:
        canon.at += 1
        _put(canon, 123)
        _put(canon, 125)
        return True
    while True:
        _blank(canon)
        if number == MAX_MEMBERS or canon.at == canon.end or canon.at[0] != 34:
            return False
        canon.at += 1
        member.key, member.begin = canon.at, canon.size
        if not _canonical_text(canon, True):
            return False
        member.key_size = canon.at - 1 - member.key
        if depth == 0 and member.key_size == 6 and memcmp(member.key, b"kwargs", 6) == 0:
            return False
        _blank(canon)
        if canon.at == canon.end or canon.at[0] != 58:
            return False
        canon.at += 1
        _put(canon, 58)
        if not _canonical_value(canon, depth + 1):
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
        _blank(canon)
        if canon.at == canon.end:
            return False
        canon.at += 1
        if (canon.at - 1)[0] == 125:
            break
        if (canon.at - 1)[0] != 44:
            return False
    return _sorted(canon, members, number, begin)


cdef bint _sorted(Canon *canon, Member *members, int number, Py_ssize_t begin) noexcept:
    """Write the members again, in their order, with what stands around them."""
    cdef Py_ssize_t size = canon.size - begin, at = 0
    cdef uint8_t *copy = <uint8_t *>malloc(size + number + 2)
    if copy is NULL:
        return False
    for place in range(number):
        copy[at] = 44 if place else 123
        memcpy(copy + at + 1, canon.out + members[place].begin, members[place].end - members[place].begin)
        at += 1 + members[place].end - members[place].begin
    copy[at] = 125
    memcpy(canon.out + begin, copy, at + 1)
    canon.size = begin + at + 1
    free(copy)
    return True


cdef object canonical(const uint8_t *text, Py_ssize_t size, bint is_arguments):
    """The canonical JSON of a sound text; None where Python must read it. Arguments with free text have two, so Python must."""
    cdef Canon canon
    cdef uint8_t near[4096]
    cdef bint known = False
    if size == 0 or size > MAX_HASHED or _is_marked(text, size):
        return None
    canon.at, canon.end, canon.size, canon.has_free_text = text, text + size, 0, False
    canon.out = &near[0] if size < 1024 else <uint8_t *>malloc(4 * size)
    if canon.out is NULL:
        raise MemoryError
    if text[0] == 123 or text[0] == 91:
        known = _canonical_value(&canon, 0)
        _blank(&canon)
        known = known and canon.at == canon.end and not (is_arguments and canon.has_free_text)
    elif not is_arguments and size > 16 and 65 <= text[0] & 0xDF <= 90:  # longer than a word, and no number
        known = _quoted(&canon)
    found = PyBytes_FromStringAndSize(<char *>canon.out, canon.size) if known else None
    if canon.out is not &near[0]:
        free(canon.out)
    return found


def canonical_json(str text not None, bint is_arguments=True):
    """The same of a text, for tests."""
    cdef Py_ssize_t size
    cdef const char *raw = PyUnicode_AsUTF8AndSize(text, &size)
    found = canonical(<const uint8_t *>raw, size, is_arguments)
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


cdef bint _is_marked(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Whether a redaction mark, a memory address or an escaped character may stand in a text."""
    cdef Py_ssize_t at
    for at in range(size):
        if text[at] == 69 or text[at] == 101:  # E of REDACTED and of elided
            if size - at >= 6 and (memcmp(text + at, b"EDACTED", 6) == 0 or memcmp(text + at, b"edacted", 6) == 0):
                return True
            if size - at >= 6 and memcmp(text + at, b"elided", 6) == 0:
                return True
        elif text[at] == 92 and at + 1 < size and text[at + 1] == 117:
            return True
        elif text[at] == 32 and size - at >= 6 and memcmp(text + at, b" at 0x", 6) == 0:
            return True
    return False
