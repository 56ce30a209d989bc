"""The first schema, as `makemigrations` wrote it, and after it what models cannot say."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


def leave_out_of_the_log(apps, schema_editor):
    """A count that is lost in a crash begins anew, and its commit waits for no disk."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("ALTER TABLE chatmemory_requestcount SET UNLOGGED")


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "Viewer"),
                            ("operator", "Operator"),
                            ("admin", "Admin"),
                        ],
                        default="operator",
                        max_length=8,
                    ),
                ),
                (
                    "prefix",
                    models.CharField(
                        blank=True,
                        help_text="it knows only ids that begin with this",
                        max_length=255,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("created_by", models.CharField(blank=True, max_length=255)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="DefaultPolicy",
            fields=[
                ("policy_kind", models.CharField(blank=True, max_length=32, null=True)),
                ("policy_limit", models.BigIntegerField(blank=True, null=True)),
                ("policy_estimator", models.CharField(default="gpt-4o", max_length=255)),
                ("policy_options", models.JSONField(blank=True, default=dict)),
                (
                    "prefix",
                    models.CharField(blank=True, max_length=255, primary_key=True, serialize=False),
                ),
                ("set_by", models.CharField(blank=True, max_length=255)),
                ("set_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "default policies",
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("actor", models.CharField(blank=True, max_length=255)),
                (
                    "action",
                    models.CharField(
                        choices=[("delete", "Delete"), ("redact", "Redact")], max_length=8
                    ),
                ),
                ("memory_id", models.CharField(max_length=255)),
                (
                    "detail",
                    models.JSONField(
                        default=dict, help_text="numbers and digests, no word of a message"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "indexes": [
                    models.Index(models.F("memory_id"), models.F("at"), name="audit_of_memory")
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotentAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("caller", models.CharField(max_length=40)),
                ("key", models.CharField(max_length=255)),
                ("memory_id", models.CharField(blank=True, max_length=255)),
                (
                    "request",
                    models.CharField(
                        blank=True,
                        help_text="fingerprint of method, address and body; blank once the response is erased",
                        max_length=64,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("status", models.SmallIntegerField()),
                ("headers", models.JSONField()),
                ("body", models.TextField()),
            ],
            options={
                "indexes": [
                    models.Index(models.F("created_at"), name="idempotency_key_by_age"),
                    models.Index(models.F("memory_id"), name="idempotency_key_by_memory"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("caller"), models.F("key"), name="idempotency_key_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Memory",
            fields=[
                ("policy_kind", models.CharField(blank=True, max_length=32, null=True)),
                ("policy_limit", models.BigIntegerField(blank=True, null=True)),
                ("policy_estimator", models.CharField(default="gpt-4o", max_length=255)),
                ("policy_options", models.JSONField(blank=True, default=dict)),
                ("id", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("labels", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                (
                    "branched_from",
                    models.CharField(
                        blank=True,
                        help_text="the conversation that it was saved from",
                        max_length=255,
                        null=True,
                    ),
                ),
                ("last_step", models.BigIntegerField(default=0)),
                (
                    "last_seq",
                    models.BigIntegerField(default=0, help_text="seq of the newest message row"),
                ),
                (
                    "last_stay",
                    models.BigIntegerField(
                        default=0, help_text="the number `n` of the newest stay"
                    ),
                ),
                ("said_count", models.BigIntegerField(default=0, help_text="messages in history")),
                ("history_tokens", models.BigIntegerField(default=0)),
                ("window_count", models.BigIntegerField(default=0)),
                ("window_tokens", models.BigIntegerField(default=0)),
                (
                    "window_size",
                    models.BigIntegerField(
                        default=0, help_text="bytes of the JSON of the messages in the window"
                    ),
                ),
                (
                    "window_load",
                    models.BigIntegerField(
                        help_text="how much of the limit memory takes; null without an installed policy",
                        null=True,
                    ),
                ),
                ("head", models.BinaryField(help_text="digest of the newest step")),
                ("labels_salt", models.BinaryField()),
                ("first_labels", models.BinaryField(help_text="commitment of the first labels")),
                (
                    "previous_head",
                    models.BinaryField(
                        help_text="head of a deleted conversation with this id", null=True
                    ),
                ),
                ("oldest", models.BigIntegerField(default=1)),
                ("ordered_from", models.BigIntegerField(default=0)),
                (
                    "waiting_call",
                    models.BigIntegerField(
                        help_text="seq of the tool call at the window's end that awaits results",
                        null=True,
                    ),
                ),
                (
                    "oversized_step",
                    models.BigIntegerField(
                        help_text="the newest step whose message the window had no room for",
                        null=True,
                    ),
                ),
                (
                    "missed_step",
                    models.BigIntegerField(
                        help_text="the newest step whose message left in it", null=True
                    ),
                ),
                (
                    "health",
                    models.JSONField(default=dict, help_text="what an add needs, and the faults"),
                ),
                (
                    "problems",
                    models.CharField(
                        default="", help_text="the rules that it breaks, in commas", max_length=1024
                    ),
                ),
                (
                    "refused_by",
                    models.IntegerField(default=0, help_text="the providers, as bits"),
                ),
                (
                    "ill_at",
                    models.DateTimeField(help_text="since when it has a fault", null=True),
                ),
                (
                    "deleted_at",
                    models.DateTimeField(help_text="when its deletion began", null=True),
                ),
                (
                    "imported",
                    models.BigIntegerField(
                        help_text="messages of an unfinished import that are stored", null=True
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "memories",
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("updated_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="memory_by_activity",
                    ),
                    models.Index(models.F("created_at"), models.F("id"), name="memory_by_creation"),
                    models.Index(
                        models.F("branched_from"),
                        condition=models.Q(("branched_from__isnull", False)),
                        name="memory_branches",
                    ),
                    models.Index(
                        models.OrderBy(models.F("ill_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("ill_at__isnull", False)),
                        name="memory_ill",
                    ),
                    models.Index(
                        models.F("refused_by"),
                        condition=models.Q(("refused_by__gt", 0)),
                        name="memory_refused",
                    ),
                    models.Index(
                        models.F("oversized_step"),
                        condition=models.Q(("oversized_step__isnull", False)),
                        name="memory_oversized",
                    ),
                    models.Index(
                        models.F("missed_step"),
                        condition=models.Q(("missed_step__isnull", False)),
                        name="memory_missed",
                    ),
                    models.Index(
                        models.F("window_load"),
                        condition=models.Q(("window_load__gt", models.F("policy_limit"))),
                        name="memory_over_limit",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("seq", models.BigIntegerField()),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("SYSTEM", "SYSTEM"),
                            ("USER", "USER"),
                            ("AI", "AI"),
                            ("TOOL_EXECUTION_RESULT", "TOOL_EXECUTION_RESULT"),
                            ("CUSTOM", "CUSTOM"),
                        ],
                        max_length=24,
                    ),
                ),
                ("text", models.TextField()),
                ("frame", models.TextField()),
                (
                    "attributes",
                    models.TextField(
                        blank=True, help_text="of a system message, whose JSON has none", null=True
                    ),
                ),
                ("tokens", models.IntegerField()),
                (
                    "origin",
                    models.CharField(
                        choices=[("SAID", "Said"), ("SYNTHETIC", "Synthetic")],
                        default="SAID",
                        max_length=9,
                    ),
                ),
                ("said_at", models.DateTimeField()),
                ("client_id", models.CharField(blank=True, max_length=255, null=True)),
                (
                    "redacted_step",
                    models.BigIntegerField(
                        blank=True, help_text="the step that redacted it", null=True
                    ),
                ),
                ("salt", models.BinaryField(help_text="erased by a redaction", null=True)),
                ("commitment", models.BinaryField(help_text="of the words as they were said")),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatmemory.memory",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RecallFigures",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "key",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("key", models.CharField(help_text="digest of the question", max_length=32)),
                (
                    "state",
                    models.CharField(
                        help_text="head of the ledger, and its last step", max_length=64
                    ),
                ),
                ("figures", models.JSONField()),
                ("computed_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatmemory.memory",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "recall figures",
            },
        ),
        migrations.CreateModel(
            name="RequestCount",
            fields=[
                ("key", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("count", models.BigIntegerField()),
                ("ends_at", models.DateTimeField(help_text="when the count begins anew")),
            ],
            options={
                "indexes": [models.Index(models.F("ends_at"), name="request_count_by_end")],
            },
        ),
        migrations.CreateModel(
            name="Stay",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "n",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("n", models.BigIntegerField()),
                ("seq", models.BigIntegerField()),
                ("entered_step", models.BigIntegerField()),
                ("left_step", models.BigIntegerField(blank=True, null=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("CAPACITY", "CAPACITY"),
                            ("ORPHANED", "ORPHANED"),
                            ("REPLACED", "REPLACED"),
                            ("CLEARED", "CLEARED"),
                            ("SET", "SET"),
                            ("MOVED", "MOVED"),
                            ("TURN", "TURN"),
                            ("SUMMARIZED", "SUMMARIZED"),
                        ],
                        max_length=10,
                        null=True,
                    ),
                ),
                ("rank", models.BigIntegerField()),
                ("type", models.CharField(max_length=24)),
                ("has_calls", models.BooleanField(default=False)),
                ("pinned", models.BooleanField(default=False)),
                ("tokens", models.IntegerField()),
                (
                    "size",
                    models.IntegerField(
                        help_text="bytes of the message's JSON when the stay began"
                    ),
                ),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatmemory.memory",
                    ),
                ),
                (
                    "message",
                    models.ForeignObject(
                        from_fields=["memory", "seq"],
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="stays",
                        to="chatmemory.message",
                        to_fields=["memory", "seq"],
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                ("policy_kind", models.CharField(blank=True, max_length=32, null=True)),
                ("policy_limit", models.BigIntegerField(blank=True, null=True)),
                ("policy_estimator", models.CharField(default="gpt-4o", max_length=255)),
                ("policy_options", models.JSONField(blank=True, default=dict)),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "n",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("n", models.BigIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("add", "Add"),
                            ("set", "Set"),
                            ("clear", "Clear"),
                            ("policy", "Policy"),
                            ("labels", "Labels"),
                            ("pin", "Pin"),
                            ("unpin", "Unpin"),
                            ("compact", "Compact"),
                            ("repair", "Repair"),
                            ("redact", "Redact"),
                        ],
                        max_length=8,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("actor", models.CharField(blank=True, max_length=255)),
                (
                    "by_client",
                    models.BooleanField(
                        default=False,
                        help_text="the caller handed over the whole window; no policy decided",
                    ),
                ),
                ("count_before", models.BigIntegerField()),
                ("tokens_before", models.BigIntegerField()),
                ("count_after", models.BigIntegerField()),
                ("tokens_after", models.BigIntegerField()),
                ("history_tokens", models.BigIntegerField(help_text="of all messages said so far")),
                (
                    "last_seq",
                    models.BigIntegerField(help_text="seq of the newest message row so far"),
                ),
                ("said_count", models.BigIntegerField(help_text="messages in history so far")),
                (
                    "last_stay",
                    models.BigIntegerField(
                        help_text="the number `n` of the newest stay after the step"
                    ),
                ),
                (
                    "oldest",
                    models.BigIntegerField(
                        help_text="no open stay has a lower n, a leading system message and pins excepted"
                    ),
                ),
                (
                    "seq",
                    models.BigIntegerField(
                        blank=True, help_text="seq of what was redacted or pinned", null=True
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=255)),
                (
                    "commitment",
                    models.BinaryField(
                        help_text="the digest of the new labels, or of what a redaction left",
                        null=True,
                    ),
                ),
                (
                    "digest",
                    models.BinaryField(help_text="of the step before and of all that it wrote"),
                ),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatmemory.memory",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Trial",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "key",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "key",
                    models.CharField(help_text="digest of the drafts and the limit", max_length=16),
                ),
                ("drafts", models.TextField(help_text="a JSON list of messages")),
                ("limit", models.BigIntegerField(blank=True, null=True)),
                ("tried_by", models.CharField(blank=True, max_length=255)),
                ("tried_at", models.DateTimeField()),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatmemory.memory",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                models.F("memory"),
                models.F("client_id"),
                condition=models.Q(("client_id__isnull", False)),
                name="client_id_once",
            ),
        ),
        migrations.AddIndex(
            model_name="recallfigures",
            index=models.Index(models.F("key"), models.F("memory"), name="figures_by_question"),
        ),
        migrations.AddIndex(
            model_name="stay",
            index=models.Index(
                models.F("memory"),
                models.F("rank"),
                condition=models.Q(("left_step__isnull", True)),
                name="stay_open",
            ),
        ),
        migrations.AddIndex(
            model_name="stay",
            index=models.Index(
                models.F("memory"),
                models.F("left_step"),
                condition=models.Q(("left_step__isnull", False)),
                name="stay_left",
            ),
        ),
        migrations.AddIndex(
            model_name="stay",
            index=models.Index(models.F("memory"), models.F("seq"), name="stay_of_message"),
        ),
        migrations.AddIndex(
            model_name="stay",
            index=models.Index(
                models.F("memory"),
                models.F("n"),
                condition=models.Q(("type", "SYSTEM"), ("pinned", True), _connector="OR"),
                name="stay_protected",
            ),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                models.OrderBy(models.F("at"), descending=True),
                models.F("memory"),
                models.OrderBy(models.F("n"), descending=True),
                condition=models.Q(
                    ("count_after__lte", models.F("count_before")),
                    models.Q(("note", "imported"), _negated=True),
                    models.Q(("note", "branched"), _negated=True),
                ),
                name="step_evicting",
            ),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(models.F("tried_at"), name="trial_by_age"),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(models.F("tried_by"), models.F("tried_at"), name="trial_by_person"),
        ),
        migrations.CreateModel(
            name="FoundIncidents",
            fields=[
                (
                    "memory",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="found_incidents",
                        serialize=False,
                        to="chatmemory.memory",
                    ),
                ),
                ("step", models.BigIntegerField()),
                (
                    "words",
                    models.CharField(help_text="digest of the words that are facts", max_length=32),
                ),
                ("rows", models.JSONField(default=list)),
                ("said_again", models.IntegerField(default=0)),
                ("fetched_again", models.IntegerField(default=0)),
                ("used", models.IntegerField(default=0)),
                ("compactions", models.JSONField(default=list)),
                (
                    "compacted",
                    models.IntegerField(default=0, help_text="how many compactions it has rows of"),
                ),
                (
                    "terms_lost",
                    models.IntegerField(
                        default=0,
                        help_text="exact terms that were needed and that summaries lost",
                    ),
                ),
                ("newest_step", models.BigIntegerField(null=True)),
                ("newest_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "found incidents",
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("newest_at"), descending=True),
                        condition=models.Q(("newest_at__isnull", False)),
                        name="incident_newest",
                    ),
                    models.Index(
                        models.F("memory"),
                        condition=models.Q(("terms_lost__gt", 0)),
                        name="incident_lost_terms",
                    ),
                ],
            },
        ),
        # What models cannot say. The hints tell routers whose tables they are.
        migrations.RunPython(
            leave_out_of_the_log, migrations.RunPython.noop, hints={"model_name": "requestcount"}
        ),
    ]
