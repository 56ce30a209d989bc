"""The table of capabilities has the right counts."""

from __future__ import annotations

from benchmarks.capabilities import Spread, Tree, kernel, spreads

ROOM = "inspector/rooms/clock"
TREE = Tree(
    {
        f"{ROOM}/__init__.py": "",
        f"{ROOM}/reads.py": "HOUR = 1\n",
        f"{ROOM}/writes.py": "from inspector.rooms.clock.reads import HOUR\n",
        f"{ROOM}/migrations/0001_clock.py": "1\n2\n3\n",
        "templates/rooms/clock/clock.html": "{{ hour }}\n",
        "tests/rooms/clock/test_clock.py": "from inspector.rooms.clock import reads\n\n",
        "inspector/rooms/__init__.py": "",
        "inspector/faces/__init__.py": "from inspector.rooms.clock.reads import HOUR\n",
        "inspector/direct.py": "import inspector.rooms.clock.reads\n",
        "inspector/by_a_face.py": "from inspector import faces\nprint(faces.HOUR)\n",
        "inspector/by_a_template.py": 'PAGE = "rooms/clock/clock.html"\n',
        "inspector/not_at_all.py": "from inspector import faces\nprint(faces.OTHER)\n",
        "templates/inspector/page.html": '{% include "rooms/clock/clock.html" %}\n',
        "chatmemory/models.py": "1\n2\n",
        "chatmemory/formats/markdown.py": "1\n",
        "chatmemory/recall/facts.py": "1\n",
        "chatmemory/messages/message.py": "1\n2\n3\n",
        "chatmemory/migrations/0001_schema.py": "1\n",
        "chatmemory/distribution.py": "1\n",
    }
)


def test_a_capability_has_lines_folders_and_foreign_files():
    clock = Spread(python=2, room=2, templates=1, tests=2, folders=3, foreign=5)
    assert spreads(TREE) == {"clock": clock}


def test_files_that_are_not_in_the_folder_of_a_room_are_not_counted_as_the_room():
    files = {"inspector/rooms/doctor/reads.py": "1\n2\n", "chatmemory/reports/doctor.py": "1\n"}
    found = spreads(Tree(files))["doctor"]
    assert (found.python, found.room) == (3, 2)


def test_the_kernel_is_counted_without_libraries():
    assert kernel(TREE) == {"chatmemory": 2, "chatmemory/messages": 3}
