"""Messages to workers through Celery, on RabbitMQ or Redis: for workers on many machines (KAMPONG_QUEUE=celery).

Nothing here is imported unless it is chosen, as Celery is installed only then.
"""
