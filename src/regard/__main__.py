"""``python -m regard`` is the ``regard`` command."""

from regard.app.command import main

if __name__ == "__main__":
    main(prog_name="regard")
