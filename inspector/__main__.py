"""Runs the commands of manage.py if the package is installed without that file, as in
`python -m inspector migrate`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import execute_from_command_line
from django.db import DatabaseError, InterfaceError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    with database_errors_explained():
        execute_from_command_line(sys.argv)


@contextmanager
def database_errors_explained() -> Iterator[None]:
    """Within this context, exit with a sentence about the error if the database is damaged or not
    available.

    All other errors, and all errors with `--traceback`, are raised unchanged.
    """
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        from chatmemory.database_errors import explain_error  # needs the settings

        if "--traceback" not in sys.argv and (explanation := explain_error(error)):
            sys.exit(f"CommandError: {explanation}")
        raise


if __name__ == "__main__":
    main()
