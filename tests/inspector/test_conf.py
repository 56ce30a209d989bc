"""Mistakes in the setting INSPECTOR are told at the start, with what is to be written instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from inspector.conf import configuration


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "INSPECTOR must be a dictionary such as"),
        ([], "INSPECTOR must be a dictionary such as"),
        ({"PAGES": 5, 1: 2}, "INSPECTOR has no setting 1, PAGES"),
        ({"DISK_FREE_MB": "100"}, r'"DISK_FREE_MB"\] must be a whole number from 0 to'),
        ({"DISK_FREE_MB": -1}, r'"DISK_FREE_MB"\] must be a whole number'),
        ({"OPEN_FORM_BYTES": 0}, r'"OPEN_FORM_BYTES"\] must be a whole number from 1 to'),
        ({"FORM_BYTES": 64.0}, r'"FORM_BYTES"\] must be a whole number'),
        ({"MESSAGES_FORM_BYTES": -1}, r'"MESSAGES_FORM_BYTES"\] must be a whole number'),
        ({"UPLOAD_BYTES": 2**31}, r'"UPLOAD_BYTES"\] must be a whole number from 1 to 1,073,741'),
        ({"LESSONS": 3}, r'"LESSONS"\] must be the path of a folder'),
        ({"TRACES": "1"}, r'"TRACES"\] must be True or False, but is: \'1\''),
        ({"WHOLE_SITE": None}, r'"WHOLE_SITE"\] must be True or False'),
        ({"MANAGE": ""}, r'"MANAGE"\] must be a command such as'),
        ({"METRICS_TOKEN": None}, r'"METRICS_TOKEN"\] must be text'),
    ],
)
def test_a_mistake_is_told_at_the_start(settings, given, why):
    settings.INSPECTOR = given
    with pytest.raises(ImproperlyConfigured, match=why):
        apps.get_app_config("inspector").ready()


def test_a_wrong_token_is_not_quoted(settings):
    settings.INSPECTOR = {"METRICS_TOKEN": b"hunter2"}
    with pytest.raises(ImproperlyConfigured) as told:
        configuration()
    assert "hunter2" not in str(told.value)


def test_a_folder_may_be_a_path(settings, tmp_path):
    settings.INSPECTOR = {"LESSONS": tmp_path}
    assert Path(tmp_path) == configuration().LESSONS
