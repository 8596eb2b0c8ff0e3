"""Accounts of registries from Docker's own file."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.resolve.credentials import account
from sparkwright.resolve.registry import ask_registry
from tests.host.serving import Handler, listening
from tests.tables import Tables

cases = Tables(__file__)


def file(folder: Path, data: Any) -> str:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


def entry(secret: str) -> dict[str, str]:
    return {"auth": base64.b64encode(secret.encode()).decode()}


def test_each_registry_gets_its_own_account_and_no_other(tmp_path: Path) -> None:
    accounts = {"ghcr.io": entry("me:one"), "https://index.docker.io/v1/": entry("me:two")}
    path = file(tmp_path, {"auths": accounts})
    assert account(path, "https://ghcr.io") == "me:one"
    assert account(path, "https://registry-1.docker.io") == "me:two"
    assert account(path, "https://quay.io") is None
    assert account(None, "https://ghcr.io") is None


class Private(Handler):
    """A registry with one image for ``me:secret``: by ``scheme``, Basic or a token of its own."""

    scheme: str

    def do_GET(self) -> None:
        basic = f"Basic {base64.b64encode(b'me:secret').decode()}"
        given = self.headers.get("Authorization")
        if self.path == "/token?a=b&service=x&scope=y":
            self.reply(200 if given == basic else 401, b'{"access_token": "t"}')
        elif given != (basic if self.scheme == "Basic" else "Bearer t"):
            realm = f"http://{self.headers['Host']}/token?a=b"
            challenge = f'{self.scheme} realm="{realm}",service="x",scope="y"'
            self.reply(401, b"", {"WWW-Authenticate": challenge})
        else:
            self.reply(200, b'{"manifests": []}')


@pytest.mark.parametrize("scheme", ["Basic", "Bearer"])
def test_an_account_opens_a_private_image(scheme: str) -> None:
    with listening(Private, scheme=scheme) as port:
        url = f"http://127.0.0.1:{port}"
        assert ask_registry(url, "me/image", "tag", "me:secret").platforms == {}
        with pytest.raises(UserError, match="the account of registry_auth_file may not read it"):
            ask_registry(url, "me/image", "tag", "me:wrong")
        with pytest.raises(UserError, match="docker login"):
            ask_registry(url, "me/image", "tag")


@cases("data", "message")
def test_a_file_that_can_not_be_used_is_reported(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        account(file(tmp_path, data), "https://ghcr.io")


def test_a_missing_file_and_an_unencrypted_registry_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read"):
        account(str(tmp_path / "none"), "https://ghcr.io")
    path = file(tmp_path, {"auths": {"10.0.0.5:5000": entry("me:secret")}})
    with pytest.raises(UserError, match="unencrypted") as raised:
        account(path, "http://10.0.0.5:5000")
    assert "secret" not in str(raised.value)
