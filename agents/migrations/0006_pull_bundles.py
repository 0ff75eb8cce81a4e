import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("agents", "0005_a_team"),
    ]

    operations = [
        migrations.CreateModel(
            name="PullBundle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("base", models.BinaryField(blank=True, help_text="Where it begins; empty where the remote has that commit.", null=True)),
                ("work", models.BinaryField(blank=True, help_text="What it brought, unread.", null=True)),
                ("tip", models.CharField(blank=True, help_text="The commit that the work ends with.", max_length=64)),
                ("run", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name="pull_bundle", to="agents.run")),
            ],
        ),
    ]
