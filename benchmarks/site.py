"""manage.py of the site, with the addresses of the benchmarks."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
    from django.conf import settings
    from django.core.management import execute_from_command_line

    settings.ROOT_URLCONF = "benchmarks.urls"
    execute_from_command_line(sys.argv)
