"""OpenAI chat completions: `{"role": …, "content": …}` messages.

Source of the shapes: OpenAI's API reference, chat completions, request messages.
"""

from chatmemory.formats.format import Format
from chatmemory.formats.openai_chat.reading import find, parse
from chatmemory.formats.openai_chat.writing import render, render_each

FORMAT = Format("openai_chat", find, parse, render, render_each)
