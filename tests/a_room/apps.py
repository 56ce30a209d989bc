"""A room for tests: it uses every hook, and fails in the hooks that `failing` names."""

from __future__ import annotations

from contextlib import contextmanager

from django.db.models import Q

from chatmemory.explain.captions import Caption
from chatmemory.flag import Flag
from chatmemory.recall.incidents import Forgotten, Incident
from chatmemory.recall.kinds import IncidentKind
from chatmemory.room import ListColumn
from chatmemory.windows.eviction import Reason
from inspector.shell import room


def how_many(agent, conversation: str):
    """Count the messages."""
    from chatmemory.reading import conversations
    from inspector.shell.agents import Answer

    count = conversations.memory(agent.visible(conversation)).said_count
    return Answer([f"{count} messages"], agent.page_of(conversation), count=count)


async def answer_teapot(scope, receive, send):
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b""})


class ARoom(room.SiteRoom):
    name = "tests.a_room"
    verbose_name = "The room of tests"
    menu = (room.MenuItem("Tests", "overview", 5),)
    parameters = {"counted": str, "numbered": int}
    services = {"answer": "tests.a_room.answers"}
    also_on = ("conversation",)
    styles = ("a_room/room.css",)
    flags = (Flag("short", "Only just begun", Q(last_step__lt=3), icon="again", place=90),)
    columns = (ListColumn("steps", "Steps", sort_by="last_step"), ListColumn("plain", "Plain"))
    failing: set[str] = set()
    erased: list[room.kernel.Erased] = []
    observed: list[tuple[str, str, int]] = []

    def view(self, view):
        if view.query.room_parameters.get("counted") != "instead":
            return None
        caption = Caption("Shown instead")
        panel = room.Fragment("a_room/_said.html", {"said": "A panel"})
        return room.View(view, caption, panel, tried={"counted": "instead"})

    def selects(self, asked):
        counted = asked.get("counted", "")
        return int(counted[1:]) if counted.startswith("#") else None

    def marks(self, view):
        self._fail("marks")
        if view.query.room_parameters.get("counted") != "marked":
            return None
        from chatmemory.reading.history import message

        rows = view.read.setdefault("a_room", [message(view.memory.id, 2)])
        kept = {"counted": "marked"}
        return room.Highlights("message", rows, ((2, 3),), "Marked at steps 2 to 3", kept)

    def parts(self, view):
        self._fail("parts")
        counted = view.query.room_parameters.get("counted", "nothing")
        for place in room.Place:
            if place is not room.Place.ANSWER or counted == "answered":
                said = {"said": f"Part {place} at {view.step.n}"}
                yield room.Part("a_room/_said.html", said, place, order=25)
        said = {"said": f"Counted: {counted}, number {view.query.number('numbered')}"}
        yield room.Part("a_room/_said.html", said, awaits=counted == "soon")

    def badges(self, rows):
        self._fail("badges")
        badge = room.Badge("a_room/_said.html", {"said": "A badge"})
        return {row.id: [badge] for row in rows if row.id == "m"}

    def cells(self, rows):
        self._fail("cells")
        from chatmemory.models import Memory

        found = Memory.objects.in_bulk([row.id for row in rows])
        said = {id: {"said": f"{memory.last_step} steps"} for id, memory in found.items()}
        return {"steps": {id: room.Fragment("a_room/_said.html", said[id]) for id in said}}

    def questions(self):
        self._fail("questions")
        yield room.Fragment("a_room/_said.html", {"said": "A question"})

    def in_use(self, memory_id):
        return {"openai": [f"the model of {memory_id or 'all'}"]}

    def news(self, size):
        self._fail("news")
        yield room.FeedEntry("a_room/_said.html", {"said": f"The first of {size}"}, is_first=True)
        yield room.FeedEntry("a_room/_said.html", {"said": "Long ago"}, moment=1)

    def incidents(self, memory_id):
        said = Forgotten("message 1", "message 1", 2, 2, 5, Reason.CAPACITY)
        yield Incident(IncidentKind.USER_REPEATED, 4, 4, (said,))

    def next_need(self, view):
        return room.NextNeed(
            None, None, view.query.number("numbered") or view.selection.left_by.step
        )

    def step_fields(self):
        from rest_framework.serializers import CharField

        class StepName(CharField):
            def get_attribute(self, instance):
                return f"step {instance['n']} of {instance['memory_id']}"

        return {"told": StepName()}

    def erasing(self, erased):
        self._fail("erasing")
        self.erased.append(erased)

    def verifying(self, memory):
        from tests.a_room.checking import Suspicious

        return Suspicious(memory) if "verifying" in self.failing else None

    @contextmanager
    def observing(self, method, headers):
        yield lambda *answer: self.observed.append(answer[:3])

    def application(self, scope):
        return answer_teapot if scope.get("path") == "/tea/" else None

    def tools(self):
        return (how_many,)

    def _fail(self, hook: str) -> None:
        if hook in self.failing:
            raise LookupError("on purpose")
