"""`NamedTuple` as in `typing`, for programs that must start fast: its classes are made without compiling anything.

A hook is a new process for every event of an agent, and defines some eighty such classes before it can answer.
`typing.NamedTuple` compiles a constructor for each, which took a tenth of a hook's time. Here the constructor of a
class is a copy of the one below that takes as many fields, with its parameters renamed.
"""

import sys

from limpet.light import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 14):  # where annotations are not in the body of a class any more
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - exported
else:
    from _collections import _tuplegetter
    from collections import namedtuple
    from types import FunctionType

    new = tuple.__new__
    CONSTRUCTORS = (  # by number of fields
        lambda _cls: new(_cls, ()),
        lambda _cls, a: new(_cls, (a,)),
        lambda _cls, a, b: new(_cls, (a, b)),
        lambda _cls, a, b, c: new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: new(_cls, (a, b, c, d, e, f)),
        lambda _cls, a, b, c, d, e, f, g: new(_cls, (a, b, c, d, e, f, g)),
        lambda _cls, a, b, c, d, e, f, g, h: new(_cls, (a, b, c, d, e, f, g, h)),
        lambda _cls, a, b, c, d, e, f, g, h, i: new(_cls, (a, b, c, d, e, f, g, h, i)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j: new(_cls, (a, b, c, d, e, f, g, h, i, j)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k: new(_cls, (a, b, c, d, e, f, g, h, i, j, k)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m: new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n: new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m, n)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p: new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x, y: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x, y)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x, y, z: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x, y, z)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x, y, z, aa: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x, y, z, aa)
        ),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x, y, z, aa, bb: new(
            _cls, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, s, t, u, v, w, x, y, z, aa, bb)
        ),
    )

    def _make(cls, iterable):
        result = new(cls, iterable)
        if len(result) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(result)}")
        return result

    def _replace(self, /, **values):
        result = self._make(map(values.pop, self._fields, self))
        if values:
            raise ValueError(f"Got unexpected field names: {list(values)!r}")
        return result

    def _asdict(self):
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self):  # noqa: N807 - a method of the classes below
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({values})"

    def __getnewargs__(self):  # noqa: N807
        return tuple(self)

    SHARED = {
        "__slots__": (),
        "_make": classmethod(_make),
        "_replace": _replace,
        "_asdict": _asdict,
        "__repr__": __repr__,
        "__getnewargs__": __getnewargs__,
        "__replace__": _replace,  # of copy.replace
    }

    def _constructor(names: tuple[str, ...], defaults: tuple[Any, ...], owner: str) -> FunctionType:
        if len(names) >= len(CONSTRUCTORS):
            return namedtuple("Many", names, defaults=defaults).__new__
        code = CONSTRUCTORS[len(names)].__code__
        code = code.replace(co_varnames=("_cls", *names), co_name="__new__", co_qualname=f"{owner}.__new__")
        return FunctionType(code, {"new": new, "__name__": owner}, "__new__", defaults)

    class RecordType(type):
        """Makes a tuple with named fields of a class body."""

        def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if meta.__dict__.get("base") is None:
                meta.base = type.__new__(meta, name, bases, body)
                return meta.base
            names = tuple(body.get("__annotations__", ()))
            optional = tuple(field for field in names if field in body)
            if optional != names[len(names) - len(optional) :]:
                raise TypeError(f"{name}: a field without a default follows one with a default")
            defaults = tuple(body.pop(field) for field in optional)
            fields = {field: _tuplegetter(index, sys.intern(f"Field {index}")) for index, field in enumerate(names)}
            own = {
                **SHARED,
                **fields,
                "_fields": names,
                "_field_defaults": dict(zip(optional, defaults, strict=True)),
                "__match_args__": names,
                "__new__": _constructor(names, defaults, name),
                **body,
            }
            return type(name, (tuple, *(base for base in bases if base is not meta.base)), own)

    class NamedTuple(metaclass=RecordType):
        pass
