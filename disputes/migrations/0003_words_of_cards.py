from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("disputes", "0002_dispute_search_text")]

    operations = [
        migrations.AlterField(
            model_name="conflict",
            name="kind",
            field=models.CharField(
                choices=[
                    ("disagreement", "Disagreement"),
                    ("silence", "Silence"),
                    ("alert", "Alert"),
                    ("help", "Needs a person"),
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="conflict",
            name="origin",
            field=models.CharField(
                choices=[
                    ("disagree", "Coder declined"),
                    ("cli", "Dispute opened"),
                    ("minor", "Minor, logged"),
                    ("reopened", "Reopened"),
                    ("not_honoured", "Ruling not honoured"),
                    ("rejections", "Rejection limit"),
                    ("empty_runs", "Runs without result"),
                    ("blocked", "Coder is blocked"),
                    ("landing", "Landing is stuck"),
                    ("review", "Review raises only settled points"),
                    ("repeated", "Raised again after it was declined"),
                    ("converted", "Converted from silence"),
                    ("flagged", "Perhaps passed over"),
                    ("unanswered", "Raised again, nothing was done"),
                    ("oscillation", "Goes back and forth"),
                    ("rounds", "Raised again and again"),
                    ("rate", "Too much is declined"),
                    ("divergence", "More comes up than gets done"),
                    ("stall", "No progress"),
                    ("ladder", "Every model of the ladder failed"),
                    ("ping_pong", "Agents disagree over and over"),
                    ("budget", "A cap of money or tokens"),
                    ("base", "The target branch is not fit"),
                    ("rewritten", "The target branch lost landed work"),
                    ("verifying", "Build or tests"),
                ],
                max_length=12,
            ),
        ),
    ]
