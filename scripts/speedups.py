"""The picture of README, docs/speedups.svg: the speedups of its table on a logarithmic axis. scripts/tables.py draws it
from the same records."""

import math
import statistics
from html import escape

# Pixels. Labels stand above their lines, so that the picture reads at 400 pixels as well.
WIDTH, LEFT, RIGHT, TOP, ROW = 480, 12, 468, 66, 40
TICKS = (0.5, 1, 2, 4, 8, 16, 32)
STYLE = """text { font-family: system-ui, sans-serif; fill: #222222 }
.small { fill: #5A6068 } .grid { stroke: #DDE3EA } .one { stroke: #222222 }
.ours { stroke: #17693A; fill: #17693A } .even { stroke: #5A6068; fill: #5A6068 }
@media (prefers-color-scheme: dark) {
text { fill: #E6E6E6 } .small { fill: #AEB6BF } .paper { fill: #14171A } .grid { stroke: #343B43 }
.one { stroke: #E6E6E6 } .ours { stroke: #6FCF8E; fill: #6FCF8E } .even { stroke: #AEB6BF; fill: #AEB6BF }
}"""


def picture(rows, digits):
    """SVG. rows: a name and its speedups. An average within a tenth of 1 is grey. digits: how a number is written."""
    height = TOP + ROW * len(rows) + 12
    parts = [_head(height), _axis()]
    for n, (name, speedups) in enumerate(rows):
        parts.append(_row(TOP + ROW * n, name, speedups, digits))
    return "\n".join([*parts, "</svg>\n"])


def _x(speedup):
    low, high = math.log2(TICKS[0]), math.log2(TICKS[-1])
    share = (math.log2(speedup) - low) / (high - low)
    return round(LEFT + min(max(share, 0), 1) * (RIGHT - LEFT), 1)


def _head(height):
    title = "Speedup of dml-cuda on one NVIDIA H200"
    return f"""<svg role="img" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg">
<title>{title}</title>
<style>{STYLE}</style>
<rect class="paper" width="100%" height="100%" fill="#FFFFFF"/>
<text x="{LEFT}" y="22" font-size="16" font-weight="700">{title}</text>
<text class="small" x="{LEFT}" y="40" font-size="12">dot: average; line: slowest to fastest case</text>"""


def _axis():
    labels = []
    for tick in TICKS:
        anchor = "middle"
        if tick in (TICKS[0], TICKS[-1]):
            anchor = "start" if tick == TICKS[0] else "end"
        labels.append(
            f'<text class="small" x="{_x(tick)}" y="{TOP - 6}" font-size="12" text-anchor="{anchor}">{tick:g}×</text>'
        )
    return "\n".join(labels)


def _ticks(top):
    """The lines of the axis in one row, below its label."""
    lines = []
    for tick in TICKS:
        kind, width = ("one", 1.5) if tick == 1 else ("grid", 1)
        x = _x(tick)
        lines.append(
            f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top + 19}" y2="{top + 33}" stroke-width="{width}"/>'
        )
    return "\n".join(lines)


def _row(top, name, speedups, digits):
    average = statistics.geometric_mean(speedups)
    kind = "even" if abs(math.log(average)) < 0.1 else "ours"
    low, high, at = _x(min(speedups)), _x(max(speedups)), _x(average)
    label = f"{digits(average)}× over {name}"
    return f"""{_ticks(top)}
<text x="{LEFT}" y="{top + 14}" font-size="14">{escape(label)}</text>
<line class="{kind}" x1="{low}" x2="{high}" y1="{top + 26}" y2="{top + 26}" stroke-width="3"/>
<circle class="{kind}" cx="{at}" cy="{top + 26}" r="6"/>"""
