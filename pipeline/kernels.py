"""The one decorator for compiled code.

`@kernel` compiles a function of scalars and arrays with numba: it runs without the interpreter's lock (Python
threads over kernels really run side by side) and is kept on disk, so a second start loads it in milliseconds.

numba's own disk cache notices a change in the file a function lives in but not in the files it calls into, so
the folder is named after a hash of the module's source and of every package module it imports, directly or not.
The cache is the user's own (numba stores pickles): it is never shipped. `PIPELINE_CACHE` moves it.

Compiling is announced on the `pipeline.kernels` logger, once per process; the command line shows it.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import logging
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core import config, event

__all__ = ["cache_root", "compiled_count", "is_kept", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = Path(__file__).parent
_IMPORT = re.compile(rf"\b(?:from|import) +({PACKAGE.name}[.\w]*)(?: +import +(\([^)]*\)|[^\n]*))?")
log = logging.getLogger(__name__)


def _load_arrays() -> None:
    """Load numba's array functions without scipy's BLAS: no kernel uses it, and looking for it takes 0.2 s."""
    blas = "scipy.linalg.cython_blas"
    if blas not in sys.modules:
        sys.modules[blas] = None  # type: ignore[assignment]
        try:
            importlib.import_module("numba.np.arraymath")
        finally:
            del sys.modules[blas]


_load_arrays()


def cache_root() -> Path:
    """The user's cache folder: `$PIPELINE_CACHE`, else `acpc-pipeline` in `$XDG_CACHE_HOME` or `~/.cache`."""
    return _root(*map(os.environ.get, ("PIPELINE_CACHE", "XDG_CACHE_HOME", "HOME")))


@cache
def _root(named: str | None, base: str | None, home: str | None) -> Path:
    """Found once: it is asked for at every decision."""
    return Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "acpc-pipeline"


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Package files that the source at `path` imports anywhere in it."""
    found: set[Path] = set()
    for module, names in _IMPORT.findall(path.read_text()):
        stem = PACKAGE.parent.joinpath(*module.split("."))
        for name in (stem, *(stem / word for word in re.findall(r"\w+", names))):
            found.update(p for p in (name.with_suffix(".py"), name / "__init__.py") if p.is_file())
    return frozenset(found)


@cache
def _fingerprint(path: Path) -> str:
    """A hash of a source file and of all package sources behind it, and of the compiler."""
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


class _Notice(event.Listener):  # type: ignore[misc]
    """Counts compilations and says so the first time; no garbage is collected meanwhile (a fifth of the time)."""

    count = 0
    depth = 0
    collecting = False

    def on_start(self, event: Any) -> None:
        if self.count == 0:
            log.warning("compiling for this machine (first run only, some seconds) ...")
        self.count += 1
        if self.depth == 0:
            self.collecting = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.collecting:
            gc.enable()


_notice = _Notice()
event.register("numba:compile", _notice)


def is_kept(module: str) -> bool:
    """Whether kernels of a module, as its source is now, have been compiled before."""
    source = Path(sys.modules[module].__file__ or "").resolve()
    return any((cache_root() / "kernels" / _fingerprint(source)).rglob("*.nbi"))


def compiled_count() -> int:
    """How many functions this process compiled instead of loading them."""
    return _notice.count


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
        source = Path(sys.modules[target.__module__].__file__ or "").resolve()
        before = config.CACHE_DIR
        inside = source.is_relative_to(PACKAGE)
        config.CACHE_DIR = str(cache_root() / "kernels" / _fingerprint(source)) if inside else before
        try:
            options: dict[str, Any] = {"inline": "always"} if inline else {}
            if leaf:
                options["_nrt"] = False
            made: F = numba.njit(cache=inside, nogil=True, fastmath=fastmath, no_cfunc_wrapper=True, **options)(target)
        finally:
            config.CACHE_DIR = before
        return made

    return compile_later if function is None else compile_later(function)
