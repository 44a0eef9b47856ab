from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="slot_at",
            field=models.DateTimeField(blank=True, help_text="The slot that was taken for its next call.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="slot_target",
            field=models.CharField(blank=True, default="", help_text="Whose slot it waits for.", max_length=64),
        ),
        migrations.CreateModel(
            name="PaceSlot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workspace", models.CharField(default="default", max_length=64)),
                ("target", models.CharField(max_length=64)),
                ("free_at", models.BigIntegerField(help_text="Microseconds since 1970, by the clock of every query.")),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "target"), name="paceslot_workspace_target")
                ],
            },
        ),
    ]
