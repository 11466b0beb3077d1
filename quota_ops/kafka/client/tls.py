"""TLS for kafka-python: librdkafka reads the same settings by itself."""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """What the settings ask of a TLS connection: whom to trust, and which certificate to show.

    Raises OSError, of which ssl.SSLError is one, when what they name cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm") != "none"
    if properties.keys() & {"ssl.ca.location", "ssl.ca.pem"}:
        context.load_verify_locations(
            properties.get("ssl.ca.location"), cadata=properties.get("ssl.ca.pem")
        )
    else:
        context.load_default_certs()
    if properties.keys() & {"ssl.certificate.location", "ssl.certificate.pem"}:
        with (
            _file_of(properties, "ssl.certificate") as certificate,
            _file_of(properties, "ssl.key") as key,
        ):
            # Without any password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate, key, properties.get("ssl.key.password", ""))
    if "ssl.crl.location" in properties:
        context.load_verify_locations(properties["ssl.crl.location"])
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def distrust(properties: Mapping[str, str], address: str, seconds: float) -> str | None:
    """Why the certificate of who listens at `host:port` is not trusted, in OpenSSL's words.

    None when it is, or when that cannot be found out; no step takes longer than `seconds`.
    """
    host, _, port = address.rpartition(":")
    name = host.strip("[]")
    try:
        context = tls_context(properties)
        with (
            socket.create_connection((name, int(port)), timeout=seconds) as plain,
            context.wrap_socket(plain, server_hostname=name),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_message.rstrip(".")
    except OSError:
        return None


@contextmanager
def _file_of(properties: Mapping[str, str], name: str) -> Iterator[str]:
    """The file from which `load_cert_chain`, which takes files alone, reads a certificate or key.

    A text becomes a pipe that is read once, so that no key is ever written to a disk.
    """
    if f"{name}.location" in properties:
        yield properties[f"{name}.location"]
        return
    text = properties[f"{name}.pem"].encode()
    source, sink = os.pipe()
    try:
        with open(sink, "wb", buffering=0) as pipe:  # noqa: PTH123 - a descriptor has no path
            os.set_blocking(sink, False)
            if pipe.write(text) != len(text):
                raise OSError(f"{name}.pem is too long")
        yield f"/dev/fd/{source}"
    finally:
        os.close(source)
