"""Passwords and permissions, from files as Mosquitto's users have them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.live.mqtt.accounts import Accounts


def hashed(password: bytes, salt: bytes = b"salt-and-pepper", iterations: int = 101) -> str:
    import base64
    import hashlib

    digest = hashlib.pbkdf2_hmac("sha512", password, salt, iterations)
    return f"$7${iterations}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


def test_a_password_is_known(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text(f"# people\nalice:{hashed(b'secret')}\n")
    accounts = Accounts(str(file))
    assert accounts.known("alice", b"secret")
    assert not accounts.known("alice", b"wrong")
    assert not accounts.known("alice", None)
    assert not accounts.known("bob", b"secret")
    assert not accounts.known(None, None)
    assert Accounts().known(None, None)


PASSWD = shutil.which("mosquitto_passwd") or shutil.which(
    "mosquitto_passwd", path=str(Path(sys.executable).parent)
)


@pytest.mark.skipif(PASSWD is None, reason="mosquitto_passwd is not installed")
def test_a_file_that_mosquitto_wrote_is_read(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    assert PASSWD is not None
    subprocess.run([PASSWD, "-c", "-b", str(file), "alice", "secret"], check=True)
    assert Accounts(str(file)).known("alice", b"secret")
    assert not Accounts(str(file)).known("alice", b"other")


def test_permissions(tmp_path: Path) -> None:
    file = tmp_path / "acl"
    file.write_text(
        "topic read public/#\n\nuser alice\ntopic sensors/#\ntopic deny sensors/secret\ntopic write orders\n"
        "pattern readwrite home/%u/#\npattern read client/%c\n"
    )
    may = Accounts(permissions=str(file)).may
    assert may(None, "c", "public/a", write=False)
    assert not may(None, "c", "public/a", write=True)
    assert may("alice", "c", "sensors/1/t", write=True)
    assert not may("alice", "c", "sensors/secret", write=False)
    assert may("alice", "c", "orders", write=True)
    assert not may("alice", "c", "orders", write=False)
    assert may("alice", "c", "home/alice/light", write=True)
    assert not may("alice", "c", "home/bob/light", write=False)
    assert may("bob", "c7", "client/c7", write=False)
    assert not may("bob", "+", "client/c7", write=False), "a client id is no wildcard"
    assert not may("bob", "c", "public/a", write=False), "what is for those without a name is not for bob"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mqtt": "127.0.0.1:0", "mqtt_key": "key"}, "mqtt_key needs mqtt_certificate"),
        ({"mqtt": "127.0.0.1:0", "mqtt_permissions": "acl"}, "mqtt_permissions needs mqtt_passwords"),
        *(
            ({name: "file"}, f"{name} needs mqtt")
            for name in ("mqtt_passwords", "mqtt_permissions", "mqtt_certificate", "mqtt_key")
        ),
    ],
)
def test_no_file_is_silently_of_no_use(given: dict[str, str], said: str, tmp_path: Path) -> None:
    """In one line, at the start and when the settings are checked."""
    config = tmp_path / "node.toml"
    config.write_text("insecure = true\n" + "".join(f'{name} = "{value}"\n' for name, value in given.items()))
    for command in (("config", "check", str(config)), ("node", "--config", str(config))):
        told = subprocess.run(
            [sys.executable, "-m", "topicweave.cli", *command],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert told.returncode == 2
        (line,) = told.stderr.splitlines()
        assert said in line


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("mqtt_passwords", "alice", "line 1"),
        ("mqtt_passwords", "ok:$7$1$YQ==$YQ==\nalice:$6$a$b", "line 2"),
        ("mqtt_permissions", "user a\nallow b", "line 2"),
    ],
)
def test_a_broken_file_is_one_clear_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(BadInput, match=said):
        Accounts(**{name.removeprefix("mqtt_"): str(file)})
    with pytest.raises(BadInput, match="No such file"):
        Accounts(**{name.removeprefix("mqtt_"): str(tmp_path / "none")})
