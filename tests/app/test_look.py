import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch

import regard
from app.command_line import CAT, run
from regard.app.commands.look import _beginning
from regard.app.model_input import RecordedText
from regard.recording import Recording
from regard.translator import look

pytestmark = pytest.mark.usefixtures("elsewhere", "read_once")


def test_the_embedded_translator_is_looked_at(tmp_path):
    shown = run("look", CAT)
    assert shown.exit_code == 0, shown.output
    translation = regard.translate(CAT)
    for part in (translation, "cat", "cross-attention of layer", "the most informative heads", "look.html"):
        assert part in shown.output
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert CAT in page
    assert len(page) < 600_000


def test_a_model_in_a_folder(model_folders, tmp_path):
    shown = run("look", "the cat sat on the mat", "--model", model_folders["bert"], "--out", "bert.html")
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "bert.html").exists()
    assert "MB" in shown.output
    assert not (tmp_path / "look.html").exists()


def test_a_decoder_goes_on_and_is_saved_and_drawn(model_folders, tmp_path):
    shown = run(
        "look", "the cat", "--model", model_folders["gpt2"], "--generate", 5,
        "--figure", "head.svg", "--layer", 1, "--head", 2, "--save", "seen.safetensors", "--no-page",
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert list(tmp_path.glob("*.html")) == []
    seen = regard.load("seen.safetensors")
    assert seen[0].v is not None
    text = "".join(ET.parse(tmp_path / "head.svg").getroot().itertext())
    assert "cat" in text


def test_an_encoder_decoder_with_a_given_answer(model_folders):
    shown = run("look", "the cat", "--model", model_folders["bart"], "--pair", "on mat", "--no-page")
    assert shown.exit_code == 0, shown.output
    assert "on mat" in shown.output


def test_the_translation_to_look_at_may_be_given():
    shown = run("look", CAT, "--pair", "猫在睡觉。", "--no-page")
    assert "猫在睡觉。" in shown.output


@pytest.mark.parametrize(
    ("environment", "times"),
    [
        ({"DISPLAY": ":0"}, 1),
        ({}, 0),
        ({"DISPLAY": ":0", "CI": "true"}, 0),
        ({"WAYLAND_DISPLAY": "wayland-0"}, 1),
    ],
)
def test_the_page_is_opened_where_there_is_a_desktop(monkeypatch, environment, times):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("CI", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run("look", CAT, "--layers", 0, "--open-on-desktop").exit_code == 0
    assert len(opened) == times


def test_the_demonstration_opens_the_page_on_a_desktop_alone():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert 'regard look "The cat sat on the mat." --open-on-desktop' in makefile


def test_an_animation_is_written(tmp_path):
    from PIL import Image

    done = run("look", CAT, "--no-page", "--gif", str(tmp_path / "x.gif"))
    assert done.exit_code == 0
    assert "the animation" in " ".join(done.output.split())
    with Image.open(tmp_path / "x.gif") as picture:
        assert picture.n_frames > 3
    wrong = run("look", CAT, "--no-page", "--gif", str(tmp_path / "x.mp4"))
    assert wrong.exit_code != 0
    assert "must be saved as .gif" in wrong.output


def test_the_page_is_opened(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert run("look", CAT, "--open").exit_code == 0
    assert opened[0].startswith("file://")
    assert opened[0].endswith("/look.html")


def test_a_large_page_asks_first(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.views.page.write_page.LARGEST", 1000)
    shown = run("look", CAT)
    assert shown.exit_code == 1
    assert "write it anyway with --force" in shown.output
    assert not (tmp_path / "look.html").exists()
    assert run("look", CAT, "--yes").exit_code == 0
    assert (tmp_path / "look.html").exists()


def test_layers_alone():
    assert run("look", CAT, "--layers", "0-1", "--no-page").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["look", ""], "at least one word"),
        (["look", CAT, "--generate", 4], "writes its whole translation"),
        (["look", CAT, "--model", "./nowhere"], "which is neither"),
        (["look", CAT, "--layer", 9], "layer must be one of those on the page"),
        (["look", CAT, "--head", 99], "head must be one of those on the page"),
        (["look", CAT, "--layers", "7"], "layers= must name layers of the model"),
        (["look", "@none.txt"], "@ must be followed by"),
        (["look", CAT, "--out", "."], "must be writable. Got Is a directory"),
        (["heads", ""], "at least one word"),
        (["heads", CAT, "--sort", "nonsense"], "A column must be one of"),
        (["heads", "--recording", "none.safetensors"], "none.safetensors"),
    ],
)
def test_bad_input_is_refused(arguments, says):
    shown = run(*arguments)
    assert shown.exit_code == 1, shown.output
    assert says in shown.output
    assert "Traceback" not in shown.output


def test_heads_prints_a_row_for_every_head():
    shown = run("heads", CAT, "--csv")
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert len(rows) == 4 * 12 + 3 * 4 * 2
    assert float(rows[0]["entropy"]) >= 0
    assert json.loads(run("heads", CAT, "--json").stdout)[0]["layer"] == 0
    shown = run("heads", CAT, "--sort", "entropy", "--ascending", "--most", 3, "--csv")
    found = [float(row["entropy"]) for row in csv.DictReader(io.StringIO(shown.stdout))]
    assert found == sorted(found)
    assert len(found) == 3


def test_heads_in_the_terminal():
    shown = run("heads", CAT)
    assert shown.exit_code == 0, shown.output
    assert "entropy" in shown.output
    shown = run("heads", CAT, "--roles")
    assert "too few for roles to mean much" in " ".join(shown.output.split())
    assert "too few" in " ".join(run("look", CAT, "--no-page").output.split())
    assert "too few" in " ".join(run("heads", CAT, "--roles", "--json").stderr.split())
    assert run("heads", CAT, "--sort", "previous").exit_code == 0
    assert run("heads", CAT, "--sort", "前一个", "--csv").exit_code == 0
    assert run("heads", CAT, "--roles", "--csv").stdout.startswith("call,")


def test_the_first_heads_of_several_kinds_say_which_kind_they_are():
    lines = run("heads", CAT, "--top", 2).output.splitlines()
    assert lines[0].split()[:3] == ["kind", "layer", "head"]
    assert [line.split()[:3] for line in lines[1:3]] == [["encoder", "0", "0"], ["encoder", "0", "1"]]
    assert lines[3].startswith("… and ")


def test_heads_of_a_saved_recording():
    run("look", CAT, "--save", "seen.safetensors", "--no-page")
    assert (
        run("heads", "--recording", "seen.safetensors", "--csv").stdout == run("heads", CAT, "--csv").stdout
    )


@pytest.mark.parametrize(
    "arguments",
    [["heads"], ["heads", CAT, "--recording", "x"], ["heads", CAT, "--csv", "--json"],
     ["heads", "--recording", "x", "--layers", "1"]],
)  # fmt: skip
def test_options_that_contradict(arguments):
    assert run(*arguments).exit_code == 2


# ---- in Chinese ------------------------------------------------------------------------------


def english_in(text, *names):
    """Words of English that are no token, no name of a file, no unit and no command."""
    for name in (*names, "regard heads", "[START]", "[END]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", " MB"):
        text = text.replace(str(name), " ")
    return sorted(set(re.findall("[A-Za-z]{2,}", text)) - set(re.findall("[A-Za-z]+", CAT)))


@pytest.fixture
def statuses(monkeypatch):
    """What a command says while something takes time."""
    said = []
    from rich.console import Console

    status = Console.status

    def listening(self, text, **options):
        said.append(str(text))
        return status(self, text, **options)

    monkeypatch.setattr(Console, "status", listening)
    return said


def test_look_in_chinese(tmp_path, statuses):
    files = ("seen.safetensors", "head.svg", "look.html")
    options = ("--save", files[0], "--figure", files[1], "--kind", "encoder", "--lang", "zh")
    shown = run("look", CAT, *options)
    assert shown.exit_code == 0, shown.output
    assert english_in(shown.output, *files) == []
    for part in ("头的交叉注意力", "最能说明问题的头", "还有", "次调用", *files):
        assert part in shown.output
    assert "第 0 层" in "".join(ET.parse(tmp_path / "head.svg").getroot().itertext())
    assert statuses == ["正在翻译 …", "正在写入 …"]
    assert run("look", CAT, *options[:-2], env={"REGARD_LANG": "zh"}).output == shown.output


def test_look_at_some_layers_in_chinese():
    shown = run("look", CAT, "--layers", "0", "--no-page", "--lang", "zh")
    assert shown.output.startswith("内置翻译模型\n")
    assert english_in(shown.output) == []


def test_look_at_a_model_in_chinese(model_folders, statuses):
    folder = model_folders["bert"]
    shown = run("look", "the cat sat on the mat", "--model", folder, "--lang", "zh", env={"COLUMNS": "300"})
    assert shown.exit_code == 0, shown.output
    assert english_in(shown.output, folder, "look.html") == []
    assert statuses == [f"正在加载 {folder} …", "正在读入文本 …", "正在写入 …"]


def test_progress_in_english(model_folders, statuses):
    folder = model_folders["bert"]
    run("look", "the cat", "--model", folder)
    run("heads", CAT)
    assert statuses == [f"loading {folder} …", "reading …", "writing …", "translating …"]


def test_heads_in_chinese(statuses):
    for options in ([], ["--roles"], ["--roles", "--sort", "previous"], ["--sort", "entropy", "--most", 4]):
        shown = run("heads", CAT, *options, "--lang", "zh", env={"COLUMNS": "120"})
        assert shown.exit_code == 0, shown.output
        assert english_in(shown.output) == []
        assert "编码器" in shown.output or len(shown.output.splitlines()) == 7  # four heads, a legend
        assert run("heads", CAT, *options, env={"COLUMNS": "120", "REGARD_LANG": "zh"}).output == shown.output
    assert set(statuses) == {"正在翻译 …"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_legend_names_the_columns_as_their_headings_do(lang):
    shown = run("heads", CAT, "--most", 1, "--lang", lang, env={"COLUMNS": "150"}).output
    headings = re.split(r"\s{2,}", shown.splitlines()[0].strip())
    legend = shown.rpartition("\n…")[2].replace("\n", "")
    missing = [heading for heading in headings[3:] if heading not in legend]
    assert headings[-1] in {"top key", "最受关注"}
    assert missing == []


@pytest.mark.parametrize("options", [["--csv"], ["--json"], ["--roles", "--csv"], ["--roles", "--json"]])
def test_machines_read_the_same_in_every_language(options):
    assert run("heads", CAT, *options, "--lang", "zh").stdout == run("heads", CAT, *options).stdout


def test_a_large_page_asks_first_in_chinese(monkeypatch):
    monkeypatch.setattr("regard.views.page.write_page.LARGEST", 1000)
    shown = run("look", CAT, "--lang", "zh")
    assert shown.exit_code == 1
    assert english_in(shown.output, "--layers", "--force") == []
    assert re.search(r"实际为：10 次调用，约 [\d.]+ MB。", shown.output)


def test_brackets_in_names_are_no_marks(tmp_path):
    shown = run("look", CAT, "--figure", "a[b].svg", "--kind", "cross", "--no-page")
    assert "a[b].svg  the figure" in shown.output
    assert (tmp_path / "a[b].svg").exists()


def test_brackets_in_tokens_are_no_marks(monkeypatch):
    def read(*_, **__):
        model = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
        with torch.no_grad(), regard.watch(model) as seen:
            model(torch.randn(1, 3, 8))
        seen.tokens = ["[/INST]", ":cat:", "[red]"]
        return RecordedText("", "a [/b] model", seen)

    monkeypatch.setattr("regard.app.model_input.record", read)
    shown = run("look", CAT, "--no-page")
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("a [/b] model\n[/INST] :cat: [red]\n")


def test_a_long_text_does_not_flood_the_terminal():
    words = ["the", "cat", "sat", "on", "the", "mat"]
    seen = Recording("model", [])
    seen._tokens = [words * 50_000]
    shown = _beginning(seen, "", 80).plain
    assert shown.startswith("the cat sat on the mat the cat")
    assert shown.endswith("…")
    assert len(shown) < 3 * 80
    seen._tokens = [words]
    assert _beginning(seen, "", 80).plain == "the cat sat on the mat"


def test_the_heads_listed_differ():
    shown = run("look", CAT, "--no-page").output
    listed = [line for line in shown.splitlines() if re.match(r"(encoder|decoder|cross) ", line)]
    assert len(listed) >= 6
    assert sum("spreads over most tokens" in line for line in listed) <= 3
    assert "spreads" not in listed[0]
    assert "→" in listed[0]
    crossing = "\n".join(line for line in listed if line.startswith("cross"))
    # What is written, not what is read: the last row writes the end, and none is the beginning.
    assert re.search(f"[{regard.translate(CAT)}…] → ", crossing)
    assert "[START] →" not in crossing


# ---- compared with something else ----------------------------------------------------------------


def test_two_texts_are_compared(model_folders, tmp_path):
    shown = run(
        "look",
        "the cat sat on the mat",
        "--against",
        "the dog sat on the mat",
        "--model",
        model_folders["bert"],
    )
    assert shown.exit_code == 0, shown.output
    assert "the heads that changed most" in shown.output
    assert "cat / dog" in shown.output
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert '"side":"the cat sat on the mat"' in page
    assert '"side":"the dog sat on the mat"' in page
    assert '"difference"' in page


def test_long_texts_are_named_by_where_they_differ(model_folders, tmp_path):
    start = f"the cat {'m' * 60} sat on the"  # one unknown word
    shown = run("look", f"{start} cat", "--against", f"{start} dog", "--model", model_folders["bert"])
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert '"side":"… sat on the cat"' in page
    assert '"side":"… sat on the dog"' in page


def test_an_encoder_and_a_decoder_are_shown_side_by_side(model_folders, tmp_path):
    shown = run("look", "the cat sat", "--model", model_folders["bert"], "--with", model_folders["gpt2"])
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert '"side":"bert"' in page
    assert '"side":"gpt2"' in page


def test_texts_of_other_tokens_are_shown_side_by_side(model_folders, tmp_path):
    shown = run(
        "look",
        "the cat sat",
        "--against",
        "a dog lay on that mat",
        "--model",
        model_folders["gpt2"],
        "--lang",
        "zh",
    )
    assert shown.exit_code == 0, shown.output
    assert "只能并排显示" in shown.output
    assert '"other":' in (tmp_path / "look.html").read_text(encoding="utf-8")


def test_two_models_are_compared(model_folders, tmp_path):
    shown = run(
        "look",
        "the cat sat",
        "--model",
        model_folders["bert"],
        "--with",
        model_folders["bert"],
        "--out",
        "x.html",
    )
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.count('"side":') == 2


def test_two_layers_are_compared(model_folders, tmp_path):
    shown = run("look", "the cat sat", "--model", model_folders["bert"], "--layers", 0, "--against-layers", 1)
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert '"side":"layer 0"' in page
    assert '"side":"layer 1"' in page
    refused = run("look", "the cat sat", "--against-layers", 1)
    assert refused.exit_code == 2
    assert "--against-layers needs --layers" in refused.output


def test_an_edited_run_is_compared_with_the_plain_one(model_folders, tmp_path):
    edit = "remove(layers=0, heads=1) + only(span(1, 3), layers=1)"
    shown = run("look", "the cat sat on the mat", "--model", model_folders["bert"], "--edit", edit)
    assert shown.exit_code == 0, shown.output
    assert "the heads that changed most" in shown.output
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert '"side":"unchanged"' in page
    assert '"side":"remove(layers=[0], heads=[1]) + only(span(1, 3), layers=[1])"' in page
    assert '"difference"' in page


def test_the_edited_run_is_the_edited_run(model_folders, tmp_path):
    edit = "only(span(1, 2), layers=1)"
    shown = run("look", "the cat sat", "--model", model_folders["bert"], "--edit", edit, "--no-page")
    assert shown.exit_code == 0, shown.output
    listed = shown.output[shown.output.index("the heads that changed most") :].splitlines()[2:]
    layers = {line.split()[0] for line in listed if line and line.split()[0].isdigit()}
    assert layers == {"1"}


def test_what_is_written_under_an_edit_is_printed(model_folders):
    edit = "scale(-1e6)"  # small random heads hardly matter
    asked = ["look", "the cat sat", "--model", model_folders["gpt2"], "--generate", 6, "--no-page"]
    shown = run(*asked, "--edit", edit, "--lang", "zh")
    assert shown.exit_code == 0, shown.output
    assert "\nscale(-1000000.0)\nthe cat sat" in shown.output


def test_an_edit_of_the_translator(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.translator.look", look)  # an edited model has to read again
    plain = run("look", "the cat sat on the mat", "--no-page", "--edit", "scale(1.0, layers=0, kind='cross')")
    assert plain.exit_code == 0, plain.output
    assert "No head that read the same tokens attends differently." in plain.output
    # Nothing follows the last cross-attention, so only its heads change; the table still says their kind.
    edit = "only(span(0, 1), kind='cross', layers=2)"
    kept = run("look", "the cat sat", "--pair", "猫坐着。", "--edit", edit)
    assert kept.exit_code == 0, kept.output
    listed = kept.output[kept.output.index("the heads that changed most") :].splitlines()[1:]
    assert listed[0].split()[:3] == ["kind", "layer", "head"]
    assert {line.split()[0] for line in listed[1:4]} == {"cross"}
    assert '"difference"' in (tmp_path / "look.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ("remve(layers=1)", "No edit is called 'remve'. Did you mean remove?"),
        ("block(spam(1, 2))", "Did you mean span?"),
        ("remove(layers=99)", "must name layers of the model"),
    ],
)
def test_an_edit_that_cannot_be_made_is_explained(model_folders, edit, says):
    shown = run("look", "the cat sat", "--model", model_folders["bert"], "--no-page", "--edit", edit)
    assert shown.exit_code == 1
    assert says in " ".join(shown.output.split())


def test_marks_of_word_pieces_are_not_printed(model_folders):
    shown = run("look", "the cat sat", "--model", model_folders["gpt2"], "--no-page")
    assert shown.exit_code == 0, shown.output
    assert "Ġ" not in shown.output


@pytest.mark.parametrize("command", ["look", "why"])
def test_a_page_with_the_ending_of_another_program_is_refused(command, tmp_path):
    shown = run(command, CAT, "--out", "page.docx")
    assert shown.exit_code == 1
    assert "The file of a page must end in .html, .htm. Got page.docx. Name it page.html." in shown.output
    assert not list(tmp_path.iterdir())
