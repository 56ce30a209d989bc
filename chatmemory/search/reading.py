"""Searches by reading every text, which needs no index and works in every database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    F,
    Func,
    Max,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Concat, Length
from django.db.models.lookups import IsNull
from django.db.models.sql.compiler import SQLCompiler

from chatmemory.messages.phrases import (
    LEAST_WORD,
    SEARCHED,
    sought_phrase,
    sought_words,
)
from chatmemory.search.conditions import Compiled, Has, SqlContext

TRIGRAM = 3
# The characters that a transaction writes or removes in an index: it takes less than half a second
# for text without repetition, in which nobody else can write.
INDEXED_AT_ONCE = 500_000
READ_AT_ONCE = 20_000  # messages; with more, the index is used
# The model whose texts are searched beside history, if a room has registered one: with a `memory`,
# a number `n` and a `text`.
TEXTS_BESIDE: list[str] = []
DIGEST_LABEL = "import_digest"  # imports set it for themselves: it is neither shown nor searched


def user_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels without the label that identifies an import. Users do not see this
    label.
    """
    return {name: value for name, value in labels.items() if name != DIGEST_LABEL}


def searches_messages(words: str) -> bool:
    """Return whether a search for these words searches messages. For one or two ASCII characters it
    does not, because nearly every message contains them.
    """
    return len(words) >= LEAST_WORD or not words.isascii()


def beginning_of(text: str) -> str:
    """Return the SQL for the part of a text that is searched. `text` is the SQL of the text."""
    return f"SUBSTR({text}, 1, {SEARCHED})"


class _Beginning(Func):
    template = beginning_of("%(expressions)s")
    output_field = TextField()


def beginning(text: str) -> Func:
    """Return the database expression for the part of a text that is searched. `text` is the name of
    a field.
    """
    return _Beginning(F(text))


def searched_characters() -> Combinable:
    """Return the database expression for how many characters of a message are searched."""
    return Coalesce(Length(beginning("text")), 0)


class LabelText(Func):
    """The SQL expression for a conversation's labels as text, with a line `name:value` for each."""

    output_field = TextField()
    template = (
        "(SELECT %(join)s(key || ':' || value, %(newline)s(10)) FROM %(each)s(%(expressions)s)"
        " WHERE key <> '%(hidden)s')"
    )

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: SqlContext
    ) -> Compiled:
        names = {"join": "GROUP_CONCAT", "newline": "CHAR", "each": "json_each"}
        return self.as_sql(compiler, connection, hidden=DIGEST_LABEL, **names, **context)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: SqlContext
    ) -> Compiled:
        names = {"join": "STRING_AGG", "newline": "CHR", "each": "jsonb_each_text"}
        return self.as_sql(compiler, connection, hidden=DIGEST_LABEL, **names, **context)


class SeqList(Subquery):
    """The SQL expression for the `seq` numbers of the messages that a query finds, as one text such
    as `3,8,21`.
    """

    output_field = TextField()
    template = "(SELECT STRING_AGG(CAST(seq AS text), ',') FROM (%(subquery)s) listed)"

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: SqlContext
    ) -> Compiled:
        template = self.template.replace("STRING_AGG", "GROUP_CONCAT")
        return self.as_sql(compiler, connection, template=template, **context)


