"""`typing`, `re`, `json` and `datetime` for programs that must start fast: what takes milliseconds comes later.

A hook is a new process for every event of an agent, and importing these and what they bring along took a quarter of a
small one. Modules that a hook uses take them from here instead: `from limpet.light import Any, json, re`.

- Names of `typing` mean nothing here; type checkers read those of `typing`.
- `re.compile` compiles a pattern when it is first used, and everything else of `re` imports it.
- `json.loads` and `json.dumps` use the parts of `json` that are written in C, as `json` itself does; what these
  cannot do goes to `json`, so that answers and errors are the same.
"""

from __future__ import annotations

__all__ = [
    "TYPE_CHECKING",
    "UTC",
    "Any",
    "BinaryIO",
    "Concatenate",
    "Generic",
    "NoReturn",
    "ParamSpec",
    "Protocol",
    "Self",
    "TypeVar",
    "cast",
    "datetime",
    "json",
    "overload",
    "re",
    "timedelta",
]

TYPE_CHECKING = False  # type checkers know this name
if TYPE_CHECKING:
    import json
    import re
    from datetime import UTC, datetime, timedelta
    from typing import (
        Any,
        BinaryIO,
        Concatenate,
        Generic,
        NoReturn,
        ParamSpec,
        Protocol,
        Self,
        TypeVar,
        cast,
        overload,
    )
else:
    from importlib import import_module

    # --- typing -------------------------------------------------------------------------------------------------------

    class _Marker:
        """A class that takes what it is generic over in brackets, and ignores it."""

        def __class_getitem__(cls, _item):
            return cls

    class Generic(_Marker):
        pass

    class Protocol(_Marker):
        pass

    class Concatenate(_Marker):
        pass

    Any = BinaryIO = NoReturn = Self = object

    def TypeVar(name, *_constraints, **_bounds):  # noqa: N802 - the names of typing
        return name

    def ParamSpec(name):  # noqa: N802
        return name

    def cast(_type, value):
        return value

    def overload(function):
        return function

    # --- datetime -----------------------------------------------------------------------------------------------------

    try:  # what is written in C; before Python 3.12 `datetime` reads all of it in Python too
        from _datetime import UTC, datetime, timedelta
    except ImportError:
        from datetime import UTC, datetime, timedelta

    # --- re -----------------------------------------------------------------------------------------------------------

    class LatePattern:
        """A regular expression that is compiled when it is first used."""

        def __init__(self, pattern, flags=0):
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name):
            value = getattr(import_module("re").compile(self.pattern, self._flags), name)
            setattr(self, name, value)  # found there from now on, without coming here
            return value

    class _Re:
        compile = LatePattern
        ASCII, IGNORECASE, MULTILINE, DOTALL, VERBOSE = 256, 2, 8, 16, 64

        def __getattr__(self, name):
            value = getattr(import_module("re"), name)
            setattr(self, name, value)  # found there from now on, without coming here
            return value

    re = _Re()

    # --- json ---------------------------------------------------------------------------------------------------------

    class _Reading:
        """What the scanner written in C asks for: the settings of `json.loads`."""

        strict = True
        object_hook = object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__

        def __init__(self, options):
            self.__dict__.update(options)

    def scanner(options):
        found = SCANNERS.get(key := tuple(options.items()))
        if found is None:
            found = SCANNERS[key] = make_scanner(_Reading(options))
        return found

    class _CannotWrite(Exception):
        pass

    def _not_plain(_value):
        raise _CannotWrite

    class _Json:
        def loads(self, text, **options):
            if make_scanner is not None and READ.issuperset(options):
                try:
                    plain = text if isinstance(text, str) else text.decode()
                    if plain[:1] in BLANK:
                        plain = plain.strip(BLANK)
                    value, end = scanner(options)(plain, 0)
                    if end == len(plain) or not plain[end:].strip(BLANK):
                        return value
                except (StopIteration, ValueError, SystemError):  # the last one where `json` is not imported yet
                    pass  # `json` says what is wrong with the text
            return import_module("json").loads(text, **options)

        def dumps(self, value, **options):
            if make_encoder is None or not WRITTEN.issuperset(options):
                return import_module("json").dumps(value, **options)
            string = ascii_string if options.get("ensure_ascii", True) else any_string
            between, after_key = options.get("separators") or (", ", ": ")
            write = options.get("default") or _not_plain
            encode = make_encoder(
                {}, write, string, None, after_key, between, False, False, options.get("allow_nan", True)
            )
            try:
                return "".join(encode(value, 0))
            except _CannotWrite:
                return import_module("json").dumps(value, **options)

        def __getattr__(self, name):
            return getattr(import_module("json"), name)

    BLANK = " \t\n\r"
    READ, WRITTEN = {"parse_constant", "parse_float"}, {"ensure_ascii", "separators", "default", "allow_nan"}  # options
    SCANNERS = {}  # by options
    try:
        from _json import encode_basestring as any_string
        from _json import encode_basestring_ascii as ascii_string
        from _json import make_encoder, make_scanner
    except ImportError:  # an implementation of Python without these parts
        make_scanner = make_encoder = None
    json = _Json()
