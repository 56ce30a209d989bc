"""Template tags and filters that put problems into words."""

from __future__ import annotations

from django import template

from inspector.rooms.doctor import words

register = template.Library()
register.filter("problem_title", words.problem_title)
register.filter("provider_names", words.provider_names)
register.filter("severity_words", words.severity_words)
register.simple_tag(words.how_it_began)
register.simple_tag(words.title_and_who_refuses)