class TextIndex:
    """Searches the texts of a database. This base class reads every text; subclasses use an index.

    All words of a search must be in the same text, in any order. Case, accents and the separators
    in codes do not matter: `BW583021` is found in `BW-583021`. There are three kinds of texts:

    - A message in history.
    - The id and labels of a conversation, together.
    - A text beside history: a text that a room stores, such as a message that was sent in model
      calls but is not in history.
    """

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection = connection

    def condition(self, words: str) -> Q:
        """Return the condition for conversations with the words in a message, in a text beside
        history, or in their id and labels.

        `scan_filter` is faster for common words.
        """
        found = self.named(words)
        for matching in self._matching(words):
            found |= Q(id__in=matching.values("memory_id"))
        return found

    def few(self, words: str, most: int) -> list[str] | None:
        """Return the ids of the conversations with the words. None if there are more than `most`
        matches, or if the words are too short for the index.

        A match is a message, a text beside history, or a conversation's id and labels together.
        """
        return self._few(words, self._matching(words), most)

    def few_with_phrase(self, words: str, most: int) -> list[str] | None:
        """Return the ids of the conversations with the words as one phrase in a message or in a
        text beside history. Conversations with all words in their id and labels are returned, too.

        None in the same cases as for `few`.
        """
        phrase = self.has(beginning("text"), words)
        return self._few(words, [each.filter(phrase) for each in self._matching(words)], most)

    def _few(self, words: str, matching: Iterable[QuerySet[Model]], most: int) -> list[str] | None:
        named = all_rows("Memory").filter(self.named(words)).values_list("id", flat=True)
        matches = [each.values_list("memory_id", flat=True) for each in matching]
        places = named.union(*matches, all=True)[: most + 1]
        return sorted(set(places)) if len(places) <= most else None

    def scan_filter(self, words: str) -> Q:
        """Return the condition for conversations with the words. The database reads each
        conversation only up to its first match.

        Faster than `condition` for common words, if only a few conversations are needed.
        """
        found = self.named(words)
        for matching in (self.read(words), self.read_beside(words)):
            one = matching.filter(memory_id=OuterRef("pk")).values("memory_id")[:1]
            found |= Q(IsNull(Subquery(one), False))
        return found

    def mentions(self, words: str, memory_ids: Sequence[str], most: int) -> dict[str, list[int]]:
        """Return the seqs of the latest messages with the words, by conversation id. Each list has
        at most `most` seqs, the newest first. A conversation without such messages is left out.
        """
        return self.latest(self.read(words), memory_ids, most)

    def beside(self) -> str:
        """Return the name of the table with texts beside history, such as messages that were sent
        in model calls but are not in history.

        Return "" if no room stores such texts, or if the table does not exist yet.
        """
        model = model_beside()
        table = model._meta.db_table if model else ""
        return table if table in self.connection.introspection.table_names() else ""

    def newest_beside(self, words: str, memory_ids: Sequence[str], most: int) -> dict[str, int]:
        """Return the number (`n`) of the newest text beside history with the words, by conversation
        id. A conversation without such a text is left out.

        If there are more than `most` matches, a subclass may read every text instead of using its
        index.
        """
        if model_beside() is None:
            return {}
        found = self.matching_beside(words).filter(memory_id__in=memory_ids)
        return dict(found.values_list("memory_id").annotate(Max("n")).order_by())

    def latest(
        self, matches: QuerySet[Model], memory_ids: Sequence[str], most: int
    ) -> dict[str, list[int]]:
        """Return the seqs of the latest messages that the query `matches` finds, by conversation
        id. Each list has at most `most` seqs, the newest first. A conversation without such
        messages is left out.
        """
        matches = matches.filter(memory_id=OuterRef("pk")).order_by("-seq")
        rows = all_rows("Memory").filter(id__in=memory_ids)
        listed = rows.annotate(seqs=SeqList(matches.values("seq")[:most]))
        return {
            memory_id: sorted(map(int, seqs.split(",")), reverse=True)
            for memory_id, seqs in listed.values_list("id", "seqs")
            if seqs
        }

    def named(self, words: str) -> Q:
        """Return the condition for conversations whose id and labels together contain all words."""
        return Q(Has(names(), sought_words(words)))

    def are_short(self, memory_ids: Sequence[str]) -> bool:
        """Return whether these conversations have so few messages that reading them is faster than
        an index.
        """
        rows = all_rows("Memory").filter(id__in=memory_ids)
        return bool(sum(rows.values_list("last_seq", flat=True)) <= READ_AT_ONCE)

    def matching_messages(self, words: str) -> QuerySet[Model]:
        """Return the query for messages with the words, in all histories. Uses the index if there
        is one.
        """
        return self.read(words)

    def read(self, words: str) -> QuerySet[Model]:
        """Return the query for messages with the words, in all histories. Reads every text."""
        if not searches_messages(words):
            return all_rows("Message").none()
        has = Has(beginning("text"), sought_words(words))
        return all_rows("Message").filter(has, origin="SAID")

    def matching_beside(self, words: str) -> QuerySet[Model]:
        """Return the query for texts beside history that contain the words, as rows of
        `model_beside`. Uses the index if there is one.
        """
        return self.read_beside(words)

    def read_beside(self, words: str) -> QuerySet[Model]:
        """Return the query that finds the words in texts beside history (see `matching_beside`).
        Reads every text.
        """
        model = model_beside()
        if model is None or not searches_messages(words):
            return all_rows("Message").none()
        return model._default_manager.filter(Has(beginning("text"), sought_words(words)))

    def _matching(self, words: str) -> tuple[QuerySet[Model], QuerySet[Model]]:
        return self.matching_messages(words), self.matching_beside(words)

    def has(self, text: Combinable, phrase: str) -> Has:
        """Return the SQL condition for a text that contains a phrase."""
        return Has(text, sought_phrase(phrase))

    def install(self) -> None:
        """Create and fill the index, if it does not exist. Does nothing in this base class."""

    def keep_up(self) -> None:
        """Update the index after a migration. The migration may have dropped triggers of the index,
        or added a table with texts to index. Does nothing in this base class.
        """

    def rebuild(self) -> None:
        """Build the index anew, so that its files no longer have erased texts."""

    def repair(self, memory_id: str) -> int:
        """Add the missing rows of a conversation to the index, and return the number of added rows.
        Returns 0 in this base class.
        """
        return 0

    def remove(self) -> None:
        """Remove the index and its triggers."""

    def run(self, *statements: str) -> None:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


def names() -> Combinable:
    """Return the database expression for the text that names a conversation: its id on the first
    line, then its labels, each on its own line.
    """
    labels = Coalesce(LabelText("labels"), Value("", output_field=TextField()))
    return Concat(F("id"), Value("\n"), labels, output_field=TextField())


def model_beside() -> type[Model] | None:
    """Return the model of the texts beside history, such as messages that were sent in model calls
    but are not in history. None if no room stores such texts.
    """
    return apps.get_model(TEXTS_BESIDE[0]) if TEXTS_BESIDE else None


def all_rows(model: str) -> QuerySet[Model]:
    """Return the query for all rows of the model with this name."""
    rows: QuerySet[Model] = apps.get_model("chatmemory", model)._default_manager.all()
    return rows
