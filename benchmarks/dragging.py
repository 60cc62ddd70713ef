"""The explorer in a real browser: how long a dragged threshold takes from the pointer to the picture.

python benchmarks/dragging.py              # 100 000 x 50, eight clusters; needs chromium and chromedriver
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# Notes, per event of the pointer, the milliseconds until the picture is painted and the counts are shown.
WATCH = """
window.steps = [];
const note = document.getElementById('threshold-note');
window.addEventListener('pointermove', event => {
  const step = {};
  window.steps.push(step);
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => { step.painted = performance.now() - event.timeStamp; };
    channel.port2.postMessage(0);
  });
  const observer = new MutationObserver(() => {
    step.counted = performance.now() - event.timeStamp;
    observer.disconnect();
  });
  observer.observe(note, {childList: true, characterData: true, subtree: true});
}, true);
"""
HANDLE = """
const r = document.querySelector('#handle circle').getBoundingClientRect();
return [r.x + r.width / 2, r.y + r.height / 2];
"""


def wait_for(condition: Any, seconds: float = 60.0) -> float:
    """Wait until a condition holds; return the seconds."""
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > seconds:
            raise TimeoutError(f"the page did not answer in {seconds:.0f} s")
        time.sleep(0.01)
    return time.perf_counter() - began


def drag(browser: Any, n_steps: int) -> dict[str, list[float]]:
    """Drag the threshold there and back, and let it go; return milliseconds, and seconds of the move."""
    browser.execute_script(WATCH)
    x, y = browser.execute_script(HANDLE)

    def point(kind: str, at: float) -> None:
        event = {"type": kind, "x": at, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    point("mousePressed", x)
    for k in range(n_steps):
        point("mouseMoved", x + 60.0 * np.sin(k / 8))
    time.sleep(0.5)
    steps = browser.execute_script("return window.steps")
    point("mouseReleased", x + 10.0)
    moved = wait_for(lambda: "tree.move" in browser.find_element("id", "code").text)
    found = {name: [step[name] for step in steps if name in step] for name in ("painted", "counted")}
    return {**found, "moved": [1e3 * moved]}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args(argv)
    from ravine import MinimumDensity, explore

    chromium: Any = importlib.import_module("tests.chromium")
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.standard_normal((8, arguments.columns))
    noise = rng.standard_normal((arguments.rows, arguments.columns))
    X = centers[rng.integers(8, size=arguments.rows)] + noise
    explorer = explore(MinimumDensity(8).fit(X), X, open_browser=False)
    browser = chromium.start(1500, 1100)
    try:
        browser.get(explorer.address)
        wait_for(lambda: browser.find_element("id", "threshold-note").text)
        for name, ms in drag(browser, arguments.steps).items():
            print(f"{name}: {len(ms)} times, median {np.median(ms):.0f} ms, at most {max(ms):.0f} ms")
    finally:
        browser.quit()
        explorer.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
