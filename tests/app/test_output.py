"""Every command with other encodings, full disks, broken and hostile input: one clean line each."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard import printing
from regard.app.main import main
from regard.lessons import timing

ESCAPE = "\x1b[31m\x9b2J\u202e"
BROKEN = "a \udcff b"
"""What Python makes of a byte that is not UTF-8."""


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(monkeypatch, tmp_path, read_once):
    """Run a command line in this process, on its own streams."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments, encoding="utf-8", stdin=b"", out=None):
        raw, errors = io.BytesIO(), io.BytesIO()
        given = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", given)
        monkeypatch.setattr(sys, "stdout", out or io.TextIOWrapper(raw, encoding=encoding))
        monkeypatch.setattr(
            sys, "stderr", io.TextIOWrapper(errors, encoding=encoding, errors="backslashreplace")
        )
        try:
            main(list(arguments), prog_name="regard")
            code = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.stderr.flush()
        if out is None:
            sys.stdout.flush()
        read = "utf-8" if encoding == "ascii" else encoding
        return Result(code, raw.getvalue().decode(read), errors.getvalue().decode(read))

    return run


def assert_one_clean_error(result, says=""):
    assert result.code not in (0, None)
    said = result.err.strip().splitlines()
    assert len([line for line in said if line.startswith(("Error: ", "错误："))]) == 1, result.err
    assert "Traceback" not in result.err
    assert says in result.err


# ---- encodings -------------------------------------------------------------------------------

PRINTING = {
    "help": ["--help"],
    "look": ["look", "The cat.", "--no-page"],
    "heads": ["heads", "The cat.", "--roles"],
    "heads table": ["heads", "The cat."],
    "heads csv": ["heads", "The cat.", "--csv"],
    "heads json": ["heads", "The cat.", "--json"],
    "explain": ["explain", "I love AI"],
    "explain markdown": ["explain", "I love AI", "--format", "markdown"],
    "mask": ["mask", "causal & window(2, 0)"],
    "cost": ["cost", "--length", "64"],
    "demo": ["demo"],
    "demo words": ["demo", "words"],
    "translate": ["translate", "The cat."],
    "translate align": ["translate", "The cat.", "--align"],
    "play": ["play", "query", "--no-open"],
}


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "gbk"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("command", PRINTING)
def test_every_command_prints_in_every_encoding(run, command, lang, encoding):
    name, *rest = PRINTING[command]
    shown = run("--lang", lang, name, *rest, encoding=encoding)
    assert shown.code == 0, shown.err
    assert shown.out.strip()
    # Click writes its help in UTF-8 where a stream says that it is ASCII.
    assert encoding != "ascii" or command == "help" or shown.out.isascii()


def test_every_command_is_in_some_table():
    tried = {arguments[0] for table in (PRINTING, REFUSED) for arguments in table.values()}
    assert set(main.commands) - tried == {"doctor"}  # below, without its seconds


def test_bench_and_doctor_print_in_another_encoding_too(run, monkeypatch):
    from regard import diagnosis
    from regard.diagnosis import Check, Diagnosis

    found = Diagnosis((Check("speed", "note", "速度", "4.5×", "→ …"),))
    monkeypatch.setattr(diagnosis, "doctor", lambda lang: found)
    shown = run("doctor", encoding="cp1252")
    assert shown.code == 0
    assert "\\u901f\\u5ea6" in shown.out
    monkeypatch.setattr(timing, "_in_own_process", timing.measure)
    shown = run(
        "bench", "--length", "16", "--rounds", "1", "--variant", "linear", "--threads", "1", encoding="cp1252"
    )
    assert shown.code == 0
    assert "linear" in shown.out


