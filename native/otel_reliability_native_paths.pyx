# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The distances over all pairs of runs by the paths they took: what `metrics.later_sums` does with `edit_column`, compiled.

A path is a string with a character a step. Two are compared by the bits of one word (Hyyrö's form of Myers' algorithm), as long
as either has no more than 64 steps; of two that are longer, whoever made the sums says how many edits apart they are. One path
is compared with many of no more than 16 steps at once, by vectors, where the compiler knows them.

References: G. Myers, *A fast bit-vector algorithm for approximate string matching*, J. ACM 46 (1999); H. Hyyrö, *A bit-vector
algorithm for computing Levenshtein and Damerau edit distances*, Nordic J. Computing 10 (2003).
"""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport Py_EQ, PyObject, PyObject_Hash, PyObject_RichCompareBool
from cpython.ref cimport Py_DECREF, Py_INCREF

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

include "slots.pxi"

FITS = 7
"""`otel_reliability.native` says what that is."""

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject *Py_TYPE(object of)
    bint PyUnicode_CheckExact(object of)
    int PyUnicode_KIND(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    uint32_t PyUnicode_READ_CHAR(object text, Py_ssize_t at)
    object PyUnicode_FromKindAndData(int kind, const void *symbols, Py_ssize_t number)
    object PyUnicode_FromOrdinal(int symbol)

ctypedef fused Symbols:
    uint8_t
    uint16_t
    uint32_t

cdef enum:
    WORD = 64
    LANE = 16
    NO_LANE = 0xFFFF
    BESIDE_ROWS = 4  # as long as the rows: the first, and what else is of each lane
    MOST_CELLS = 1 << 16  # rows times lanes
    LOW = 256
    SLOTS = 128
    ONE_BITS = 52
    HALF_BITS = 26
    FITTING = 2047  # so many distances together are less than 2^63
    FEWEST = 8
    USUAL = 32  # most of what is counted is there less often
    LOWEST = 0x21  # the first symbol that tools get,
    BITS = 60  # and how many from there on have a bit
    NOWHERE = -1
    MANY_PATHS = 4096  # so many, of so many steps, by so many runs each, can be summed up in 64 bits
    MANY_STEPS = 4096
    MANY_RUNS = 1 << 20

cdef int64_t MOST_SUM = <int64_t>1 << 61  # to such a sum those of many paths can be added

cdef uint64_t HALF = (1 << HALF_BITS) - 1


# The steps of one path, by the bits of a word.

cdef uint64_t[LOW] _low  # where in it each symbol below 256 is; between two paths all are 0
cdef uint32_t[SLOTS] _symbols  # the other symbols, in a table of their own,
cdef uint64_t[SLOTS] _high  # and where those are; 0: nothing is in this slot

cdef uint64_t[WORD + 1][WORD + 1] _parts  # by length and edits: the share of 2^52


cdef int _share_out() except -1:
    cdef uint64_t length, edits
    for length in range(1, WORD + 1):
        for edits in range(length + 1):
            _parts[length][edits] = (edits << ONE_BITS) // length
    return 0


_share_out()


cdef inline uint64_t _part(uint64_t edits, uint64_t length) noexcept nogil:
    """The edits over the length in units of 2^-52, cut off. (Neither is so long that this does not fit.)"""
    cdef uint64_t whole, rest
    if length <= WORD:
        return _parts[length][edits]
    whole = (<uint64_t> 1 << ONE_BITS) // length
    rest = (<uint64_t> 1 << ONE_BITS) % length
    return edits * whole + edits * rest // length


cdef inline uint64_t _bits_of(uint32_t symbol) noexcept nogil:
    """Where in the path this symbol is, one that is not below 256."""
    cdef uint32_t slot = symbol % SLOTS
    while _high[slot]:
        if _symbols[slot] == symbol:
            return _high[slot]
        slot = (slot + 1) % SLOTS
    return 0


cdef inline void _note(uint32_t symbol, uint64_t bit) noexcept nogil:
    cdef uint32_t slot = symbol % SLOTS
    if symbol < LOW:
        _low[symbol] |= bit
        return
    while _high[slot] and _symbols[slot] != symbol:
        slot = (slot + 1) % SLOTS
    _symbols[slot] = symbol
    _high[slot] |= bit


cdef void _note_all(const Symbols *path, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t at
    for at in range(length):
        _note(path[at], <uint64_t> 1 << at)


cdef void _forget_all(const Symbols *path, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t at
    cdef bint others = False
    for at in range(length):
        if path[at] < LOW:
            _low[path[at]] = 0
        else:
            others = True
    if others:
        memset(_high, 0, sizeof(_high))


cdef inline uint64_t _edits(Py_ssize_t steps, const Symbols *other, Py_ssize_t length) noexcept nogil:
    """How many edits the path that was noted, of 1 to 64 steps, is from another."""
    cdef uint64_t up = ~<uint64_t> 0, down = 0, here, diagonal, right, left
    cdef uint64_t edits = steps
    cdef int last = steps - 1
    cdef Py_ssize_t at
    for at in range(length):
        if Symbols is uint8_t:
            here = _low[other[at]]
        else:
            here = _low[other[at]] if other[at] < LOW else _bits_of(other[at])
        diagonal = (((here & up) + up) ^ up) | here | down
        right = down | ~(diagonal | up)
        left = diagonal & up
        edits += (right >> last) & 1
        edits -= (left >> last) & 1
        right = right << 1 | 1
        up = left << 1 | ~(diagonal | right)
        down = right & diagonal
    return edits


# The steps of many paths side by side, each in a lane of 16 bits.

cdef extern from *:
    """
    enum { TOGETHER = 8 }; /* lanes of a vector */

    #if defined(__GNUC__)
    enum { VECTORS = 1 };
    typedef uint16_t Vector __attribute__((vector_size(2 * TOGETHER)));

    static inline Vector vector_of(const uint16_t *lanes) {
        Vector vector;
        memcpy(&vector, lanes, sizeof(vector));
        return vector;
    }

    static inline Vector ones_of(Vector bits) {
        bits = bits - (bits >> 1 & 0x5555);
        bits = (bits & 0x3333) + (bits >> 2 & 0x3333);
        bits = (bits + (bits >> 4)) & 0x0F0F;
        return (bits + (bits >> 8)) & 0x1F;
    }

    static void edits_of_lanes(
        const uint16_t *rows, const uint16_t *row_of, const uint16_t *ends, Py_ssize_t lanes,
        const uint8_t *path, Py_ssize_t steps, uint16_t *edits
    ) {
        Py_ssize_t first, at;
        for (first = 0; first < lanes; first += TOGETHER) {
            Vector up = ~(Vector){0}, down = {0}, end = vector_of(ends + first);
            for (at = 0; at < steps; at++) {
                Vector here = vector_of(rows + row_of[path[at]] + first);
                Vector diagonal = (((here & up) + up) ^ up) | (here | down);
                Vector no_right = (~down & (diagonal | up)) << 1;
                up = (diagonal & up) << 1 | (~diagonal & no_right);
                down = ~no_right & diagonal;
            }
            up = (uint16_t) steps + ones_of(up & end) - ones_of(down & end);
            memcpy(edits + first, &up, sizeof(up));
        }
    }
    #else /* a compiler that knows no vectors: no lanes are made */
    enum { VECTORS = 0 };
    #define edits_of_lanes(rows, row_of, ends, lanes, path, steps, edits) ((void) 0)
    #endif
    """
    const Py_ssize_t TOGETHER
    const bint VECTORS

    # How many edits a path of at most 64 steps is from each of those in so many lanes: as `_edits`, by the bits of all lanes at
    # once. They are summed up at last, along the other side of their table: its steps, and what each step in the lane adds.
    void edits_of_lanes(
        const uint16_t *rows, const uint16_t *row_of, const uint16_t *ends, Py_ssize_t lanes,
        const uint8_t *path, Py_ssize_t steps, uint16_t *edits
    ) noexcept nogil


cdef struct Lanes:
    uint16_t *rows  # where each symbol is in each path, a row a symbol; the first: where those are that do not matter
    uint16_t *ends  # of each path, as many ones as it has steps
    uint16_t *lengths  # of each path; `NO_LANE` where it has too many steps, or symbols of more than a byte
    uint16_t *edits  # what was found last
    Py_ssize_t width, others  # lanes in a row; how many paths have had none
    uint16_t[LOW] row_of  # by symbol: where its row begins


cdef inline bint _by_lanes(object path) noexcept:
    """Whether it can be compared with paths in lanes."""
    return PyUnicode_KIND(path) == 1 and PyUnicode_GET_LENGTH(path) <= WORD


cdef Py_ssize_t _give_rows(Lanes *lanes, Py_ssize_t rows, object path) noexcept:
    """A row for each symbol of a path that has none. Gives how many there are then."""
    cdef const uint8_t *symbols = <const uint8_t *> PyUnicode_DATA(path)
    cdef Py_ssize_t at
    for at in range(PyUnicode_GET_LENGTH(path)):
        if not lanes.row_of[symbols[at]]:
            rows += 1
            lanes.row_of[symbols[at]] = <uint16_t> (rows * lanes.width)
    return rows


cdef void _fill(Lanes *lanes, Py_ssize_t lane, object path) noexcept:
    """A path gets a lane, which is empty or has it already."""
    cdef const uint8_t *symbols
    cdef Py_ssize_t at, length = PyUnicode_GET_LENGTH(path)
    if length > LANE or PyUnicode_KIND(path) != 1:
        lanes.lengths[lane] = NO_LANE
        lanes.others += 1
        return
    symbols = <const uint8_t *> PyUnicode_DATA(path)
    lanes.lengths[lane], lanes.ends[lane] = length, (1 << length) - 1
    for at in range(length):
        lanes.rows[lanes.row_of[symbols[at]] + lane] |= 1 << at


cdef void _empty(Lanes *lanes, Py_ssize_t lane, object path) noexcept:
    """A path leaves its lane: another may come there."""
    cdef const uint8_t *symbols = <const uint8_t *> PyUnicode_DATA(path)
    cdef Py_ssize_t at
    if lanes.lengths[lane] != NO_LANE:
        for at in range(lanes.lengths[lane]):
            lanes.rows[lanes.row_of[symbols[at]] + lane] = 0


cdef void _note_path(object path, Py_ssize_t length) noexcept:
    """The path of at most 64 steps with which others are compared."""
    cdef int kind = PyUnicode_KIND(path)
    if kind == 1:
        _note_all(<const uint8_t *> PyUnicode_DATA(path), length)
    elif kind == 2:
        _note_all(<const uint16_t *> PyUnicode_DATA(path), length)
    else:
        _note_all(<const uint32_t *> PyUnicode_DATA(path), length)


cdef void _forget_path(object path, Py_ssize_t length) noexcept:
    cdef int kind = PyUnicode_KIND(path)
    if kind == 1:
        _forget_all(<const uint8_t *> PyUnicode_DATA(path), length)
    elif kind == 2:
        _forget_all(<const uint16_t *> PyUnicode_DATA(path), length)
    else:
        _forget_all(<const uint32_t *> PyUnicode_DATA(path), length)


cdef inline uint64_t _edits_to(Py_ssize_t steps, object other, Py_ssize_t length) noexcept:
    cdef int kind = PyUnicode_KIND(other)
    if not steps:
        return length
    if kind == 1:
        return _edits(steps, <const uint8_t *> PyUnicode_DATA(other), length)
    if kind == 2:
        return _edits(steps, <const uint16_t *> PyUnicode_DATA(other), length)
    return _edits(steps, <const uint32_t *> PyUnicode_DATA(other), length)


cdef int32_t *_runs_of(list codes, list times) except NULL:
    """How many runs took each of so many paths, before anything is done with them. Whoever asks gives the memory back."""
    cdef Py_ssize_t at
    cdef int32_t *runs = <int32_t *> PyMem_Malloc((len(codes) + 1) * sizeof(int32_t))
    if runs is NULL:
        raise MemoryError
    try:
        for at in range(len(codes)):
            if not PyUnicode_CheckExact(codes[at]):
                raise TypeError("a path is a string")
            runs[at] = times[at]
    except BaseException:
        PyMem_Free(runs)
        raise
    return runs


cdef uint64_t _share_of(Py_ssize_t steps, PyObject *other) noexcept:
    """The distance of the path that was noted to another, 0 to none."""
    cdef Py_ssize_t length
    if other is NULL:
        return 0
    length = PyUnicode_GET_LENGTH(<object> other)
    return _part(_edits_to(steps, <object> other, length), max(steps, length))


cdef struct Place:
    PyObject *code  # NULL: free
    uint64_t later  # the sum of its distances to all that came since it is here, modulo 2^64
    int32_t runs
    int32_t next  # of a free place: the next free one, -1 none


cdef void *_resized(void *old, Py_ssize_t number, size_t size) except NULL:
    cdef void *new = PyMem_Realloc(old, number * size)
    if new is NULL:
        raise MemoryError
    return new


@cython.final
@cython.no_gc
cdef class PathSums:
    """As `LaterSums`, of paths."""

    cdef Place *places
    cdef int32_t *index  # the places by the hash of their codes, and 1 more; 0: none
    cdef int32_t *arrivals  # the places of the runs in the order in which they came
    cdef uint64_t *noted  # what `later` was when they came
    cdef Py_ssize_t made, room, slots, codes, first, end, lines
    cdef int32_t free
    cdef bint asking  # `far` is being asked
    cdef object far, sum

    def __cinit__(self, *_):
        self.free = NOWHERE
        self.sum = 0

    def __init__(self, far, there):
        """`far` counts the edits between two paths that are both longer than 64 steps."""
        cdef list codes = list(there), times = [there[code] for code in codes]
        cdef int32_t *runs = _runs_of(codes, times)
        cdef Py_ssize_t at
        self.far = far
        try:
            for at in range(len(codes)):
                if runs[at] < 1:
                    raise ValueError("fewer runs than one")
            self.count(codes, runs)
        finally:
            PyMem_Free(runs)

    def __dealloc__(self):
        cdef Py_ssize_t at
        for at in range(self.made):
            if self.places[at].code is not NULL:
                Py_DECREF(<object> self.places[at].code)
        PyMem_Free(self.places)
        PyMem_Free(self.index)
        PyMem_Free(self.arrivals)
        PyMem_Free(self.noted)

    def __sizeof__(self):
        return (
            sizeof(PathSums) + self.room * sizeof(Place) + self.slots * sizeof(int32_t)
            + self.lines * (sizeof(int32_t) + sizeof(uint64_t))
        )

    def __len__(self):
        return self.codes

    def __contains__(self, str code not None):
        return self.find(code) != NOWHERE

    @property
    def total(self):
        return self.sum

    def counts(self):
        cdef Py_ssize_t at
        cdef dict found = {}
        for at in range(self.made):
            if self.places[at].code is not NULL:
                found[<object> self.places[at].code] = self.places[at].runs
        return found

    def distance(self, str code not None):
        cdef uint64_t *shares = self.compared(code, NULL)
        try:
            return self.times_runs(shares)
        finally:
            PyMem_Free(shares)

    def add(self, str code not None, int32_t runs=1):
        if runs < 1:
            raise ValueError("fewer runs than one")
        self.come(code, runs, NULL)

    def remove(self, str code not None):
        self.go(code, NULL)

    def count_all(self, list codes not None, list times not None):
        cdef int32_t *runs
        codes, times = check_alike(codes, times)
        runs = _runs_of(codes, times)
        try:
            self.count(codes, runs)
        finally:
            PyMem_Free(runs)

    cdef int count(self, list codes, const int32_t *runs) except -1:
        """As `count_all`: those leave first."""
        cdef Lanes made
        cdef Lanes *lanes = NULL
        cdef Py_ssize_t at, coming = 0
        self.check_quiet()
        for at in range(len(codes)):
            coming += runs[at] > 0
        if coming and self.make_lanes(&made, codes, coming):
            lanes = &made
        try:
            for at in range(len(codes)):
                for _ in range(-<Py_ssize_t> runs[at]):
                    self.go(<str> codes[at], lanes)
            for at in range(len(codes)):
                if runs[at] > 0:
                    self.come(<str> codes[at], runs[at], lanes)
        finally:
            if lanes is not NULL:
                PyMem_Free(lanes.rows)

    cdef bint make_lanes(self, Lanes *lanes, list codes, Py_ssize_t coming) except -1:
        """Lanes for all paths that are there and so many that come, with a row for each step of these; False: none were made.

        They are not worth it where most paths have none, and must not take too much. Whoever asks gives the rows back.
        """
        cdef Py_ssize_t at, rows = 0
        memset(lanes, 0, sizeof(Lanes))
        lanes.width = (max(self.made, self.codes + coming) + TOGETHER - 1) // TOGETHER * TOGETHER
        for at in range(len(codes)):
            if _by_lanes(codes[at]):
                rows = _give_rows(lanes, rows, codes[at])
                if (rows + BESIDE_ROWS) * lanes.width > MOST_CELLS:
                    return False
        if not VECTORS or not rows:
            return False
        lanes.rows = <uint16_t *> PyMem_Calloc((rows + BESIDE_ROWS) * lanes.width, sizeof(uint16_t))
        if lanes.rows is NULL:
            raise MemoryError
        lanes.ends = lanes.rows + (rows + 1) * lanes.width
        lanes.lengths, lanes.edits = lanes.ends + lanes.width, lanes.ends + 2 * lanes.width
        for at in range(self.made):
            if self.places[at].code is not NULL:
                _fill(lanes, at, <object> self.places[at].code)
                if lanes.others * 2 > self.codes:
                    PyMem_Free(lanes.rows)
                    return False
        return True

    cdef int come(self, str code, int32_t runs, Lanes *lanes) except -1:
        """So many runs come that took a path, of which each step has a row if there are lanes."""
        cdef Py_ssize_t at
        cdef int32_t place
        cdef uint64_t *shares
        self.check_quiet()
        self.make_lines(runs)
        self.make_place()
        shares = self.compared(code, lanes)
        try:
            self.sum += self.times_runs(shares) if runs == 1 else self.times_runs(shares) * runs
            for at in range(self.made):
                self.places[at].later += shares[at] * <uint64_t> runs
        finally:
            PyMem_Free(shares)
        place = self.find(code)
        if place == NOWHERE:
            place = self.begin(code)
        self.places[place].runs += runs
        for at in range(self.end, self.end + runs):
            self.arrivals[at] = place
            self.noted[at] = self.places[place].later
        self.end += runs
        if lanes is not NULL:
            _fill(lanes, place, code)
        return 0

    cdef int go(self, str code, Lanes *lanes) except -1:
        """A run that took a path leaves."""
        cdef int32_t place = self.find(code)
        self.check_quiet()
        if place == NOWHERE:
            raise KeyError(code)
        if self.arrivals[self.first] != place:
            self.take_out(code, place, lanes)
        else:
            if self.end - self.first > FITTING:
                self.sum -= self.distance(code)
            else:
                self.sum -= self.places[place].later - self.noted[self.first]
            self.first += 1
        self.places[place].runs -= 1
        if not self.places[place].runs:
            if lanes is not NULL:
                _empty(lanes, place, code)
            self.give_back(place)
        return 0

    cdef int check_quiet(self) except -1:
        """Whoever counts edits must not change what is being counted."""
        if self.asking:
            raise RuntimeError("runs come or leave while their distances are counted")
        return 0

    cdef int take_out(self, str code, int32_t place, Lanes *lanes) except -1:
        """Subtract a run from the sums, and from what those that came before it still hold of it."""
        cdef Py_ssize_t at = self.first, after
        cdef uint64_t *shares = self.compared(code, lanes)
        try:
            self.sum -= self.times_runs(shares)
            while self.arrivals[at] != place:
                self.noted[at] += shares[self.arrivals[at]]
                at += 1
        finally:
            PyMem_Free(shares)
        after = self.end - at - 1
        memmove(self.arrivals + at, self.arrivals + at + 1, after * sizeof(int32_t))
        memmove(self.noted + at, self.noted + at + 1, after * sizeof(uint64_t))
        self.end -= 1
        return 0

    cdef uint64_t *compared(self, str code, Lanes *lanes) except NULL:
        """The distances of a path to those of all places, in units of 2^-52, by these lanes or (NULL) some that are made for it.

        Of a free place it does not matter. Whoever asks gives the memory back.
        """
        cdef Lanes made
        cdef Py_ssize_t steps = PyUnicode_GET_LENGTH(code)
        cdef uint64_t *shares
        self.check_quiet()
        if lanes is NULL and steps <= WORD and self.make_lanes(&made, [code], 0):
            try:
                return self.compared(code, &made)
            finally:
                PyMem_Free(made.rows)
        shares = <uint64_t *> PyMem_Malloc((self.made + 1) * sizeof(uint64_t))
        if shares is NULL:
            raise MemoryError
        if steps <= WORD:
            self.compare(code, steps, lanes if _by_lanes(code) else NULL, shares)
            return shares
        self.asking = True
        try:
            self.compare_long(code, steps, shares)
        except BaseException:
            PyMem_Free(shares)
            raise
        finally:
            self.asking = False
        return shares

    cdef void compare(self, str code, Py_ssize_t steps, Lanes *lanes, uint64_t *shares) noexcept:
        """The same of a path of at most 64 steps: with all that have lanes at once, with others one by one."""
        cdef Py_ssize_t at, length
        cdef bint noted = lanes is NULL or lanes.others
        if noted:
            _note_path(code, steps)
        if lanes is NULL:
            for at in range(self.made):
                shares[at] = _share_of(steps, self.places[at].code)
        else:
            edits_of_lanes(
                lanes.rows, lanes.row_of, lanes.ends, self.made, <const uint8_t *> PyUnicode_DATA(code), steps, lanes.edits
            )
            for at in range(self.made):
                length = lanes.lengths[at]
                if length != NO_LANE:
                    shares[at] = _parts[max(steps, length)][lanes.edits[at]]
                else:
                    shares[at] = _share_of(steps, self.places[at].code)
        if noted:
            _forget_path(code, steps)

    cdef int compare_long(self, str code, Py_ssize_t steps, uint64_t *shares) except -1:
        """The same of a path of more steps than a word has bits."""
        cdef Py_ssize_t at, length
        cdef uint64_t edits
        cdef object other
        for at in range(self.made):
            shares[at] = 0
            if self.places[at].code is not NULL:
                other = <object> self.places[at].code
                length = PyUnicode_GET_LENGTH(other)
                if length > WORD:
                    edits = self.far(code, other)
                else:
                    _note_path(other, length)
                    edits = _edits_to(length, code, steps)
                    _forget_path(other, length)
                shares[at] = _part(edits, max(steps, length))
        return 0

    cdef object times_runs(self, uint64_t *shares):
        """The sum of the distances, each as often as there are runs; in two halves where it might not fit."""
        cdef uint64_t one = 0, high = 0, low = 0
        cdef Py_ssize_t at
        if self.end - self.first <= FITTING:
            for at in range(self.made):
                one += shares[at] * <uint64_t> self.places[at].runs
            return one
        for at in range(self.made):
            high += (shares[at] >> HALF_BITS) * <uint64_t> self.places[at].runs
            low += (shares[at] & HALF) * <uint64_t> self.places[at].runs
        return (<object> high << HALF_BITS) + low

    cdef int32_t find(self, object code) except -2:
        """The place of a code, -1 if it has none."""
        cdef size_t slot
        cdef int32_t place
        if not self.slots:
            return NOWHERE
        slot = <size_t> PyObject_Hash(code) & (self.slots - 1)
        while self.index[slot]:
            place = self.index[slot] - 1
            if self.places[place].code == <PyObject *> code or PyObject_RichCompareBool(
                <object> self.places[place].code, code, Py_EQ
            ):
                return place
            slot = (slot + 1) & (self.slots - 1)
        return NOWHERE

    cdef int32_t begin(self, object code) except -2:
        """A place for a new code, one that is free or a further one: there is room for it."""
        cdef int32_t place = self.free
        if place != NOWHERE:
            self.free = self.places[place].next
        else:
            place = <int32_t> self.made
            self.made += 1
        Py_INCREF(code)
        self.places[place] = Place(<PyObject *> code, 0, 0, NOWHERE)
        self.codes += 1
        self.enter(place)
        return place

    cdef int give_back(self, int32_t place) except -1:
        """Nobody did so any more."""
        cdef PyObject *code = self.places[place].code
        self.leave(place)
        self.codes -= 1
        self.places[place].code = NULL
        self.places[place].next = self.free
        self.free = place
        Py_DECREF(<object> code)
        return 0

    cdef int enter(self, int32_t place) except -1:
        cdef size_t slot = self.slot_of(place)
        while self.index[slot]:
            slot = (slot + 1) & (self.slots - 1)
        self.index[slot] = place + 1
        return 0

    cdef int leave(self, int32_t place) except -1:
        """Take a place out of the index; those behind it that it had pushed on come nearer to where they belong."""
        cdef size_t last = self.slots - 1, hole = self.slot_of(place), slot, home
        while self.index[hole] != place + 1:
            hole = (hole + 1) & last
        slot = (hole + 1) & last
        while self.index[slot]:
            home = self.slot_of(self.index[slot] - 1)
            if ((slot - home) & last) >= ((slot - hole) & last):
                self.index[hole] = self.index[slot]
                hole = slot
            slot = (slot + 1) & last
        self.index[hole] = 0
        return 0

    cdef size_t slot_of(self, int32_t place) except? 0:
        """Where in the index the search for a place begins."""
        return <size_t> PyObject_Hash(<object> self.places[place].code) & (self.slots - 1)

    cdef int make_place(self) except -1:
        """Make room for one place more, and keep a quarter of the index free."""
        cdef Py_ssize_t room, at
        if self.free == NOWHERE and self.made == self.room:
            room = self.room + (self.room >> 3) + FEWEST
            self.places = <Place *> _resized(self.places, room, sizeof(Place))
            self.room = room
        if (self.codes + 1) * 4 > self.slots * 3:
            room = max(self.slots * 2, 2 * FEWEST)
            self.index = <int32_t *> _resized(self.index, room, sizeof(int32_t))
            self.slots = room
            memset(self.index, 0, room * sizeof(int32_t))
            for at in range(self.made):
                if self.places[at].code is not NULL:
                    self.enter(<int32_t> at)
        return 0

    cdef int make_lines(self, Py_ssize_t runs) except -1:
        """Make room for so many runs more, first where others have left."""
        cdef Py_ssize_t held = self.end - self.first, lines
        if self.end + runs <= self.lines:
            return 0
        if self.first:
            memmove(self.arrivals, self.arrivals + self.first, held * sizeof(int32_t))
            memmove(self.noted, self.noted + self.first, held * sizeof(uint64_t))
        self.first, self.end = 0, held
        if held + runs + (held >> 4) > self.lines:
            lines = held + runs + (held >> 3) + FEWEST
            self.arrivals = <int32_t *> _resized(self.arrivals, lines, sizeof(int32_t))
            self.noted = <uint64_t *> _resized(self.noted, lines, sizeof(uint64_t))
            self.lines = lines
        return 0



def apart(far, dict counts not None):
    """The sum of the distances over all pairs of runs by the paths they took, of few paths: it is not kept up to date.

    `far` is as that of `PathSums`.
    """
    cdef list codes = list(counts), runs = [counts[code] for code in codes]
    cdef Py_ssize_t at, other, steps, length, number = len(codes)
    cdef str one, two
    cdef uint64_t *edits = <uint64_t *> PyMem_Malloc((number + 1) * sizeof(uint64_t))
    cdef object total = 0, sum
    if edits is NULL:
        raise MemoryError
    try:
        for at in range(number):
            one = codes[at]  # all of them are strings
        for at in range(1, number):
            one = codes[at]
            steps = PyUnicode_GET_LENGTH(one)
            _edits_to_all(far, one, steps, codes, at, edits)
            sum = 0
            for other in range(at):
                two = codes[other]
                length = PyUnicode_GET_LENGTH(two)
                sum += runs[other] * _part(edits[other], max(steps, length))
            total += runs[at] * sum
    finally:
        PyMem_Free(edits)
    return total


cdef int _edits_to_all(far, str one, Py_ssize_t steps, list codes, Py_ssize_t number, uint64_t *edits) except -1:
    """How many edits a path is from each of so many."""
    cdef Py_ssize_t at, length
    cdef object other
    if steps <= WORD:
        _note_path(one, steps)
    for at in range(number):
        other = codes[at]
        length = PyUnicode_GET_LENGTH(other)
        if steps <= WORD:
            edits[at] = _edits_to(steps, other, length)
        elif length > WORD:
            edits[at] = far(one, other)
        else:
            _note_path(other, length)
            edits[at] = _edits_to(length, one, steps)
            _forget_path(other, length)
    if steps <= WORD:
        _forget_path(one, steps)
    return 0


def tools(str path not None):
    """The different steps of a path, sorted: as a string, a character each."""
    cdef Py_ssize_t steps = PyUnicode_GET_LENGTH(path), at, place, number = 0
    cdef uint32_t[WORD] found
    cdef uint32_t symbol
    if steps > WORD:
        return "".join(sorted(set(path)))
    for at in range(steps):
        symbol = PyUnicode_READ_CHAR(path, at)
        place = number
        while place and found[place - 1] > symbol:
            place -= 1
        if place and found[place - 1] == symbol:
            continue
        memmove(found + place + 1, found + place, (number - place) * sizeof(uint32_t))
        found[place] = symbol
        number += 1
    return PyUnicode_FromKindAndData(4, found, number)


# What is counted of many paths at once.


def count_all(dict counts not None, dict sizes not None, list values not None, list times not None):
    """As `Multiset.count` of each value: how often each is there, and how many are there so often."""
    cdef Py_ssize_t at, before, after
    cdef Py_ssize_t[USUAL] more  # by how often: how many values more are there so often
    cdef PyObject *found
    cdef object value
    values, times = check_alike(values, times)
    memset(more, 0, sizeof(more))
    try:
        for at in range(len(values)):
            value, after = values[at], times[at]
            found = PyDict_GetItemWithError(counts, value)
            before = 0 if found is NULL else <object> found
            after += before
            if after:
                counts[value] = after
                _note_size(sizes, more, after, 1)
            else:
                del counts[value]
            if before:
                _note_size(sizes, more, before, -1)
    finally:
        for at in range(USUAL):
            if more[at]:
                _change_size(sizes, at, more[at])


cdef inline int _note_size(dict sizes, Py_ssize_t *more, Py_ssize_t size, Py_ssize_t change) except -1:
    if 0 < size < USUAL:
        more[size] += change
        return 0
    return _change_size(sizes, size, change)


cdef int _change_size(dict sizes, Py_ssize_t size, Py_ssize_t change) except -1:
    """So many values more are there so often, or as many less as it is below 0."""
    cdef object key = size
    cdef PyObject *found = PyDict_GetItemWithError(sizes, key)
    cdef object after = change if found is NULL else <object> found + change
    if after:
        sizes[key] = after
    else:
        del sizes[key]
    return 0


def count_calls(dict sums not None, list codes not None, list times not None):
    """As `CallCounts.count` of each path, but for the number of runs. False: nothing was done, it must be done in Python."""
    cdef Py_ssize_t at, place, steps, here, many
    cdef const uint8_t *path
    cdef uint16_t[LOW] calls
    cdef int64_t[LOW] total, squares
    cdef object one, tool, before
    codes, times = check_alike(codes, times)
    if len(codes) > MANY_PATHS:
        return False
    for at in range(len(codes)):
        one = codes[at]
        if not PyUnicode_CheckExact(one) or PyUnicode_KIND(one) != 1 or PyUnicode_GET_LENGTH(one) > MANY_STEPS:
            return False
        if not -MANY_RUNS <= <Py_ssize_t> times[at] <= MANY_RUNS:
            return False
    memset(calls, 0, sizeof(calls))
    memset(total, 0, sizeof(total))
    memset(squares, 0, sizeof(squares))
    for at in range(len(codes)):
        one, many = codes[at], times[at]
        path, steps = <const uint8_t *> PyUnicode_DATA(one), PyUnicode_GET_LENGTH(one)
        for place in range(steps):
            calls[path[place]] += 1
        for place in range(steps):
            here = calls[path[place]]
            total[path[place]] += many * here
            squares[path[place]] += many * here * here
            calls[path[place]] = 0
    for at in range(LOW):
        before = sums.get(PyUnicode_FromOrdinal(<int> at)) if total[at] or squares[at] else None
        if before is not None and not (-MOST_SUM < before[0] < MOST_SUM and -MOST_SUM < before[1] < MOST_SUM):
            return False
    for at in range(LOW):
        if total[at] or squares[at]:
            tool = PyUnicode_FromOrdinal(<int> at)
            before = sums.pop(tool, None)
            if before is not None:
                total[at] += <int64_t> before[0]
                squares[at] += <int64_t> before[1]
            if total[at]:
                sums[tool] = (total[at], squares[at])
    return True


cdef object _tool_set(str path):
    cdef Py_ssize_t at
    cdef uint32_t bit
    cdef uint64_t found = 0
    for at in range(PyUnicode_GET_LENGTH(path)):
        bit = PyUnicode_READ_CHAR(path, at) - LOWEST
        if bit >= BITS:
            return tools(path)
        found |= <uint64_t> 1 << bit
    return found


@cython.final
cdef class Spelled:
    """What paths are spelled by, of many at once. It looks at the slots of their class."""

    cdef object kind
    cdef Py_ssize_t p_code, p_spelled

    def __init__(self, path):
        self.kind, self.p_code, self.p_spelled = path, _slot(path, "code"), _slot(path, "_spelled")

    def codes(self, list paths not None):
        """The code of each path."""
        cdef object path
        return [self.code_of(path) for path in paths]

    def steps(self, list paths not None):
        """The `steps` of each path."""
        cdef object path
        return [self.steps_of(path) for path in paths]

    def sets(self, list paths not None):
        """The different steps of each path: bits of a number; sorted where one has no bit, or tools share a character."""
        cdef object path, steps
        cdef list found = []
        for path in paths:
            steps = self.steps_of(path)
            found.append(_tool_set(steps) if PyUnicode_CheckExact(steps) else tuple(sorted(set(steps))))
        return found

    cdef inline object code_of(self, object path):
        cdef PyObject *code = self.field(path, self.p_code)
        return path.code if code is NULL else <object> code

    cdef inline object steps_of(self, object path):
        cdef PyObject *spelled = self.field(path, self.p_spelled)
        return path.steps if spelled is NULL or isinstance(<object> spelled, tuple) else self.code_of(path)

    cdef inline PyObject *field(self, object path, Py_ssize_t slot) noexcept:
        """What is in a slot; NULL where it is empty, or this is no such path."""
        if <PyObject *> Py_TYPE(path) != <PyObject *> self.kind:
            return NULL
        return (<PyObject **> (<char *> <PyObject *> path + slot))[0]


cdef tuple check_alike(list values, list times):
    """Lists of our own, of as many values as numbers: whoever is asked meanwhile may change others."""
    if len(values) != len(times):
        raise ValueError("not as many numbers as values")
    return values[:], times[:]
