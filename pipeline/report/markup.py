"""HTML and SVG as text: tags with escaped attributes, short numbers, and the page around them.

The page is one file: its style is inline, it has no script and asks the network for nothing. Colours are those of
Okabe and Ito, told apart with any kind of colour blindness, and never the only sign: mixes are always drawn in the
same order, lines have their own marks and dashes. Light or dark follows the reader's system.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Collection, Iterable, Sequence

ACTION_COLOURS = ("#b9bec7", "#56b4e9", "#e8894a", "#f0c419", "#de8ab9", "#b391d9", "#e8574f")
"""fold, call, then raises from small to all in; dark text on each has a contrast of at least 4.5"""

LINES = 7
"""lines of one plot that colour, dash and mark tell apart"""

DRAWINGS = """
svg text{font:10px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--soft)}
svg .ink{fill:var(--ink)}svg .mid{text-anchor:middle}svg .end{text-anchor:end}
.axis{stroke:var(--line);fill:none}.dash{stroke:var(--soft);stroke-dasharray:3 3;fill:none}
FILLS
.chart text{font:7.4px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#111;
text-anchor:middle}.none{fill:url(#none)}
.edge{fill:none;stroke:var(--paper);stroke-width:1}.hit{fill:transparent}.hit:hover{stroke:var(--ink)}
"""
"""the rules of drawings, for the page and for picture files"""

STYLE = """
:root{--paper:#fff;--ink:#1c1e22;--soft:#5a606b;--line:#d5d9e0;--panel:#f5f6f8;--good:#dcefe6;
ACTIONS
--m0:#0072b2;--m1:#c65300;--m2:#00805d;--m3:#a8477f;--m4:#7d6300;--m5:#5a606b;--m6:#7a3ff2}
@media(prefers-color-scheme:dark){:root{--paper:#14161a;--ink:#e6e8ec;--soft:#a3aab6;--line:#373d47;--panel:#1d2026;
--good:#1d3a2e;--m0:#5cb3f0;--m1:#ff8a3d;--m2:#3fcf9f;--m3:#e59cc6;--m4:#d9b93b;--m5:#a3aab6;--m6:#b79bff}}
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"DejaVu Sans",sans-serif}
main,header,footer{max-width:72rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.5rem}h1{font-size:1.6rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:.8rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.4rem 0 .8rem;max-width:46rem}
.soft,figcaption,caption{color:var(--soft)}.lead{font-size:1.05rem}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem;margin:.8rem 0}a{color:var(--m0)}
.scroll{overflow-x:auto;margin:.5rem 0 1rem;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.87rem}
caption{text-align:left;padding:.2rem 0 .4rem}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-weight:600}thead th{border-bottom:2px solid var(--line);vertical-align:bottom}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--paper)}
th.word,td.word{text-align:left}
.wrap td:first-child{white-space:normal;overflow-wrap:anywhere}
th small{display:block;font-weight:400;color:var(--soft)}
.pinned th:first-child,.pinned td:first-child{width:4.6rem;min-width:4.6rem;max-width:4.6rem}
.pinned th:nth-child(2),.pinned td:nth-child(2){position:sticky;left:4.6rem;background:var(--paper);
border-right:1px solid var(--line)}
td.best{background:var(--good);font-weight:600}td small{color:var(--soft)}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,var(--least,16rem)),1fr));gap:1rem;
margin:.5rem 0 1rem}
.grid>*{min-width:0;max-width:var(--most,30rem)}
figure{margin:0}figcaption{font-size:.85rem;margin:.15rem 0 .3rem}
svg{display:block;width:100%;height:auto;overflow:visible}
DRAWINGS
.key{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.85rem;color:var(--soft);margin:.3rem 0}
.key i{display:inline-block;width:.9em;height:.9em;border-radius:2px;margin-right:.35em;vertical-align:-.1em}
.key svg{display:inline-block;width:1.9em;height:.9em;margin-right:.35em;vertical-align:-.1em}
.b0{background:var(--a0)}.b1{background:var(--a1)}.b2{background:var(--a2)}.b3{background:var(--a3)}
.hatched{background:repeating-linear-gradient(45deg,#c3c8d1 0 2px,#eef0f3 2px 5px)}
.b4{background:var(--a4)}.b5{background:var(--a5)}.b6{background:var(--a6)}
.card{display:inline-block;min-width:1.95em;padding:.1em .25em;margin:0 .12em .12em 0;border:1px solid #9aa1ad;
border-radius:.28em;background:#fff;color:#16181c;text-align:center;font-weight:600;line-height:1.35}
.card.red{color:#b3261e}.card.back{background:var(--panel);border-style:dashed;color:var(--soft)}
.hand{border:1px solid var(--line);border-radius:.5rem;padding:.7rem .8rem;background:var(--panel)}
.hand{overflow-wrap:anywhere}
.hand h4{margin:0 0 .4rem;font-size:.92rem}.cards{display:flex;flex-wrap:wrap;gap:.1rem .9rem;margin:.2rem 0}
.cards small{display:block;color:var(--soft);font-size:.75rem}
.bet{font-size:.85rem;margin:.15rem 0}
.mix{display:flex;height:1.15rem;border-radius:3px;overflow:hidden;margin:.1rem 0 .35rem;font-size:.75rem;
line-height:1.15rem;color:#111}
.mix span{overflow:hidden;text-align:center;white-space:nowrap}
.said{font-size:.8rem;color:var(--soft)}
details{margin:.5rem 0 1rem}summary{cursor:pointer;color:var(--m0)}
footer{margin-top:3rem;padding-bottom:2rem;color:var(--soft);font-size:.85rem;overflow-wrap:anywhere}
footer ul{padding-left:1.1rem}
@media(max-width:40rem){body{font-size:14px}th,td{padding:.22rem .4rem}table{font-size:.8rem}
main,header,footer{padding-left:.7rem;padding-right:.7rem}}
@media print{details{display:block}}
"""


def _drawings() -> str:
    """The rules of drawings with a fill per action, and a stroke, dash and mark per line."""
    dashes = ("none", "6 3", "2 2", "8 3 2 3", "1 3", "12 3", "4 2 1 2 1 2")
    fills = "".join(f".f{i}{{fill:var(--a{i})}}" for i in range(len(ACTION_COLOURS)))
    fills += "".join(
        f".l{i}{{fill:none;stroke-width:1.6;stroke:var(--m{i});stroke-dasharray:{dashes[i]}}}.k{i}{{fill:var(--m{i})}}"
        for i in range(LINES)
    )
    return DRAWINGS.replace("FILLS", fills)


def style_sheet() -> str:
    """The style sheet in one line, with the colours of the actions."""
    actions = "".join(f"--a{i}:{colour};" for i, colour in enumerate(ACTION_COLOURS))
    return STYLE.replace("DRAWINGS", _drawings()).replace("ACTIONS", actions).replace("\n", "")


def picture(inside: str, width: float, height: float) -> str:
    """Drawings as an SVG file of their own, on a white background so that they are readable everywhere.

    The page's light colours are written out: programs other than browsers do not know the variables of a style sheet.
    """
    style = style_sheet()
    colours = dict(re.findall(r"(--\w+):([^;}]+)", style[style.index(":root{") : style.index("}")]))
    rules = re.sub(r"var\((--\w+)\)", lambda found: colours[found[1]], _drawings().replace("\n", ""))
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


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str = "",
    best: Collection[tuple[int, int]] = (),
    left: Collection[int] = (),
    wrap: bool = False,
    pinned: bool = False,
) -> str:
    """A table that scrolls sideways on its own; cells are markup; `best` cells (row, column) stand out.

    Columns lie right except those in `left`.

    The first column stays in sight. With `wrap` it takes as many lines as it needs; with `pinned` the second column
    stays in sight too.
    """

    def cell(name: str, text: str, row: int, column: int) -> str:
        looks = [
            look
            for look, wanted in (("best", (row, column) in best), ("word", column in left and column > 0))
            if wanted
        ]
        written = f' class="{" ".join(looks)}"' if looks else ""
        return f"<{name}{written}>{text}</{name.split()[0]}>"

    body = "".join(
        "<tr>" + "".join(cell("td", text, i, j) for j, text in enumerate(row)) + "</tr>" for i, row in enumerate(rows)
    )
    above = f"<caption>{caption}</caption>" if caption else ""
    heads = "".join(cell('th scope="col"', text, -1, j) for j, text in enumerate(head))
    names = " ".join(name for name, wanted in (("wrap", wrap), ("pinned", pinned)) if wanted)
    look = f' class="{names}"' if names else ""
    return f'<div class="scroll"><table{look}>{above}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def columns(*items: str, least: str = "16rem", most: str = "30rem") -> str:
    """Items side by side where there is room."""
    return f'<div class="grid" style="--least:{least};--most:{most}">{"".join(items)}</div>'


def fold_away(summary: str, *inside: str) -> str:
    """Content shown when asked for."""
    return f"<details><summary>{summary}</summary>{''.join(inside)}</details>"


def section(anchor: str, title: str, *inside: str) -> tuple[str, str, str]:
    """A part of the page: anchor, title, markup."""
    return anchor, title, "".join(inside)


def page(title: str, lead: str, sections: Sequence[tuple[str, str, str]], foot: str) -> str:
    """The whole document."""
    links = "".join(f'<a href="#{anchor}">{escape(name)}</a>' for anchor, name, _ in sections)
    parts = "".join(
        f'<section id="{anchor}"><h2>{escape(name)}</h2>{inside}</section>' for anchor, name, inside in sections
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f'<link rel="icon" href="data:,"><style>{style_sheet()}</style></head><body>'
        f'<header><h1>{escape(title)}</h1><div class="lead">{lead}</div><nav>{links}</nav></header>'
        f"<main>{parts}</main><footer>{foot}</footer></body></html>"
    )