def test_bars_and_arrows_fall_back_to_ascii_and_keep_their_columns(run):
    plain = run("mask", "causal", "-n", "3", encoding="ascii").out.splitlines()
    drawn = run("mask", "causal", "-n", "3").out.splitlines()
    assert [line.rstrip() for line in plain[1:4]] == ["0 ##. .", "1 ####.", "2 ######"]
    assert [len(line) for line in plain[:5]] == [len(line) for line in drawn[:5]]


def test_chinese_is_written_where_the_encoding_has_it(run):
    assert "错误" in run("explain", "", "--lang", "zh", encoding="gbk").err
    assert "猫" in run("translate", "The cat.", encoding="gbk").out
    assert "\\u732b" in run("translate", "The cat.", encoding="cp1252").out


def test_a_real_process_with_another_encoding():
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    shown = subprocess.run(
        [sys.executable, "-m", "regard", "--lang", "zh", "--help"], capture_output=True, env=environment
    )
    assert shown.returncode == 0, shown.stderr
    assert b"\\u" in shown.stdout


# ---- input that is refused -------------------------------------------------------------------

REFUSED = {
    "look bytes": ["look", BROKEN, "--no-page"],
    "ablate bytes": ["ablate", BROKEN],
    "why bytes": ["why", BROKEN],
    "heads bytes": ["heads", BROKEN],
    "heads pair bytes": ["heads", "The cat.", "--pair", BROKEN],
    "heads file bytes": ["heads", "--recording", BROKEN],
    "heads sort bytes": ["heads", "The cat.", "--sort", BROKEN],
    "explain bytes": ["explain", BROKEN],
    "explain file bytes": ["explain", f"@{BROKEN}"],
    "explain token bytes": ["explain", "The cat.", "--token", BROKEN],
    "explain vectors bytes": ["explain", "The cat.", "--vectors", BROKEN],
    "explain model bytes": ["explain", "The cat.", "--model", BROKEN],
    "explain home": ["explain", "@~nobody-of-that-name/x"],
    "mask bytes": ["mask", BROKEN],
    "cost bytes": ["cost", "--mask", BROKEN],
    "cost dtype bytes": ["cost", "--dtype", BROKEN],
    "demo bytes": ["demo", BROKEN],
    "translate bytes": ["translate", BROKEN],
    "translate model bytes": ["translate", "x", "--model", BROKEN],
    "train bytes": ["train", BROKEN, "--out", "o"],
    "survey bytes": ["survey", BROKEN, "--model", "m", "--out", "o"],
    "serve bytes": ["serve", "--recording", BROKEN],
    "bench bytes": ["bench", "--variant", BROKEN],
    "command bytes": [BROKEN],
    "option bytes": ["mask", "causal", f"--{BROKEN}"],
    "number bytes": ["cost", "--length", BROKEN],
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", REFUSED)
def test_bytes_that_are_not_unicode_are_refused_in_one_line(run, case, lang):
    assert_one_clean_error(run("--lang", lang, *REFUSED[case]))


@pytest.mark.parametrize("case", REFUSED)
def test_escapes_in_arguments_are_never_printed_raw(run, case):
    arguments = [one.replace("\udcff", ESCAPE) for one in REFUSED[case]]
    shown = run(*arguments)
    for raw in ESCAPE[0], "\x9b", "\u202e":
        assert raw not in shown.out + shown.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["look", f"The {ESCAPE} cat.", "--no-page"],
        ["heads", f"The {ESCAPE} cat.", "--roles"],
        ["explain", f"The {ESCAPE} cat"],
        ["explain", f"The {ESCAPE} cat", "--token", "0"],
        ["translate", f"The {ESCAPE} cat.", "--align"],
    ],
    ids=" ".join,
)
def test_escapes_in_texts_are_shown_and_not_obeyed(run, arguments):
    shown = run(*arguments)
    assert shown.code == 0, shown.err
    for raw in ESCAPE[0], "\x9b", "\u202e":
        assert raw not in shown.out + shown.err


