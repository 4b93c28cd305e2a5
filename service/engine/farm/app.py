"""The Celery application that services and workers share: its queue, and every setting with its reason."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from celery import Celery
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

from service.settings import Settings
from tensorkiln.errors import UnavailableError

from .message import queue_name

_DEAD: Final = "kiln.dead"
_MAX_QUEUED: Final = 50_000
# A queue of a build that neither services nor workers have used for so long is removed.
_EXPIRES_MS: Final = 7 * 86_400_000
_DEAD_MS: Final = 86_400_000
# RabbitMQ closes the channel of whoever holds a message for longer than this, unless it is asked for more.
_HELD_S: Final = 1800.0
_AMQP: Final = frozenset({"amqp", "amqps", "pyamqp"})
CONNECT_TIMEOUT_S: Final = 2.0
# A connection on which a question has no answer for so long is lost, though nothing may say so.
_ANSWER_S: Final = 5.0


def farm_app(settings: Settings) -> Celery:
    """The application on KILN_BROKER. UnavailableError when the URL names no broker that is known here."""
    url = settings.broker.get_secret_value()
    scheme = _scheme(url)
    if scheme not in _AMQP:
        raise UnavailableError(f"KILN_BROKER has the scheme {scheme!r}; use amqp:// or amqps:// for RabbitMQ.")
    app = Celery("kiln", set_as_current=False)
    app.conf.update(_settings(settings, url), **_queues(settings))
    return app


def _scheme(url: str) -> str:
    """The scheme of a URL of which kombu can make something: its own errors show parts of the password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UnavailableError(
            "KILN_BROKER is no URL: it is written amqp://USER:PASSWORD@HOST:PORT/, with a port between 1 and 65535 and "
            "with %2F for a / in a name or password, %40 for an @, %5B for a [."
        ) from None
    return parts.scheme


def _settings(settings: Settings, url: str) -> dict[str, Any]:
    return {
        "broker_url": url,
        "task_serializer": "json",
        "accept_content": ["json"],
        "result_serializer": "json",
        # Results are in the store: nothing waits for a result backend.
        "task_ignore_result": True,
        # A message is acknowledged when its work is over, however that went: the store knows what is left to do.
        "task_acks_late": True,
        "task_acks_on_failure": True,
        "task_acks_on_timeout": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        "worker_lost_wait": 0.5,
        # The sandbox keeps the deadline; this ends a worker process that does not.
        "task_time_limit": settings.timeouts.worker_s,
        "task_soft_time_limit": None,
        # SIGTERM lets what is begun come to its end. At SIGQUIT a worker gives its orders back at once: a soft shutdown
        # would sleep for all of its time, without a heartbeat, until the broker hangs up on the acknowledgements.
        "worker_soft_shutdown_timeout": 0.0,
        "worker_max_tasks_per_child": 500,
        "worker_max_memory_per_child": 400_000,
        "worker_proc_alive_timeout": 60.0,
        # The broker delivers again what a worker had that it lost sight of.
        "worker_cancel_long_running_tasks_on_connection_loss": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_connection_timeout": CONNECT_TIMEOUT_S,
        "broker_heartbeat": 10,
        "task_publish_retry": True,
        "task_publish_retry_policy": {"max_retries": 3, "interval_start": 0, "interval_step": 0.2, "interval_max": 1},
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "task_create_missing_queues": False,
        "task_default_queue": queue_name(),
    }


def declare(app: Celery, connection: Connection) -> None:
    """Have the broker know the queues: the farm's, and the one for what no worker could finish."""
    opened: Any = connection.channel()
    with opened as channel:
        kept = {"x-message-ttl": _DEAD_MS, "x-max-length": _MAX_QUEUED}
        Queue(_DEAD, Exchange(_DEAD, type="fanout"), queue_arguments=kept)(channel).declare()
        app.amqp.queues[queue_name()](channel).declare()


def _queues(settings: Settings) -> dict[str, Any]:
    declared = {
        "x-queue-type": "quorum",
        "x-delivery-limit": 3,
        "x-dead-letter-exchange": _DEAD,
        "x-overflow": "reject-publish",
        "x-max-length": _MAX_QUEUED,
        "x-expires": _EXPIRES_MS,
    }
    # Of a consumer, not of the queue: with another deadline a worker could not declare that again.
    consuming = {"x-consumer-timeout": round(1000 * (settings.timeouts.worker_s + _HELD_S))}
    return {
        "broker_transport_options": {"confirm_publish": True, "read_timeout": _ANSWER_S},
        "task_queues": [
            Queue(
                queue_name(),
                Exchange("kiln", type="direct"),
                routing_key=queue_name(),
                queue_arguments=declared,
                consumer_arguments=consuming,
            )
        ],
        "task_default_exchange": "kiln",
        "task_default_routing_key": queue_name(),
    }
