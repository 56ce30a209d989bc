from inspector.shell import room


class Lessons(room.SiteRoom):
    name = "inspector.rooms.lessons"
    verbose_name = "Lessons"
    urls = "inspector.rooms.lessons.urls"
    menu = (room.MenuItem("Learn", "lessons", 30, is_public=True, icon="learn"),)
    styles = ("rooms/lessons/lessons.css",)
    scripts = ("rooms/lessons/lessons.js",)

    def ready(self) -> None:
        from inspector.rooms.lessons import catalogue  # noqa: F401  (checks the files of lessons)
