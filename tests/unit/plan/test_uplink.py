"""Hosts behind an HTTP proxy: the variables of their programs, and direct addresses."""

import pytest

from sparkwright.config.parse import parse_settings
from sparkwright.config.settings import HostSettings
from sparkwright.findings.user_error import UserError
from sparkwright.plan.uplink import environment
from tests.tables import Tables

cases = Tables(__file__)

PROXY = "http://proxy.example:3128"


def _settings(**more: object) -> HostSettings:
    return HostSettings.model_validate({"services": {}, "http_proxy": PROXY, **more})


def test_no_variable_is_set_without_a_proxy() -> None:
    assert environment(HostSettings.model_validate({"services": {}})) == {}


def test_proxy_variables_have_both_spellings() -> None:
    """apt reads only the lower-case variables; other programs read the upper-case variables."""
    result = environment(_settings())
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        assert result[name] == PROXY
    assert result["NO_PROXY"] == result["no_proxy"]


def test_the_lan_is_reached_without_the_proxy() -> None:
    mirrors = {"ghcr.io": "http://10.1.2.3:5000", "docker.io": "https://mirror.example",
               "quay.io": "http://depot:5000"}  # fmt: skip
    hub, own = "http://192.168.1.9:8080", ["intern.example"]
    result = environment(_settings(hub_endpoint=hub, image_mirrors=mirrors, no_proxy=own))
    direct = result["NO_PROXY"].split(",")
    for name in ("localhost", "127.0.0.1", "::1", ".local", "192.168.1.9", "10.1.2.3", "depot"):
        assert name in direct
    assert "intern.example" in direct
    assert "mirror.example" not in direct


@cases("address")
def test_an_invalid_proxy_address_is_refused(address: str) -> None:
    """A unit's environment is world-readable: no account may be in it."""
    with pytest.raises(UserError):
        parse_settings("spark-1", {"services": {}, "http_proxy": address}, lambda _: "all.py")


@pytest.mark.parametrize("name", ["a b", "a\nX=1", "a,b", 'a"b', "$HOME", "%h"])
def test_the_variable_no_proxy_is_a_list_of_names(name: str) -> None:
    """The list becomes part of a unit's line."""
    with pytest.raises(UserError):
        parse_settings("spark-1", {"services": {}, "no_proxy": [name]}, lambda _: "all.py")
