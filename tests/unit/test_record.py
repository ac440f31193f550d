"""`limpet.record.NamedTuple` beside the one of `typing`: the same by everything that the house uses of it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import typing
from typing import Any, Generic, TypeVar

import pytest

from limpet.record import NamedTuple

T = TypeVar("T")


class Ours(NamedTuple):
    """A place."""

    path: str
    line: int = 1
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}"

    @classmethod
    def first(cls, path: str) -> Ours:
        return cls(path)


class Theirs(typing.NamedTuple):
    """A place."""

    path: str
    line: int = 1
    tags: tuple[str, ...] = ()


class Box(NamedTuple, Generic[T]):
    value: T


class Empty(NamedTuple):
    pass


MANY = {f"field{number}": number for number in range(40)}
METACLASS: Any = type(NamedTuple)
Many: Any = METACLASS("Many", (NamedTuple,), {"__annotations__": dict.fromkeys(MANY, int), "field39": 39})


def test_it_behaves_as_the_one_of_typing() -> None:
    for ours, theirs in ((Ours("a"), Theirs("a")), (Ours("a", tags=("x",)), Theirs("a", tags=("x",)))):
        assert tuple(ours) == tuple(theirs)
        assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
        assert ours._asdict() == theirs._asdict()
        assert tuple(ours._replace(line=5)) == tuple(theirs._replace(line=5))
        assert type(ours._replace(line=5)) is Ours
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__"):
        assert getattr(Ours, name) == getattr(Theirs, name)
    assert Ours._make(["a", 2, ()]) == ("a", 2, ())
    assert Ours.first("b").name == "b:1"
    assert not hasattr(Ours("a"), "__dict__")


def test_copies_are_equal() -> None:
    place = Ours("a", 3)
    for twin in (copy.copy(place), copy.deepcopy(place), pickle.loads(pickle.dumps(place))):  # noqa: S301 - our own
        assert twin == place
        assert type(twin) is Ours


def test_fields_are_matched_and_cannot_be_changed() -> None:
    match Ours("a", 7):
        case Ours(path, line):
            assert (path, line) == ("a", 7)
    with pytest.raises(AttributeError):
        Ours("a").path = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), (("a", 1, (), "more"), {}), (("a",), {"path": "b"}), (("a",), {"typo": 1})]
)
def test_wrong_arguments_are_refused_by_name(arguments: tuple[object, ...], named: dict[str, object]) -> None:
    refusals = []
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError) as refusal:
            kind(*arguments, **named)  # type: ignore[arg-type]
        refusals.append(str(refusal.value).replace("Theirs", "Ours"))
    assert refusals[0] == refusals[1]


def test_a_value_of_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match="typo"):
        Ours("a")._replace(typo=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Ours._make(["a"])


def test_generic_empty_and_large_ones() -> None:
    assert Box(3).value == 3
    assert Box[int](3) == (3,)
    assert Empty() == ()
    assert Many(**{name: value for name, value in MANY.items() if name != "field39"})._asdict() == MANY


def test_no_field_without_a_default_follows_one_with_a_default() -> None:
    with pytest.raises(TypeError):
        METACLASS("Wrong", (NamedTuple,), {"__annotations__": {"a": int, "b": int}, "a": 1})


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there it is the one of typing")
def test_a_hook_compiles_no_constructor() -> None:
    """What this is for: none of the classes that a start needs is made by `typing`."""
    program = (
        "import collections; real = collections.namedtuple; names = []\n"
        "def counted(name, *rest, **named): names.append(name); return real(name, *rest, **named)\n"
        "collections.namedtuple = counted\n"
        "import limpet.doors.hooks.actions\n"
        "print([name for name in names if name.strip('_') != 'CacheInfo'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
