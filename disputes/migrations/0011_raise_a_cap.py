from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("disputes", "0010_policy_decisions_name_their_setter"),
    ]

    operations = [
        migrations.AlterField(
            model_name="decision",
            name="option",
            field=models.CharField(
                choices=[
                    ("uphold_reviewer", "uphold_reviewer"),
                    ("uphold_coder", "uphold_coder"),
                    ("compromise", "compromise"),
                    ("other", "other"),
                    ("ask", "ask"),
                    ("ask_disagree", "ask_disagree"),
                    ("convert", "convert"),
                    ("waive", "waive"),
                    ("false_positive", "false_positive"),
                    ("accept", "accept"),
                    ("reduce", "reduce"),
                    ("check_review", "check_review"),
                    ("clarify", "clarify"),
                    ("narrow", "narrow"),
                    ("prioritise", "prioritise"),
                    ("pause", "pause"),
                    ("retry", "retry"),
                    ("raise_cap", "raise_cap"),
                    ("defer", "defer"),
                    ("cancel", "cancel"),
                ],
                max_length=16,
            ),
        ),
    ]
