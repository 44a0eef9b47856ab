from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0003_desk"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="held_keys",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="JSON: the keys that its `once` steps took and that a failure gives back.",
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="safe",
            field=models.BooleanField(
                db_default=False, default=False, help_text="A GET: it changes nothing where it goes."
            ),
        ),
    ]
