"""Certificates of a sandbox with TLS: an authority, and the brokers' certificate."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from shutil import rmtree

from quota_ops.jvm.java import find_java
from quota_ops.model.errors import ClusterTrouble

_VARIABLE = "QUOTA_OPS_STORE_VARIABLE"
"""The variable for keytool: every user of a machine can read the arguments of a process."""
_DAYS = "365"


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """A key store with the brokers' key and certificate, and the authority as a PEM file."""

    key_store: Path
    password: str
    authority: Path


def create_certificates(folder: Path) -> Certificates:
    """Create an authority and a certificate for 127.0.0.1 that it signed; older ones are replaced.

    Only this user can read the folder. Raises MissingTool without Java; ClusterTrouble with the
    output of keytool if it fails.
    """
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    made = Certificates(
        key_store=folder / "broker.p12", password=token_urlsafe(12), authority=folder / "ca.pem"
    )
    signs = ("-ext", "bc:critical=ca:true", "-ext", "ku:critical=keyCertSign,cRLSign")
    server = ("-signer", "ca", "-ext", "san=ip:127.0.0.1,dns:localhost", "-ext", "eku=serverAuth")
    _create_key(made, "ca", "CN=quota-ops sandbox authority", signs)
    _create_key(made, "broker", "CN=quota-ops sandbox broker", server)
    _run_keytool(made, "-exportcert", "-rfc", "-alias", "ca", "-file", str(made.authority))
    _run_keytool(made, "-delete", "-alias", "ca")
    return made


def _create_key(made: Certificates, alias: str, name: str, extensions: tuple[str, ...]) -> None:
    curve = ("-keyalg", "EC", "-groupname", "secp256r1")
    words = ("-alias", alias, "-dname", name, *curve, "-validity", _DAYS, *extensions)
    _run_keytool(made, "-genkeypair", *words)


def _run_keytool(made: Certificates, action: str, *arguments: str) -> None:
    keytool = Path(find_java()).resolve().with_name("keytool")
    store = ("-storetype", "PKCS12", "-keystore", str(made.key_store))
    ran = subprocess.run(
        [str(keytool), action, *arguments, *store, "-storepass:env", _VARIABLE],
        env={**os.environ, _VARIABLE: made.password},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise ClusterTrouble(f"keytool could not create certificates:\n{ran.stdout}")
