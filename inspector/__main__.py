"""The commands of manage.py where the package is installed: `python -m inspector migrate`."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
