from django.db import migrations

RULE = "rule on "


def into_rows(apps, schema_editor):
    """Each option C becomes a proposal; a conflict that was reopened shares that of the one before."""
    Conflict, Proposal = apps.get_model("disputes", "Conflict"), apps.get_model("disputes", "Proposal")
    made = {}
    for conflict in Conflict.objects.exclude(synthesis="").order_by("pk"):
        known = made.get(conflict.previous_id)
        source, _, label = conflict.synthesis_by.partition(" ")
        if conflict.synthesis_by.startswith(RULE):
            source, label = "rule", conflict.synthesis_by[len(RULE) :]
        elif source not in {"judge", "mediator"}:
            source, label = "human", label or source
        values = {
            "text": conflict.synthesis, "source": source, "by_label": label,
            "trade_off": conflict.synthesis_trade_off, "covers_both": conflict.synthesis_covers_both,
        }  # fmt: skip
        if known is None or any(getattr(known, name) != value for name, value in values.items()):
            known = Proposal.objects.create(conflict=conflict, at=conflict.opened_at, **values)
        made[conflict.pk] = conflict.proposal = known
        conflict.save(update_fields=["proposal"])


class Migration(migrations.Migration):
    dependencies = [("disputes", "0017_proposals")]

    operations = [migrations.RunPython(into_rows, migrations.RunPython.noop)]
