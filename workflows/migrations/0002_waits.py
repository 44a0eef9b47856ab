from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="slot_target",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The paced target whose slot at `not_before` is taken for it.",
                max_length=64,
            ),
        ),
        migrations.CreateModel(
            name="PaceSlot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workspace", models.CharField(default="default", max_length=64)),
                ("target", models.CharField(max_length=64)),
                ("free_at", models.BigIntegerField(db_default=0)),
                ("open_at", models.BigIntegerField(db_default=0)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "target"), name="paceslot_workspace_target")
                ],
            },
        ),
    ]
