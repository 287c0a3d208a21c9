"""Arrays that lie in one file on disk and are mapped when they are used, so that a part of the rows costs no memory.

In: named arrays. Out: `StoredArrays`, which give them back as views of the file. After use their pages are given back
to the system, which keeps them cached as long as memory allows: a process that walks more rows than fit stays small.
Without a folder the arrays stay in memory. `StoredArrays` sent to another process take their arrays along.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pipeline.runtime.errors import PipelineError

ALIGNMENT = 64
"""arrays begin at multiples of so many bytes"""

Arrays = Mapping[str, NDArray[Any]]


def scratch_folder() -> Path | None:
    """Return the folder in which a worker of a cluster keeps arrays on disk; None outside of a worker."""
    from distributed import get_worker

    with suppress(ValueError, AttributeError):
        return Path(str(get_worker().local_directory))
    return None


class StoredArrays:
    """Named arrays in a file that is deleted with them; in memory without a folder."""

    def __init__(self, arrays: Arrays, folder: Path | None) -> None:
        self._in_memory: Arrays | None = None
        self._path: Path | None = None
        self._places: dict[str, tuple[int, str, tuple[int, ...]]] = {}
        if folder is None:
            self._in_memory = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
            return
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix="part-", delete=False) as file:
                self._path = Path(file.name)
                self._write(arrays, file)
        except OSError as error:
            raise PipelineError(
                f"a worker cannot keep its rows in {folder} ({error.strerror or error}): free some space there, or "
                "start it with another --local-directory"
            ) from None

    def _write(self, arrays: Arrays, file: IO[bytes]) -> None:
        position = 0
        for name, array in arrays.items():
            self._places[name] = position, array.dtype.str, array.shape
            file.write(np.ascontiguousarray(array).data)  # not `tofile`, which hides why it failed
            position += array.nbytes
            padding = -position % ALIGNMENT
            file.write(bytes(padding))
            position += padding
        if position == 0:
            file.write(bytes(ALIGNMENT))

    @contextmanager
    def opened(self) -> Iterator[Arrays]:
        """Open the arrays, to be read while the block lasts."""
        if self._in_memory is not None:
            yield self._in_memory
            return
        assert self._path is not None
        with self._path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # compiled code takes writable arrays
        yield {
            name: np.frombuffer(mapped, dtype, int(np.prod(shape)), position).reshape(shape)
            for name, (position, dtype, shape) in self._places.items()
        }
        if hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)

    def __getstate__(self) -> Arrays:
        with self.opened() as arrays:
            return {name: array.copy() for name, array in arrays.items()}

    def __setstate__(self, arrays: Arrays) -> None:
        self.__init__(arrays, scratch_folder())  # type: ignore[misc]

    def __del__(self) -> None:
        path = getattr(self, "_path", None)
        if path is not None:
            path.unlink(missing_ok=True)
