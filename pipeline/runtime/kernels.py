"""The decorator for compiled code: numba with a safe cache on disk and reports of compiling.

`@kernel` compiles a function of scalars and arrays with numba at its first call: it runs without the interpreter's lock
(Python threads over kernels really run side by side) and is cached on disk, so a second start loads it in milliseconds.
With `NUMBA_DISABLE_JIT=1` nothing is compiled and a debugger steps through the functions (see `stepping`).

Compiled functions are cached by `diskcache` in a folder named after a hash of the module's source, of every package
module it imports, directly or not, and of the compiler: numba's own cache notices neither a change in the files a
function calls into nor damage, and where a folder cannot be written it falls back to one that may hold older code. They
are pickles, so they are the user's own and never shipped. `PIPELINE_CACHE` moves them.

This is the only module that uses parts of numba without a public name: `caching`, `serialize` and `runtime` of
`numba.core`, a dispatcher's `_cache`, the option `_nrt` and compile events. Each stands in one place below and under
`test_kernels.py`, so that a version of numba without one of them fails there first.

Compiling is reported on this module's logger: a warning once per process, then a record (level INFO) at each function's
beginning and at the end, with the number so far; the command line draws them. `prepare` compiles what a command needs
before its work begins, and `seconds_compiling` lets estimates of the time left leave it out.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core import caching, config, event, serialize
from numba.core.runtime import rtsys

from pipeline.runtime.diskcache import cache_root, load_bytes, store_bytes
from pipeline.runtime.progress import Progress, no_progress
from pipeline.runtime.stepping import stepped

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = Path(__file__).parents[1]
CACHE_VERSION = 1
_IMPORT = re.compile(rf"\b(?:from|import) +({PACKAGE.name}[.\w]*)(?: +import +(\([^)]*\)|[^\n]*))?")
log = logging.getLogger(__name__)


# The cache on disk


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Return the package's files that the source at `path` imports anywhere in it."""
    imported: set[Path] = set()
    for module, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        stem = PACKAGE.parent.joinpath(*module.split("."))
        for name in (stem, *(stem / word for word in re.findall(r"\w+", names))):
            imported.update(p for p in (name.with_suffix(".py"), name / "__init__.py") if p.is_file())
    return frozenset(imported)


@cache
def _fingerprint(path: Path) -> str:
    """Hash a source file, all package sources that it imports, directly or not, and the compiler's version."""
    pending, seen = [path], {path}
    while pending:
        for other in _imports(pending.pop()):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode())
    for source in sorted(seen):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _source(module: str) -> Path:
    """Return the file of an imported module."""
    return Path(sys.modules[module].__file__ or "").resolve()


def _folder(module: str, root: Path | None = None) -> Path:
    """Return the cache folder for the compiled functions of a module as its source is now."""
    return (root or cache_root()) / "kernels" / _fingerprint(_source(module))


