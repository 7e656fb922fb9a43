# Where the slots of a class of Python's lie in its objects, for the modules that look at them there.

from types import MemberDescriptorType

cdef extern from "structmember.h":
    int T_OBJECT_EX
    ctypedef struct PyMemberDef:
        int type
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member


cdef Py_ssize_t _slot(object kind, str name) except -1:
    """Where in an object of this class one of its `__slots__` lies."""
    cdef object found = getattr(kind, name)
    if type(found) is not MemberDescriptorType or (<PyMemberDescrObject *><PyObject *>found).d_member.type != T_OBJECT_EX:
        raise ValueError(f"{name} is no slot of {kind}")
    return (<PyMemberDescrObject *><PyObject *>found).d_member.offset