def test_names_of_files_are_shown_and_not_obeyed(run):
    for arguments in (
        ["mask", "causal", "--figure", "\x1b[31m[bold]x.png"],
        ["explain", "a b", "--out", "\x1b[31m[bold]x.md"],
        ["look", "The cat.", "--no-page", "--save", "\x1b[31m[bold]x.safetensors"],
    ):
        shown = run(*arguments)
        assert shown.code == 0, shown.err
        assert "\x1b" not in shown.out + shown.err
        assert "\\x1b[31m[bold]x" in "".join((shown.out + shown.err).split())


def test_marks_of_rich_in_tokens_are_text():
    from regard.views.explanation.explanation_payload import Grid
    from regard.views.explanation.explanation_terminal import _grid
    from regard.views.terminal_weights import SafeConsole

    table = _grid(Grid(("[/INST]", "[red]"), ("[/x]", "[b]"), ((0.1, 0.2), (0.3, 0.4))), 80)
    console = SafeConsole(file=io.StringIO(), width=80)
    console.print(table)
    for mark in ("[/INST]", "[red]", "[/x]", "[b]"):
        assert mark in console.file.getvalue()


def test_data_in_a_file_stays_as_it_is_and_on_a_terminal_is_safe(run, monkeypatch):
    from regard.app.output_errors import show

    for terminal, written in ((False, "a\x1bb"), (True, "a\\x1bb")):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr(sys, "stdout", stream)
        show("a\x1bb")
        assert stream.getvalue() == written


def test_safe_keeps_everything_that_does_not_steer():
    for text in ("猫坐在垫子上。\n\tcafé", "👩‍🚀 ❤️ 🇨🇳", "שלום العربية", "n×n − ∞ █"):
        assert printing.safe(text) == text
    for code in [*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x2028, 0x202E, 0x2066, 0xD800, 0xDFFF]:
        assert printing.safe(f"a{chr(code)}b").isprintable()


# ---- standard input --------------------------------------------------------------------------

READING = (["look", "-", "--no-page"], ["heads", "-"], ["explain", "-"], ["translate", "-"])


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_closed_standard_input_is_refused(run, arguments):
    assert_one_clean_error(run(*arguments, stdin=None), "closed standard input")


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_binary_standard_input_is_refused(run, arguments):
    assert_one_clean_error(run(*arguments, stdin=b"\x89PNG\r\n\xff"), "byte 0x89 at 0 in standard input")


def test_standard_input_is_a_text_in_utf_8_with_any_line_ends(run):
    assert run("translate", "-", stdin=b"\xef\xbb\xbfThe cat.\r\nThe cat.\r\n").out == "猫。\n猫。\n"


def test_a_folder_as_standard_input_is_refused(run, monkeypatch, tmp_path):
    class Folder(io.BytesIO):
        def read(self, *_):
            raise IsADirectoryError(21, "Is a directory")

    monkeypatch.setattr(io, "BytesIO", Folder)
    assert_one_clean_error(run("translate", "-"), "Is a directory")


# ---- where the output goes -------------------------------------------------------------------

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="a system without /dev/full")
@pytest.mark.parametrize("command", PRINTING)
def test_a_full_disk_is_one_line(run, command):
    with FULL.open("w", encoding="utf-8") as full:
        shown = run(*PRINTING[command], out=full)
        assert_one_clean_error(shown, "No space left on device")