class _Serializer(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Conversion of compiled functions to picklable values and back, as numba does it, without numba's own folders."""

    def __init__(self) -> None:
        pass


class _FunctionCache(caching.NullCache):  # type: ignore[misc]
    """Compiled forms of one function on disk, a file per signature, with the methods that numba's dispatcher calls."""

    serializer = _Serializer()
    warned = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._module, self._root = function.__module__, cache_root()
        self._name = f"{function.__module__}.{function.__qualname__}-{function.__code__.co_firstlineno}"

    @property
    def cache_path(self) -> str:
        return str(_folder(self._module, self._root))

    def _path(self, key: tuple[Any, ...]) -> Path:
        return (
            _folder(self._module, self._root)
            / f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.kernel"
        )

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled function for these types on this processor; None when it must be compiled."""
        key = (signature, target.codegen().magic_tuple())
        data = load_bytes(self._path(key), CACHE_VERSION)
        if data is None:
            return None
        rtsys.initialize(target)  # enough for finished code; `refresh` would load the compiler's library and scipy
        # the file's name has a part of the key's hash only: the whole key inside it decides
        stored, payload = pickle.loads(data)
        return self.serializer.rebuild(target, payload) if stored == key else None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Store a compiled function; a folder that cannot be written is named in one warning, and the work goes on."""
        if not self.serializer.check_cachable(compiled):
            return
        key = (signature, compiled.codegen.magic_tuple())
        try:
            store_bytes(self._path(key), serialize.dumps((key, self.serializer.reduce(compiled))), CACHE_VERSION)
        except OSError as error:
            if not _FunctionCache.warned:
                _FunctionCache.warned = True
                log.warning(
                    "compiled code cannot be kept in %s (%s), so every start compiles again; "
                    "set PIPELINE_CACHE to a folder that can be written",
                    self._root,
                    (error.strerror or str(error)).lower(),
                    extra={"kept": False},
                )


def is_compiled(module: str) -> bool:
    """Return whether kernels of a module, as its source is now, have been compiled before."""
    return any(_folder(module).glob(f"{module}.*.kernel"))


# Reports of compiling


class _Listener(event.Listener):  # type: ignore[misc]
    """Counts, times and logs compilations; garbage collection stops meanwhile, as it would take a fifth of the time.

    numba compiles one function at a time; a function's callees are compiled inside it, so starts and ends nest. It
    holds its global lock from start to end, so the numbers here need none though several threads may compile.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.preparation: _Preparation | None = None
        self._depth = 0
        self._began = 0.0
        self._collecting = False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = time.monotonic()
            self._collecting = gc.isenabled()
            gc.disable()
        self._depth += 1
        if self.count == 0:
            log.warning("compiling for this machine (first run only, some seconds) ...")
        self.count += 1
        name = _kernel_name(event.data["dispatcher"])
        if self.preparation is not None and name in _kernels:  # numba also compiles functions of its own
            self.preparation.begin(name)
        log.info("compiling %s", name, extra=self._facts())

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.monotonic() - self._began
            if self._collecting:
                gc.enable()
            log.info("compiled", extra={**self._facts(), "ended": True})

    def _facts(self) -> dict[str, Any]:
        begun, total = self.count, None
        if self.preparation is not None:  # numba's own functions are not among those that are needed
            begun, total = len(self.preparation.begun), len(self.preparation.needed)
        return {"count": self.count, "begun": begun, "total": total, "seconds": self.seconds, "ended": False}


class _Preparation:
    """Names of the kernels that a `prepare` will compile, and of those begun."""

    def __init__(self, needed: set[str], progress: Progress) -> None:
        self.needed, self.progress = needed, progress
        self.begun: set[str] = set()

    def begin(self, name: str) -> None:
        self.begun.add(name)
        self.needed.add(name)  # a function compiled for other types than those in the cache
        self.progress(len(self.begun), len(self.needed))


_listener = _Listener()
event.register("numba:compile", _listener)


def compiled_count() -> int:
    """Return the number of functions that this process compiled instead of loading them."""
    return _listener.count


def seconds_compiling() -> float:
    """Return the seconds that this process has compiled so far."""
    return _listener.seconds


_kernels: dict[str, Any] = {}
"""every kernel, by module and name"""


def _kernel_name(value: Any) -> str:
    """Return the name in `_kernels` of a value of a module; empty if it is no kernel."""
    function = getattr(value, "py_func", None)
    return "" if function is None else f"{function.__module__}.{function.__qualname__}"


def _uncompiled(modules: Iterable[str]) -> set[str]:
    """Return the names of the kernels of these modules, and of all they call, that are not in the cache."""
    wanted = set(modules)
    pending = [name for name, compiled in _kernels.items() if compiled.py_func.__module__ in wanted]
    missing: set[str] = set()
    while pending:
        name = pending.pop()
        function = _kernels[name].py_func
        if name not in missing and not any(_folder(function.__module__).glob(f"{name}-*.kernel")):
            missing.add(name)
            # compiled code calls by global names: those of a function's bytecode that are kernels are its callees
            called = map(_kernel_name, map(function.__globals__.get, function.__code__.co_names))
            pending += [callee for callee in called if callee in _kernels]
    return missing


def prepare(work: Callable[[], object], modules: Iterable[str], progress: Progress = no_progress) -> float:
    """Run a small example of the work to come, so that its kernels are compiled now; return the seconds it took.

    Parameters: `work` calls every kernel that the real work will call, on a few rows of the same types. `modules` are
    the modules that those kernels stand in: they and what they call are counted. `progress` is called
    with (compiled, all), and never when all are in the cache.
    """
    began = time.monotonic()
    _listener.preparation = _Preparation(_uncompiled(modules), progress)
    try:
        work()
    finally:
        _listener.preparation = None
    return time.monotonic() - began


# The decorator


@overload
def kernel(function: F, /) -> F: ...
@overload
def kernel(*, inline: bool = False, fastmath: bool = False, leaf: bool = False) -> Callable[[F], F]: ...
def kernel(
    function: F | None = None, /, *, inline: bool = False, fastmath: bool = False, leaf: bool = False
) -> F | Callable[[F], F]:
    """Compile a function: nogil, cached on disk, exact floating point unless `fastmath`.

    `inline=True` copies the body into its callers (for tiny helpers of hot loops). `leaf=True` is for functions that
    make no arrays: without numba's counting of references to their arguments, small ones run two to three times as
    fast, and threads do not fight over the counters.
    """

    def compile_later(target: F) -> F:
        if config.DISABLE_JIT:
            return stepped(target)
        options: dict[str, Any] = {"inline": "always"} if inline else {}
        if leaf:
            options["_nrt"] = False  # numba has no public name for it
        compiled: F = numba.njit(nogil=True, fastmath=fastmath, no_cfunc_wrapper=True, **options)(target)
        if _source(target.__module__).is_relative_to(PACKAGE):
            compiled._cache = _FunctionCache(target)  # type: ignore[attr-defined]  # what njit(cache=True) sets
        _kernels[_kernel_name(compiled)] = compiled
        return compiled

    return compile_later if function is None else compile_later(function)
