import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Option C becomes a row of its own."""

    dependencies = [("disputes", "0016_snapshots_of_tasks"), ("tasks", "0015_default_branch")]

    operations = [
        migrations.CreateModel(
            name="Proposal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("rule", "rule"),
                            ("judge", "judge"),
                            ("mediator", "mediator"),
                            ("human", "human"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "by_label",
                    models.CharField(help_text="Who wrote it, or what the rule looked at.", max_length=120),
                ),
                ("text", models.TextField(help_text="What both sides could live with.")),
                ("trade_off", models.TextField(blank=True)),
                ("covers_both", models.BooleanField(default=False)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "conflict",
                    models.ForeignKey(
                        help_text="On which it was made; those that go on with it keep it.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proposals",
                        to="disputes.conflict",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(condition=~Q(text=""), name="proposal_says_something"),
                    models.CheckConstraint(
                        condition=Q(source__in=["rule", "judge", "mediator", "human"]),
                        name="proposal_source_known",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="conflict",
            name="proposal",
            field=models.ForeignKey(
                blank=True,
                help_text="Option C; that of an earlier conflict where this one goes on with it.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="disputes.proposal",
            ),
        ),
    ]
