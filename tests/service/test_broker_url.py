"""What KILN_BROKER may be: what is wrong with it is said without any of what it says."""

from __future__ import annotations

import pytest

from service.engine.farm.app import farm_app
from service.settings import Settings
from tensorkiln.errors import UnavailableError


@pytest.mark.parametrize(
    "url",
    [
        "amqp://user:hunt/er2@127.0.0.1:5672//",
        "amqp://user:hunter2@[::1",
        "amqp://user:hunter2@127.0.0.1:hunter2",
        "amqp://user:hunter2@127.0.0.1:99999",
        "redis://:hunter2@127.0.0.1/0",
        "http://:hunter2@127.0.0.1/",
    ],
)
def test_a_url_of_no_broker_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UnavailableError, match="KILN_BROKER") as caught:
        farm_app(Settings.model_validate({"broker": url}))
    assert "hunt" not in str(caught.value)


@pytest.mark.parametrize("url", ["amqp://127.0.0.1", "amqps://a%2Fb:c%40d@h:5671/vhost"])
def test_a_url_of_a_broker_is_taken(url: str) -> None:
    assert farm_app(Settings.model_validate({"broker": url})).conf["broker_url"] == url
