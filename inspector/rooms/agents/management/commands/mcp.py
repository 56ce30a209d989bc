from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from django.core.management.base import CommandError, CommandParser

from chatmemory.access.scopes import Scope
from chatmemory.management.base import DatabaseCommand
from chatmemory.printing import OptionValue
from inspector.shell.agents import Agent

SITE = "http://127.0.0.1:8000"
TOKEN = "CHATMEMORY_TOKEN"  # noqa: S105  (the name of a variable)


class Command(DatabaseCommand):
    help = (
        "Serve the tools of chatmemory to a coding agent by the Model Context Protocol, on stdin "
        "and stdout. The tools only read. With --prefix, or with an API token in "
        "CHATMEMORY_TOKEN, the agent sees only the conversations whose ids begin with that "
        "prefix, or that the token allows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--prefix",
            default="",
            help="show the agent only conversations whose ids begin with this text",
        )
        parser.add_argument(
            "--site",
            default=SITE,
            metavar="URL",
            help=f"the URL of the inspector, for the links in answers; default: {SITE}",
        )

        parser.add_argument(
            "--conversation",
            nargs="?",
            const="",
            metavar="ID",
            help="offer only the tool search_history, and only for this conversation, to the "
            "model that has the conversation; without an ID: the conversation whose id is the "
            "prefix of the token",
        )

    def handle(self, *args: object, **options: OptionValue) -> None:
        try:
            from inspector.rooms.agents.server import mcp_server
        except ModuleNotFoundError as error:
            remedy = "pip install '.[mcp]' in a checkout"
            raise CommandError(
                f"the command mcp needs the package {error.name}, which is not installed: {remedy}"
            ) from error
        scope = Scope(options["prefix"], os.environ.get(TOKEN, ""))
        conversation = options["conversation"]
        beginning = scope.beginning()  # raises TokenRefused
        if conversation == "" and not beginning:
            raise CommandError(
                f"--conversation without an ID needs a token in {TOKEN} whose prefix is the id of "
                "a conversation: name the ID, or set such a token"
            )
        if conversation is not None:
            conversation = scope.visible(conversation or beginning)
        agent = Agent(options["site"].rstrip("/"), scope)
        with suppress(KeyboardInterrupt):
            asyncio.run(mcp_server(agent, conversation).run_stdio_async())
