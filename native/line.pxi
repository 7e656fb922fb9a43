# Records of bytes beside each other, in the order in which they came, each found by its key: what is remembered of very many
# things for a long time, and hardly ever looked at before the first of them go. Whoever forgets one then looks at memory that the
# processor has fetched on its own, because it lies behind what was forgotten just before.

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memmove


cdef struct Key:
    uint64_t hash
    int64_t number
    const char *text
    uint32_t size  # bytes of the text
    uint8_t kind  # how its characters are held


cdef struct Head:
    uint64_t hash
    int64_t number
    uint32_t size  # of the record, in bytes
    uint32_t key_size
    uint8_t key_kind
    uint8_t alive
    uint8_t form  # what stands behind the key
    uint8_t unused[5]


cdef enum:
    LEAST_ROOM = 1024
    LEAST_PLACES = 64

cdef uint64_t LARGEST = <uint64_t> 1 << 34  # bytes of all records


cdef inline Key _key_of(object hashed, int64_t number, const void *text, Py_ssize_t size, int kind) except *:
    cdef Key key
    cdef uint64_t mixed = <uint64_t> hash(hashed) ^ <uint64_t> number * <uint64_t> 0x9E3779B97F4A7C15
    if size >= <Py_ssize_t> 1 << 30:
        raise MemoryError("a key of a gigabyte")
    mixed = (mixed ^ mixed >> 32) * <uint64_t> 0xD6E8FEB86659FD93
    key.hash, key.number, key.text, key.size, key.kind = mixed, number, <const char *> text, <uint32_t> size, kind
    return key


cdef inline size_t _even(size_t size) noexcept:
    return (size + 7) & ~<size_t> 7


cdef inline char *_behind(Head *record) noexcept:
    """What stands behind the key of a record."""
    return <char *> record + sizeof(Head) + _even(record.key_size)


