import click
import pytest
from click.testing import CliRunner

from regard.app.number_list import NUMBERS
from regard.app.text_argument import read_argument
from regard.errors import TextError


def test_a_text_is_itself():
    assert read_argument("The cat sat.") == "The cat sat."
    assert read_argument("@@home") == "@home"


def test_a_file(tmp_path):
    file = tmp_path / "text.txt"
    file.write_bytes("\ufeffThe cat\n坐".encode())
    assert read_argument(f"@{file}") == "The cat\n坐"


def test_standard_input():
    @click.command()
    def show():
        click.echo(read_argument("-"))

    assert CliRunner().invoke(show, input="坐 now").output == "坐 now\n"


def test_no_such_file(tmp_path):
    with pytest.raises(TextError, match="@ must be followed by the path of a readable file"):
        read_argument(f"@{tmp_path / 'none.txt'}")
    with pytest.raises(TextError, match="@ must be followed by the path of a readable file"):
        read_argument(f"@{tmp_path}")


def test_a_file_in_another_encoding(tmp_path):
    file = tmp_path / "text.txt"
    file.write_bytes("caf\xe9".encode("latin-1"))
    with pytest.raises(TextError, match="byte 0xe9 at 3"):
        read_argument(f"@{file}")


@pytest.mark.parametrize("wrong", ["", "a", "3-", "-3", "5-3", "1,,2", "1.5"])
def test_wrong_numbers(wrong):
    with pytest.raises(click.BadParameter, match="is neither a number nor a range"):
        NUMBERS.convert(wrong, None, None)


def test_numbers():
    assert NUMBERS.convert(" 7, 0 - 2,1", None, None) == [0, 1, 2, 7]
