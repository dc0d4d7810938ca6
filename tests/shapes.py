"""Array shapes at run time: once this is imported, functions and dataclasses of the library and its studies check them.

jaxtyping's own import hook wraps every function, which more than doubles the time of these tests, and checks what a
dataclass is given before it has made arrays of it. This one wraps only what has an array's shape in its annotations,
and looks at a dataclass once it is made. Annotations of other kinds are for pyright: a call with an argument of a wrong
kind must reach the library's own refusal.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from beartype.door import is_bearable
from jaxtyping import TypeCheckError, jaxtyped

PACKAGES = {"gradientdice", "gradientdice_studies"}
ACTIVE = os.environ.get("CHECK_SHAPES", "1") == "1"
# Of each function, so many calls are checked in each test: a loop over a hundred logs repeats the same shapes.
CALLS = 3
SHAPE = re.compile(r"\b(Float|Int|Integer|Bool|Num|Shaped|Real|Rows|Samples)\b")


class Count:
    """Whether the next call is to be checked."""

    test = 0

    def __init__(self) -> None:
        self._test, self._calls = -1, 0

    def due(self) -> bool:
        """Counts a call."""
        if self._test != Count.test:
            self._test, self._calls = Count.test, 0
        self._calls += 1
        return self._calls <= CALLS


def begin_test() -> None:
    """All functions are checked again."""
    Count.test += 1


def checked(function: Any) -> Any:
    """Checks the arrays among a function's arguments, and what it returns."""
    names, count = tuple(inspect.signature(function).parameters), Count()
    hints: dict[str, Any] = {}

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not count.due():
            return function(*args, **kwargs)
        if not hints:  # not before the first call, when all names are known
            hints.update(_resolved(function.__annotations__, function.__globals__))
        # A call that does not fit is refused by the function itself, below.
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        with jaxtyped("context"):
            for name, value in given.items():
                if name in hints:
                    _check(f"{function.__qualname__}: {name}", value, hints[name])
            result = function(*args, **kwargs)
            if "return" in hints:
                _check(f"{function.__qualname__}: the result", result, hints["return"])
        return result

    return wrapper


def checked_fields(kind: Any) -> Any:
    """Checks the arrays among a dataclass's fields when one is made."""
    make, count, hints = kind.__init__, Count(), {}

    @functools.wraps(make)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if not count.due():
            return
        if not hints:
            hints.update(_resolved(kind.__annotations__, vars(sys.modules[kind.__module__])))
        with jaxtyped("context"):
            for name, hint in hints.items():
                _check(f"{kind.__qualname__}.{name}", getattr(self, name), hint)

    kind.__init__ = init
    return kind


def _resolved(annotations: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    return {name: eval(text, names) for name, text in annotations.items() if SHAPE.search(str(text))}


def _check(what: str, value: Any, hint: Any) -> None:
    if not is_bearable(value, hint):
        shape = f"{value.dtype}{value.shape}" if hasattr(value, "shape") else ""
        raise TypeCheckError(f"{what} is {type(value).__name__} {shape}, not {hint}")


class _Decorate(ast.NodeTransformer):
    """Puts `checked` next to each `def`, and `checked_fields` on top of each dataclass, that names a shape."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        annotations = [node.returns, *(argument.annotation for argument in every)]
        if any(part is not None and SHAPE.search(ast.unparse(part)) for part in annotations):
            node.decorator_list.append(_name("checked", node))
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        fields = [part.annotation for part in node.body if isinstance(part, ast.AnnAssign)]
        is_dataclass = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        if is_dataclass and any(SHAPE.search(ast.unparse(field)) for field in fields):
            node.decorator_list.insert(0, _name("checked_fields", node))
        return self.generic_visit(node)


def _name(name: str, where: ast.AST) -> ast.expr:
    decorator = ast.parse(f"__import__('shapes').{name}", mode="eval").body
    for part in ast.walk(decorator):
        ast.copy_location(part, where)
    return decorator


class _Loader(SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        return compile(_Decorate().visit(ast.parse(data)), path, "exec", dont_inherit=True, optimize=_optimize)

    def path_stats(self, path: Any) -> Any:
        raise OSError("bytecode that is kept would be that of the plain source")


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.split(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


# A process that a test starts may have imported a package by now: then nothing is checked in it.
if ACTIVE and not PACKAGES & sys.modules.keys():
    sys.meta_path.insert(0, _Finder())
