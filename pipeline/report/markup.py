"""SVG as text: tags with escaped attributes, short numbers, the style sheet of pages and picture files.

Colours are those of
Okabe and Ito, told apart with any kind of colour blindness, and never the only sign: mixes are always drawn in the
same order, lines have their own marks and dashes. Light or dark follows the reader's system.
"""

from __future__ import annotations

import html
import math
import re
from importlib.resources import files
from pathlib import Path

ACTION_COLOURS = ("#b9bec7", "#56b4e9", "#e8894a", "#f0c419", "#de8ab9", "#b391d9", "#e8574f")
"""fold, call, then raises from small to all in; dark text on each has a contrast of at least 4.5"""

RESOURCES = Path(str(files("pipeline.report"))) / "resources"
"""style sheets and templates of pages"""

LINES = 7
"""lines of one plot that colour, dash and mark tell apart"""


def _rules(name: str) -> str:
    """The rules of a style sheet beside this module in one line."""
    return (RESOURCES / name).read_text(encoding="utf-8").replace("\n", "")


def _drawings() -> str:
    """The rules of drawings with a fill per action, and a stroke, dash and mark per line."""
    dashes = ("none", "6 3", "2 2", "8 3 2 3", "1 3", "12 3", "4 2 1 2 1 2")
    fills = "".join(f".f{i}{{fill:var(--a{i})}}" for i in range(len(ACTION_COLOURS)))
    fills += "".join(
        f".l{i}{{fill:none;stroke-width:1.6;stroke:var(--m{i});stroke-dasharray:{dashes[i]}}}.k{i}{{fill:var(--m{i})}}"
        for i in range(LINES)
    )
    return _rules("drawings.css").replace("FILLS", fills)


def style_sheet() -> str:
    """The style sheet in one line, with the colours of the actions."""
    actions = "".join(f"--a{i}:{colour};" for i, colour in enumerate(ACTION_COLOURS))
    return _rules("page.css").replace("DRAWINGS", _drawings()).replace("ACTIONS", actions)


def picture(inside: str, width: float, height: float) -> str:
    """Drawings as an SVG file of their own, on a white background so that they are readable everywhere.

    The page's light colours are written out: programs other than browsers do not know the variables of a style sheet.
    """
    style = style_sheet()
    colours = dict(re.findall(r"(--\w+):([^;}]+)", style[style.index(":root{") : style.index("}")]))
    rules = re.sub(r"var\((--\w+)\)", lambda found: colours[found[1]], _drawings())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 0 {number(width)} {number(height)}"><style>{rules}svg .title{{font-size:17px;font-weight:600}}'
        "svg .head{font-size:12px}</style>"
        f'<rect x=".5" y=".5" width="{number(width - 1)}" height="{number(height - 1)}" rx="8" fill="#fff" '
        f'stroke="{colours["--line"]}"/>{inside}</svg>\n'
    )


def escape(text: object) -> str:
    """Text for between tags or inside an attribute."""
    return html.escape(str(text))


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element; `class_` gives class, other underscores give hyphens; numbers are written short.

    >>> tag("rect", x=1.50, width=2.0, class_="f0")
    '<rect x="1.5" width="2" class="f0"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{number(value) if isinstance(value, float) else escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not inside and name in ("rect", "path", "line", "circle", "use", "meta", "polyline"):
        return f"<{name}{written}/>"
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def number(value: float, digits: int = 2) -> str:
    """A number without needless zeros.

    >>> number(1.50), number(-0.001), number(12.0)
    ('1.5', '0', '12')
    """
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def percent(value: float, digits: int = 1) -> str:
    """A share in percent, or a dash where unknown.

    >>> percent(0.1886), percent(float("nan"))
    ('18.9\xa0%', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{100 * value:.{digits}f}\xa0%"
