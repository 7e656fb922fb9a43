"""Masks and cuts: what programs write in the place of a value that they hide or shorten.

A value with a mask says nothing, neither that it is equal to another one nor that it differs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from otel_reliability.model.span import LONGEST

REDACTED: Final = frozenset(
    {
        *("__REDACTED__", "[REDACTED]", "<REDACTED>", "REDACTED", "<redacted>", "[redacted]"),
        *("[Redacted]", "<Redacted>", "**REDACTED**", "***REDACTED***", "<elided>"),
        *("[Filtered]", "[FILTERED]", "FILTERED"),
        *("<masked>", "[masked]", "<MASKED>", "[MASKED]", "MASKED"),
    }
)
"""Texts that instrumentations write where they hide a value: it says nothing, so what holds one is
unknown as a whole.
"""
_REPEATED: Final = re.compile(r"(?:\*{3,}|•{3,}|█{3,}|X{4,})(?:…|\.{3})?")
"""A symbol that is repeated in the place of a value says as little."""
_BRACKETED: Final = (
    r"[\[<({*_#%]+[\w .:'-]*(?:redacted|filtered|masked|hidden|elided|scrubbed|obfuscated"
    r"|anonymi[sz]ed|sanitized|censored|omitted|removed)(?![a-z])[^\[\]<>{}]{0,60}[\]>)}*_#%]+"
    r"|(?-i:[\[<{]{1,2}(?:[A-Z]{2,}_)*(?:PERSON|ADDRESS|NUMBER|LOCATION|DATE_TIME|CARD|CODE"
    r"|LICENSE|SSN|URL|EMAIL|PHONE|NAME|PII|PHI|SECRET|PASSWORD|TOKEN|KEY|IBAN|ORGANIZATION)"
    r"(?:_[0-9]{1,4})?[\]>}]{1,2}|\[object [A-Z]\w+\])"
)
_MASK: Final = re.compile(_BRACKETED, re.IGNORECASE)
"""A mask anywhere in a value: a word of its kind in brackets, a kind of personal data, or what
JavaScript writes for an object.
"""
_WHOLE_MASK: Final = re.compile(
    rf"[x#.●_-]{{4,}}|{_BRACKETED}|scrubbed|[\[<(]?truncated[\]>)]?"
    r"|undefined|n/a|\.{3}|…|<(?:not (?:specified|serializable|available)|(?:non-|un)serializable)>"
    r"|(?:content|value|data|input|output|arguments?)? ?(?:not captured|hidden|redacted|masked"
    r"|removed by policy)|removed_by_policy|content_redacted",
    re.IGNORECASE,
)
"""A mask where it is the whole value: one symbol, what also says so without brackets, and what
programs write that could not write the value.
"""
_MAX_NESTED_MASK: Final = 64
"""Characters of a mask inside a value."""
_MASKING_KEYS: Final = frozenset({"redacted", "masked", "hidden", "truncated"})
"""Keys of an object that stands in the place of a value: alone, with `_` in front, or beside…"""
_TELLS_OF_CUT: Final = re.compile(r"preview$|original_?(?:type|size|length)$", re.IGNORECASE).match
"""… a key that tells of what was cut."""
_CUT_MARK: Final = re.compile(r"truncated\b[^\n]{0,40}$", re.IGNORECASE)
"""The end of a text that says that it was cut."""
_CUT_END: Final = re.compile(
    r"(?:\.{2}|…|[\[(<{])[\s.…+\[(<{]*(?:(?:[\w,]+ ){0,3}truncated\b[^\n]{0,40}"
    r"|[\d,._]+ ?(?:more (?:char|byte)\w*|(?:char|byte)\w* (?:more|omitted)))[\])>}.…]*$",
    re.IGNORECASE,
)
"""End of a text inside a value that says so, for which it needs an ellipsis or a bracket."""
_CUT_END_SIZE: Final = 72
_CUT_MIDDLE: Final = re.compile(
    r"(?:\.{3}|…)[\s\\n\[(<]{0,6}"
    r"(?:(?:\w{1,24}:? )?\+?\d[\d,._]{0,15} ?(?:more )?(?:[a-z]{1,24} )?(?:truncated|omitted)"
    r"|(?:[\w,:-]{1,24} ){0,3}truncated)\b[^\\\n\[\]<>{}]{0,80}?[\s\\n\])>]{0,6}(?:\.{3}|…)"
    r"|[\[(<{][\s.…+]{0,8}\d[\d,._]{0,15} ?(?:more )?(?:char|character|byte|line|token|word)s?"
    r" (?:truncated|omitted)\b[^\n\[\]<>{}]{0,80}[\])>}]",
    re.IGNORECASE,
)
"""Words in the middle of a text that say that a part was left out there: between two ellipses, or
in brackets. In JSON a line ends with two letters. Every repetition is bounded: the text is a
stranger's, and is searched in the program that is watched.
"""
_ID_STARTS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
"""Characters that most ids begin with, and no mask of an id."""


def is_mask(text: str) -> bool:
    """Return whether a whole text stands in the place of a value."""
    return len(text) <= LONGEST and _WHOLE_MASK.fullmatch(text.strip()) is not None


def is_masked(text: str) -> bool:
    """Return whether a text inside a value is a mask."""
    if text in REDACTED or _REPEATED.fullmatch(text):
        return True
    return (
        len(text) <= _MAX_NESTED_MASK
        and text[:1] in "[<({*_#%"
        and _MASK.fullmatch(text) is not None
    )


def is_masked_id(text: str) -> bool:
    """Return whether a mask stands in the place of an id: all that it hides would be one.

    >>> is_masked_id("[REDACTED]"), is_masked_id("<CREDIT_CARD>"), is_masked_id("call_7")
    (True, True, False)
    """
    return text[0] not in _ID_STARTS and (is_masked(text) or is_mask(text))


def says_it_was_cut(text: str) -> bool:
    """Return whether a whole text says at its end that it was cut.

    >>> says_it_was_cut("The output was long ... [truncated]")
    True
    """
    return _CUT_MARK.search(text[-_CUT_END_SIZE:]) is not None or ends_cut(text)


def ends_cut(text: str) -> bool:
    """Return whether a text inside a value says at its end that it was cut.

    >>> ends_cut("# Copyright... [truncated 9000 chars]"), ends_cut("why is it truncated?")
    (True, False)
    """
    end = text[-_CUT_END_SIZE:]
    may_say_so = "runcated" in end or "RUNCATED" in end or " more " in end or " omitted" in end
    return may_say_so and _CUT_END.search(end) is not None


def lacks_middle(text: str) -> bool:
    """Return whether a text, which may be JSON, says that a part in its middle was left out: two
    that are equal may differ there.

    >>> lacks_middle("import os … 5000 characters omitted … main()"), lacks_middle("2 were omitted")
    (True, False)
    """
    may_say_so = "runcated" in text or " omitted" in text
    return may_say_so and _CUT_MIDDLE.search(text) is not None


def stands_for_hidden(pairs: Mapping[Any, Any]) -> bool:
    """Return whether an object says that it stands in the place of a value."""
    for key in pairs:
        word = str(key).strip("_$")
        if word not in _MASKING_KEYS or pairs[key] is not True:
            continue
        if len(pairs) == 1 or word != key or any(_TELLS_OF_CUT(str(other)) for other in pairs):
            return True
    if len(pairs) != 1:
        return False
    given = pairs.get("type")
    return isinstance(given, str) and given in _MASKING_KEYS
