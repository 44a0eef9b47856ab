import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="approvalrequest",
            name="doubt",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="approvalrequest",
            name="mode",
            field=models.CharField(db_default="gate", default="gate", max_length=8),
        ),
        migrations.CreateModel(
            name="Vote",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("user_id", models.BigIntegerField()),
                ("label", models.TextField()),
                ("digest", models.CharField(max_length=80)),
                ("answers", models.TextField(blank=True, db_default="", default="")),
                ("reason", models.TextField(blank=True, default="")),
                ("surface", models.CharField(max_length=16)),
                ("at", models.DateTimeField()),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="votes",
                        to="approvals.approvalrequest",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("request", "user_id"), name="vote_person")],
            },
        ),
    ]