cdef class Line:
    """The records, and a table of where they lie."""

    cdef char *data
    cdef size_t room, head, tail, dead  # bytes: of all, before the first record, before the next, of records that are gone
    cdef uint64_t *table  # half of a hash, and one more than where the record lies
    cdef size_t mask
    cdef Py_ssize_t number
    cdef uint64_t changes

    def __cinit__(self, *_):
        self.data = <char *> PyMem_RawMalloc(LEAST_ROOM)
        self.table = <uint64_t *> PyMem_RawCalloc(LEAST_PLACES, sizeof(uint64_t))
        if self.data is NULL or self.table is NULL:
            raise MemoryError
        self.room, self.mask = LEAST_ROOM, LEAST_PLACES - 1

    def __dealloc__(self):
        PyMem_RawFree(self.data)
        PyMem_RawFree(self.table)

    def __len__(self):
        return self.number

    def __sizeof__(self):
        return object.__sizeof__(self) + self.room + (self.mask + 1) * sizeof(uint64_t)

    cdef inline int unchanged(self, uint64_t since) except -1:
        """Whoever is let in while objects are made may not have moved records that somebody is looking at."""
        if self.changes != since:
            raise RuntimeError("records have come or gone meanwhile")
        return 0

    cdef inline Head *at(self, size_t place) noexcept:
        return <Head *> (self.data + place)

    cdef Head *find(self, Key *key) noexcept:
        """The record of a key, NULL where there is none."""
        cdef uint64_t half = key.hash >> 32
        cdef size_t at = half & self.mask
        cdef Head *one
        while self.table[at]:
            if self.table[at] >> 32 == half:
                one = self.at(((self.table[at] & 0xFFFFFFFF) - 1) << 3)
                if (
                    one.hash == key.hash and one.number == key.number and one.key_size == key.size
                    and one.key_kind == key.kind and not memcmp(<char *> one + sizeof(Head), key.text, key.size)
                ):
                    return one
            at = (at + 1) & self.mask
        return NULL

    cdef Head *first(self) noexcept:
        """The first record, NULL where there is none."""
        return self.at(self.head) if self.number else NULL

    cdef Head *next_to(self, Head *record) noexcept:
        """The record after one, NULL where it is the last."""
        cdef size_t place = <size_t> (<char *> record - self.data) + record.size
        while place < self.tail and not self.at(place).alive:
            place += self.at(place).size
        return self.at(place) if place < self.tail else NULL

    cdef Head *append(self, Key *key, size_t size) except NULL:
        """A new last record, with so many bytes behind its key, which are not set. There must be none of this key."""
        cdef size_t all = sizeof(Head) + _even(key.size) + _even(size)
        cdef Head *made
        if all >= <size_t> 1 << 32:
            raise MemoryError("a record of gigabytes")
        self.reserve(all)
        made = self.at(self.tail)
        made.hash, made.number, made.size = key.hash, key.number, <uint32_t> all
        made.key_size, made.key_kind, made.alive, made.form = key.size, key.kind, True, 0
        memcpy(<char *> made + sizeof(Head), key.text, key.size)
        self.enter(made)
        self.tail += all
        self.number += 1
        self.changes += 1
        return made

    cdef void remove(self, Head *record) noexcept:
        """A record goes."""
        cdef size_t at = (record.hash >> 32) & self.mask, place = <size_t> (<char *> record - self.data), hole
        while (self.table[at] & 0xFFFFFFFF) != (place >> 3) + 1:
            at = (at + 1) & self.mask
        hole = at
        while True:
            at = (at + 1) & self.mask
            if not self.table[at]:
                break
            if ((at - (self.table[at] >> 32)) & self.mask) >= ((at - hole) & self.mask):
                self.table[hole] = self.table[at]
                hole = at
        self.table[hole] = 0
        record.alive = False
        self.number -= 1
        self.changes += 1
        self.dead += record.size
        while self.head < self.tail and not self.at(self.head).alive:
            self.dead -= self.at(self.head).size
            self.head += self.at(self.head).size
        if self.head == self.tail:
            self.head = self.tail = 0

    cdef void enter(self, Head *record) noexcept:
        """Have a record found."""
        cdef uint64_t half = record.hash >> 32
        cdef size_t at = half & self.mask
        while self.table[at]:
            at = (at + 1) & self.mask
        self.table[at] = half << 32 | <uint64_t> ((<char *> record - self.data) >> 3) + 1

    cdef inline int reserve(self, size_t size) except -1:
        """See to it that there is room for one more record of so many bytes. Records may move."""
        if self.tail + size > self.room or <size_t> (self.number + 1) * 5 > (self.mask + 1) * 4:
            self.make_room(size)
        return 0

    cdef int make_room(self, size_t size) except -1:
        """Move the records together, to where there is room for as many again."""
        cdef size_t wanted = 2 * (self.tail - self.head - self.dead + size) + LEAST_ROOM, places = LEAST_PLACES, place, to = 0
        cdef bint fits = wanted <= self.room <= 4 * wanted
        cdef char *data
        cdef uint64_t *table
        cdef Head *one
        while <size_t> (self.number + 1) * 5 > places * 4:
            places *= 2
        if wanted > LARGEST:
            raise MemoryError("more is remembered than has room")
        data = self.data if fits else <char *> PyMem_RawMalloc(wanted)
        table = <uint64_t *> PyMem_RawCalloc(places, sizeof(uint64_t))
        if data is NULL or table is NULL:
            PyMem_RawFree(table)
            if not fits:
                PyMem_RawFree(data)
            raise MemoryError
        place = self.head
        while place < self.tail:
            one = self.at(place)
            place += one.size
            if one.alive:
                size = one.size
                memmove(data + to, one, size)
                to += size
        if not fits:
            PyMem_RawFree(self.data)
            self.data, self.room = data, wanted
        PyMem_RawFree(self.table)
        self.changes += 1
        self.table, self.mask, self.head, self.tail, self.dead = table, places - 1, 0, to, 0
        place = 0
        while place < to:
            self.enter(self.at(place))
            place += self.at(place).size
        return 0
