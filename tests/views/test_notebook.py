"""show() in a real notebook, run and exported, and the export opened in Chromium."""

import textwrap

import pytest

nbclient = pytest.importorskip("nbclient")
nbconvert = pytest.importorskip("nbconvert")
nbformat = pytest.importorskip("nbformat")

CELLS = [
    """
    import torch, regard
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    with torch.no_grad(), regard.watch(model) as seen:
        model(torch.randn(1, 5, 16))
    seen.tokens = ["I", "love", "</iframe>", '"cats"', "&amp;"]
    """,
    "regard.show(seen, height=400, title='the first')",
    "regard.show(seen, view='matrix', title='the second')",
    "regard.head_view(torch.eye(2).expand(1, 1, 2, 2), ['a', 'b'])",
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A notebook that shows a recording twice and a matrix once, run and exported to HTML."""
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    text, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{text}", encoding="utf-8")
    return path


def test_the_exported_notebook_shows_every_page(opened, exported):
    page = opened(exported, bypass_csp=False)
    frames = page.page.query_selector_all("iframe")
    assert len(frames) == 3
    titles = []
    for element in frames:
        frame = element.content_frame()
        frame.wait_for_load_state("load")
        frame.wait_for_function("document.title !== 'regard'")
        titles.append(frame.title())
    assert "the first" in titles[0]
    assert "the second" in titles[1]
    assert frames[0].bounding_box()["height"] == 400
