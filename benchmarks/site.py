"""manage.py of the site, with the URLs of the benchmarks."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
    os.environ["CHATMEMORY_FORM_RATE"] = "1000000/minute"  # the bare view needs no account
    from django.conf import settings
    from django.core.management import execute_from_command_line

    settings.ROOT_URLCONF = "benchmarks.urls"
    execute_from_command_line(sys.argv)