@pytest.mark.skipif(not FULL.exists(), reason="a system without /dev/full")
def test_a_real_process_on_a_full_disk_ends_with_status_1():
    with FULL.open("w", encoding="utf-8") as full:
        shown = subprocess.run(
            [sys.executable, "-m", "regard", "--help"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert shown.returncode == 1
    assert shown.stderr.count("\n") == 1
    assert shown.stderr.startswith("Error: The output of a command must be writable. Got No space left")


@pytest.mark.skipif(os.name != "posix", reason="a pipe of POSIX")
@pytest.mark.parametrize("command", PRINTING)
def test_a_reader_that_has_gone_is_met_with_silence(run, command):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        shown = run(*PRINTING[command], out=pipe)
    assert shown.code == 1
    assert shown.err == ""


def test_no_output_at_all_is_no_error(run, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert printing.tolerate_encodings() is None
    shown = subprocess.run(
        f'"{sys.executable}" -m regard --version >&-', shell=True, capture_output=True, text=True
    )
    assert (shown.returncode, shown.stderr) == (0, "")


# ---- devices, recipes, logs ------------------------------------------------------------------


@pytest.mark.parametrize("device", ["foo", "cuda:99", "meta", "", "cpu:cpu", "\x1b[31m"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_device_that_is_not_there_is_refused_before_anything_is_read(run, device, lang):
    Path("corpus.txt").write_text("One day.\n", encoding="utf-8")
    shown = run("--lang", lang, "survey", "corpus.txt", "--model", "none", "--out", "o", "--device", device)
    assert_one_clean_error(shown, "--device")
    assert "\x1b" not in shown.err


RECIPES = {
    "empty": b"",
    "not UTF-8": b"\xff\xfe{}",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "unknown field": b'{"wide": 1}',
    "a text": b'{"width": "x"}',
    "infinite": b'{"width": 1e400}',
    "not a number": b'{"dropout": NaN}',
    "not whole": b'{"heads": 2.5}',
    "null": b'{"norm": null}',
    "huge": b'{"width": 99999999999999, "held_out": 1}',
    "huge layers": b'{"encoder_layers": 1000000000, "held_out": 1}',
    "a long number": b'{"seed": 1' + b"0" * 5000 + b"}",
    "a large seed": b'{"seed": 1' + b"0" * 30 + b', "held_out": 1}',
    "heads do not divide": b'{"heads": 7, "held_out": 1}',
    "an escape": b'{"\\u001b[31m": 1}',
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_bad_recipe_is_refused_in_one_line(run, recipe):
    rows = "".join(f"Cat number {n}.\t猫{n}。\tx\n" for n in range(8))
    Path("pairs.txt").write_text(rows, encoding="utf-8")
    Path("recipe.json").write_bytes(RECIPES[recipe])
    shown = run("train", "pairs.txt", "--out", "o", "--recipe", "recipe.json", "--steps", "1")
    assert_one_clean_error(shown)
    assert "\x1b" not in shown.err


def test_a_recipe_that_is_a_folder_is_refused(run):
    Path("recipe.json").mkdir()
    assert_one_clean_error(
        run("train", "x", "--out", "o", "--recipe", "recipe.json"), "A recipe must be a JSON file"
    )


LINES = {
    "not JSON": b'{"step": 1, oops}\n',
    "not an object": b"[1]\n",
    "no step": b'{"loss": 1.0}\n',
    "a text": b'{"step": "one"}\n',
    "not a number": b'{"step": 1, "loss": []}\n',
    "not UTF-8": b'{"step": 1, "loss": "\xff"}\n',
    "zeros": b"\0\0\0\0\n",
    "deep": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("line", LINES)
def test_a_damaged_log_is_refused_and_names_its_line(tmp_path, line):
    from regard.errors import ModelFileError
    from regard.translator import training_log

    (tmp_path / training_log.LOG).write_bytes(
        b'{"step": 1, "loss": 2.0}\n\n' + LINES[line] + b'{"step": 2, "loss": 1.0}\n'
    )
    with pytest.raises(ModelFileError, match=r"line 3 of|UnicodeDecodeError at") as error:
        training_log.read(tmp_path)
    assert "\n" not in str(error.value)


def test_a_log_that_a_kill_cut_is_read_to_the_cut(tmp_path):
    from regard.translator import training_log

    (tmp_path / training_log.LOG).write_bytes(b'{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    assert training_log.read(tmp_path) == [{"step": 1, "loss": 2.0}]
    training_log.append(tmp_path, {"step": 3})
