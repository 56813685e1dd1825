"""The command explain: what it prints, writes and refuses."""

import json

import pytest
from click.testing import CliRunner

import regard
from regard.app.main import main

CAT = "The cat sat on the mat."


def run(*arguments, columns="100", **environment):
    return CliRunner(env={"COLUMNS": columns, **environment}).invoke(main, [str(part) for part in arguments])


def test_small_vectors_in_every_format():
    found = regard.explain("I love AI", mask="causal", heads=2)
    options = ("explain", "I love AI", "--mask", "causal", "--heads", 2)
    assert run(*options, "--format", "markdown").stdout == found.to_markdown()
    assert run(*options, "--format", "html").stdout == found.to_html()
    assert run(*options, "--format", "json").stdout == found.to_json()
    assert "(2 × 3 × 3)" in run(*options).stdout


@pytest.mark.parametrize(
    ("name", "begins"), [("a.md", "# I"), ("a.html", "<!doc"), ("a.json", "{"), ("a.txt", "I")]
)
def test_the_ending_says_the_format(tmp_path, name, begins):
    shown = run("explain", "I love AI", "--out", tmp_path / name)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == ""
    assert "saved" in shown.stderr
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)


def test_chinese_by_option_and_by_environment():
    for shown in (
        run("explain", "我 喜欢 AI", "--lang", "zh"),
        run("explain", "我 喜欢 AI", REGARD_LANG="zh"),
    ):
        assert "谁关注谁" in shown.output
        assert "which words attend" not in shown.output
    assert "which words attend" in run("explain", "a", "--lang", "en", REGARD_LANG="zh").output
    assert "which words attend" in run("explain", "a", LANG="zh_CN.UTF-8").output  # the system is not asked


def test_the_table_that_ships():
    shown = run("explain", "我 喜欢 学习 AI 技术", "--vectors", "example", columns="80")
    assert shown.exit_code == 0, shown.output
    assert "word_vectors.json" in shown.output
    assert "unknown: 她" in run("explain", "我 喜欢 她", "--vectors", "example").output


def test_a_model(model_folders):
    shown = run("explain", "the cat sat", "--model", model_folders["gpt2"], "--layer", 1, "--head", 2,
                "--token", 1, "--format", "json")  # fmt: skip
    assert shown.exit_code == 0, shown.output
    names = [step["name"] for step in json.loads(shown.stdout)["steps"]]
    assert names == ["q", "k", "v", "dots", "scores", "masked", "lse", "weights", "weighted", "output",
                     "joined", "projected", "residual"]  # fmt: skip


def test_the_embedded_translator_is_meant_by_layer_head_or_token():
    for option in (("--layer", 0), ("--head", 1), ("--token", "1"), ("--kind", "decoder")):
        shown = run("explain", CAT, *option)
        assert shown.exit_code == 0, shown.output
        assert "the built-in translator" in shown.output
    given = run("explain", CAT, "--pair", "猫在睡觉。", "--token", "睡")
    assert "‘睡’" in given.output


def test_errors_are_clean(tmp_path):
    (tmp_path / "file").write_text("")
    for arguments, says in (
        (["a", "--out", tmp_path / "file" / "a.html"], "must be writable. Got Not a directory"),
        (["a", "--out", tmp_path / "a.docx"], "must end in .md, .html"),
        (["a", "--model", tmp_path / "none"], "which is neither"),
        (["a", "--vectors", "example", "--heads", 2], "A table has its own vectors"),
        (["a", "--layer", 0, "--mask", "causal"], "A model has its own vectors"),
        ([CAT, "--token", "dog"], "text of one of the tokens"),
        (["@nowhere.txt"], "@ must be followed by"),
    ):
        shown = run("explain", *arguments)
        assert shown.exit_code == 1, shown.output
        assert shown.output.startswith("Error: ")
        assert says in shown.output


def test_a_file_that_cannot_be_written(monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.md").write_text("before")
    for moment in ("write_bytes", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(f"pathlib.Path.{moment}", refuse)
            shown = run("explain", "a", "--out", tmp_path / "a.md")
        assert shown.exit_code == 1
        assert "a.md must be writable. Got Permission denied." in shown.output
        assert (tmp_path / "a.md").read_text() == "before"
        assert [file.name for file in tmp_path.iterdir()] == ["a.md"]
