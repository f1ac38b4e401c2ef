"""Does the report need a chart library? Size, and time to draw 12 charts of 8 curves of 240 points.

    mkdir npm && cd npm
    npm pack uplot @observablehq/plot d3 echarts vega vega-lite plotly.js-basic-dist-min
    for f in *.tgz; do mkdir ${f%.tgz} && tar xzf $f -C ${f%.tgz} --strip 1; done && cd ..
    python -m benchmarks.chart_libraries npm

Every page is opened seven times in turn; the table has the fastest opening of each.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
from pathlib import Path

from tests.report.conftest import Browser

from liderlab.report.page.html import SCRIPTS

ASSETS = Path(__file__).parent.parent / "src/liderlab/report/page/assets"
OWN = """box.append(lineChart(
    Y.map((y, k) => ({name: 'c' + k, x: X, y, colour: 'red', dots: false})),
    {title: 'x', xLabel: 'x'},
))"""
LIBRARIES = {
    "uPlot": (
        ["uplot*/dist/uPlot.iife.min.js"],
        "new uPlot({width: 560, height: 300, scales: {x: {time: false}}, "
        "series: [{}, ...Y.map(() => ({stroke: 'red'}))]}, [X, ...Y], box)",
    ),
    "Observable Plot": (
        ["d3-[0-9]*/dist/d3.min.js", "observable*/dist/plot.umd.min.js"],
        "box.append(Plot.plot({width: 560, height: 300, marks: Y.map((y) => "
        "Plot.line(X.map((x, i) => ({x, y: y[i]})), {x: 'x', y: 'y', stroke: 'red'}))}))",
    ),
    "ECharts": (
        ["echarts*/dist/echarts.min.js"],
        "box.style.height = '300px'; echarts.init(box, null, {renderer: 'svg'}).setOption("
        "{animation: false, xAxis: {}, yAxis: {}, "
        "series: Y.map((y) => ({type: 'line', data: X.map((x, i) => [x, y[i]])}))})",
    ),
    "Vega-Lite": (
        ["vega-[0-9]*/build/vega.min.js", "vega-lite*/build/vega-lite.min.js"],
        "new vega.View(vega.parse(vegaLite.compile({mark: 'line', width: 560, height: 300, "
        "data: {values: Y.flatMap((y, k) => X.map((x, i) => ({x, y: y[i], k})))}, encoding: {"
        "x: {field: 'x', type: 'quantitative'}, y: {field: 'y', type: 'quantitative'}, "
        "color: {field: 'k', type: 'nominal'}}}).spec), {renderer: 'svg', container: box}).run()",
    ),
    "Plotly (basic)": (
        ["plotly*/plotly-basic.min.js"],
        "Plotly.newPlot(box, Y.map((y) => ({x: X, y})), {width: 560, height: 300})",
    ),
}
PAGE = """<!doctype html><meta charset="utf-8"><style>%s</style><body>
<div id="tip" hidden></div><div id="live"></div>
<script type="application/json" id="overview">{"groups": [], "metrics": {}, "terms": {}}</script>
<script>(() => { const began = performance.now(); %s
const X = [...Array(240).keys()];
const Y = [...Array(8).keys()].map((k) => X.map((x) => Math.sin(x / 20 + k)));
for (let n = 0; n < 12; n++) {
  const box = document.createElement("div");
  box.style.width = "560px";
  document.body.append(box);
  %s;
}
requestAnimationFrame(() => setTimeout(() => {
  window.took = performance.now() - began; document.documentElement.dataset.ready = "true"; }));
})()</script>"""


def main(packages: Path) -> None:
    own = "\n".join((ASSETS / f"{name}.js").read_text() for name in SCRIPTS[:4])
    scripts = {"own": (own, OWN)}
    for name, (patterns, draw) in LIBRARIES.items():
        scripts[name] = "\n".join(next(packages.glob(p)).read_text() for p in patterns), draw
    times: dict[str, list[float]] = {name: [] for name in scripts}
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(shutil.which("chromium") or "google-chrome", Path(folder) / "home")
        for _ in range(7):
            for name, (script, draw) in scripts.items():
                page = Path(folder) / "page.html"
                page.write_text(PAGE % ((ASSETS / "report.css").read_text(), script, draw))
                browser.open(page)
                times[name].append(browser.run("window.took"))
        browser.close()
    for name, (script, _) in scripts.items():
        data = script.encode()
        size = f"{len(data) / 1e3:.0f} kB, {len(gzip.compress(data)) / 1e3:.0f} kB gzipped"
        print(f"{name:16} {size:28} {min(times[name]):6.0f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
