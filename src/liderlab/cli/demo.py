"""`lider demo`: four methods side by side, in a minute or two, without any data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import Stopped
from .help_pages import START, examples
from .shared import AGAIN, leave_out, new_console

app = typer.Typer()


@app.command(
    rich_help_panel=START,
    epilog=examples("lider demo", "lider demo --seeds 1 --out quick-demo"),
)
def demo(
    out: Annotated[Path, typer.Option(help="Where to write.", metavar="FOLDER")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="How many runs of each.")] = 3,
) -> None:
    """Compare four methods on real digits, in a minute or two.

    They are finetune, er-ace, er-ace + LiDER, and joint. Reads nothing: the digits come with the
    installation. Writes a run's folder for every method and seed, demo.png and report.html into
    --out, over those of an earlier demo.
    """
    from ..config.demo_runs import demo_runs
    from ..report.comparison_figure import draw_comparison
    from ..report.page.html import write_report
    from ..report.run_records import read_all
    from ..report.terminal.progress import ProgressDisplay
    from ..report.terminal.tables import comparison
    from ..runs.accuracy_figure import leave_figure
    from ..runs.execute import Existing
    from ..runs.execute import run as execute

    runs, folders = list(demo_runs(seeds)), []
    # one that was interrupted goes on; one that is whole is made anew
    existing: Existing = "replace" if (out / "demo.png").exists() else "resume"
    results: dict[str, list[dict[str, Any]]] = {}
    with ProgressDisplay(new_console(stderr=True), len(runs)) as display:
        for label, config in runs:
            folder = out / f"{label.replace(' + ', '-').lower()}-seed{config.seed}"
            folders.append(folder.name)
            display.begin(f"{label}, seed {config.seed}")
            try:
                result = execute(config, folder, existing=existing, listener=display)
            except Stopped as stopped:
                raise stopped.saying(AGAIN) from None
            leave_figure(result, folder)
            results.setdefault(label, []).append(result)
            display.finish()
    title = f"split-digits, buffer {runs[0][1].memory.size}, class-incremental"
    draw_comparison(results, out / "demo.png", title)
    console = new_console()
    console.print(f"{title}: mean ± std", highlight=False)
    console.print(comparison(results))
    records, damaged = read_all([out / name for name in folders])
    damaged += write_report(records, out / "report.html", title="The demo: split-digits")
    leave_out(damaged)
    console.print(f"wrote {out}/: run folders, demo.png, report.html", soft_wrap=True)
    console.print(f"open {out / 'report.html'} in a browser", soft_wrap=True, highlight=False)
