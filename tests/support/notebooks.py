"""Run the notebooks of examples/notebooks: `python tests/support/notebooks.py` writes their outputs again.

Cells run in order in one namespace, from the repository's folder with `out/` elsewhere, as a kernel would; the last
expression of a cell is shown as text, as HTML and as a picture where it has these forms.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "notebooks"
FORMS = {"text/html": "_repr_html_", "image/png": "_repr_png_"}


def shown(value: Any) -> dict[str, Any]:
    """The forms of a cell's last value, as a notebook stores them."""
    data: dict[str, Any] = {"text/plain": repr(value)}
    for kind, method in FORMS.items():
        if hasattr(value, method) and (form := getattr(value, method)()) is not None:
            data[kind] = base64.b64encode(form).decode() if isinstance(form, bytes) else form
    return data


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell and return its outputs."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(last, "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": shown(value)})
    return outputs


def run(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of its cells."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        cell["execution_count"] = number + 1
        cell["outputs"] = run_cell("".join(cell["source"]), names)
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = number + 1
    return notebook


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for notebook_path in sorted(FOLDER.glob("*.ipynb")):
        text = json.dumps(run(notebook_path), indent=1, ensure_ascii=False)
        notebook_path.write_text(text + "\n", encoding="utf-8")
