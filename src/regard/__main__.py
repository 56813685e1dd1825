"""``python -m regard`` is the ``regard`` command."""

from regard.app.main import main

if __name__ == "__main__":
    main(prog_name="regard")
