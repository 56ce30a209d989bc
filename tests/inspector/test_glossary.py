"""The glossary: one meaning a word, in the product and in the docs."""

from __future__ import annotations

from pathlib import Path

from django.urls import reverse

from inspector.shell.glossary import glossary

DOCS = Path(__file__).parents[2] / "docs/glossary.md"


def test_a_term_has_one_meaning_and_stands_in_its_place():
    names = [each.name for each in glossary()]
    assert names == sorted(set(names), key=str.lower)
    assert all(each.meaning.endswith(".") and each.meaning[0].isupper() for each in glossary())


def test_the_page_and_the_document_have_the_same_terms(client):
    page = client.get(reverse("inspector:glossary")).content.decode()
    lines = DOCS.read_text("utf-8").splitlines()
    for term in glossary():
        assert term.meaning in page
        assert f"| {term.name} | {term.meaning} | {term.also} |" in lines
    assert len([line for line in lines if line.startswith("| ")]) == len(glossary()) + 1


def test_the_help_of_each_page_links_to_it(client, operator_client):
    link = f'href="{reverse("inspector:glossary")}"'
    for page in (client.get("/glossary/"), operator_client.get("/")):
        help = page.content.decode().partition('id="keys"')[2]
        assert link in help
