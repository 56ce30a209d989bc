from django.apps import AppConfig


class ChatMemoryConfig(AppConfig):
    name = "chatmemory"
    verbose_name = "Chat memory"
    default_auto_field = "django.db.models.BigAutoField"
