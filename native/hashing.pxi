"""Keyed BLAKE2b of the canonical JSON of a text: `conventions/hashing.py`, for what most texts are.

Whatever is not so common (escapes of characters, redaction marks, wrappers, deep nesting) is left to Python, which is the rule.
"""

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #include <stdlib.h>

    static const uint64_t BLAKE_IV[8] = {
        0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL, 0xa54ff53a5f1d36f1ULL,
        0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL, 0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL};
    static const uint8_t BLAKE_ORDER[10][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};
    #define TURN(x, n) (((x) >> (n)) | ((x) << (64 - (n))))
    #define MIX(a, b, c, d, x, y) \
        v[a] += v[b] + (x); v[d] = TURN(v[d] ^ v[a], 32); v[c] += v[d]; v[b] = TURN(v[b] ^ v[c], 24); \
        v[a] += v[b] + (y); v[d] = TURN(v[d] ^ v[a], 16); v[c] += v[d]; v[b] = TURN(v[b] ^ v[c], 63);

    static void blake_block(uint64_t *h, const uint8_t *block, uint64_t count, int last) {
        uint64_t v[16], m[16];
        memcpy(m, block, 128);
        for (int i = 0; i < 8; i++) { v[i] = h[i]; v[i + 8] = BLAKE_IV[i]; }
        v[12] ^= count;
        if (last) v[14] = ~v[14];
        for (int round = 0; round < 12; round++) {
            const uint8_t *s = BLAKE_ORDER[round % 10];
            MIX(0, 4, 8, 12, m[s[0]], m[s[1]]) MIX(1, 5, 9, 13, m[s[2]], m[s[3]])
            MIX(2, 6, 10, 14, m[s[4]], m[s[5]]) MIX(3, 7, 11, 15, m[s[6]], m[s[7]])
            MIX(0, 5, 10, 15, m[s[8]], m[s[9]]) MIX(1, 6, 11, 12, m[s[10]], m[s[11]])
            MIX(2, 7, 8, 13, m[s[12]], m[s[13]]) MIX(3, 4, 9, 14, m[s[14]], m[s[15]])
        }
        for (int i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
    }

    /* The state after the block of the key; digests have 8 bytes. */
    static void blake_begin(uint64_t *h, const uint8_t *key, size_t size) {
        uint8_t block[128] = {0};
        memcpy(h, BLAKE_IV, sizeof BLAKE_IV);
        h[0] ^= 0x01010000 ^ ((uint64_t)size << 8) ^ 8;
        memcpy(block, key, size);
        if (size) blake_block(h, block, 128, 0);
    }

    static void blake_digest(const uint64_t *begun, int keyed, const uint8_t *text, size_t size, uint8_t *digest) {
        uint64_t h[8], count = keyed ? 128 : 0;
        uint8_t block[128];
        memcpy(h, begun, sizeof h);
        while (size > 128) { count += 128; blake_block(h, text, count, 0); text += 128; size -= 128; }
        memset(block, 0, 128);
        memcpy(block, text, size);
        blake_block(h, block, count + size, 1);
        memcpy(digest, h, 8);
    }
    """
    void blake_begin(uint64_t *h, const uint8_t *key, size_t size) noexcept nogil
    void blake_digest(const uint64_t *h, int keyed, const uint8_t *text, size_t size, uint8_t *digest) noexcept nogil

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


cdef class Digests:
    """Hashes texts under one key. `digest(text)` is None where only Python can say what a text means."""

    cdef uint64_t _begun[8]
    cdef bint _keyed

    def __init__(self, bytes key not None):
        self._keyed = len(key) > 0
        blake_begin(self._begun, <const uint8_t *>PyBytes_AS_STRING(key), min(len(key), 64))

    def arguments(self, str text not None):
        """The hash of arguments, None where Python must read them: the text is uncommon, or holds free text."""
        cdef Py_ssize_t size
        cdef const char *raw = PyUnicode_AsUTF8AndSize(text, &size)
        return self.of(<const uint8_t *>raw, size, True)

    def value(self, str text not None):
        """The hash of a result, None where Python must read it."""
        cdef Py_ssize_t size
        cdef const char *raw = PyUnicode_AsUTF8AndSize(text, &size)
        return self.of(<const uint8_t *>raw, size, False)

    cdef object of(self, const uint8_t *text, Py_ssize_t size, bint is_arguments):
        """The hash of a sound text."""
        cdef Canon canon
        cdef uint8_t digest[8]
        cdef uint8_t near[4096]
        cdef bint known
        if size == 0 or size > MAX_HASHED or _is_marked(text, size):
            return None
        canon.at, canon.end, canon.size, canon.has_free_text = text, text + size, 0, False
        canon.out = &near[0] if size < 1024 else <uint8_t *>malloc(4 * size)
        if canon.out is NULL:
            raise MemoryError
        if text[0] == 123 or text[0] == 91:
            known = _canonical_value(&canon, 0)
            _blank(&canon)
            known = known and canon.at == canon.end
        else:
            known = not is_arguments and size > 16 and 65 <= text[0] & 0xDF <= 90 and _quoted(&canon)
        if known and not (is_arguments and canon.has_free_text):
            blake_digest(self._begun, self._keyed, canon.out, canon.size, digest)
        else:
            known = False
        if canon.out is not &near[0]:
            free(canon.out)
        return PyBytes_FromStringAndSize(<char *>digest, 8) if known else None


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
