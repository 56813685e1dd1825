"""Commands run in this process, as a test calls them."""

from click.testing import CliRunner

from regard.app.main import main

CAT = "The cat sat on the mat."


def run(*arguments, **options):
    """What a command printed, and the status it ended with."""
    return CliRunner().invoke(main, [str(part) for part in arguments], **options)
