"""TLS for kafka-python, from the settings that librdkafka reads itself."""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class ClosingTlsSocket(ssl.SSLSocket):
    """Closes itself when its handshake fails: kafka-python leaves that to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - as SSLSocket has it
        """Continue the handshake. Raises ssl.SSLError."""
        try:
            super().do_handshake(block)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except OSError:
            self.close()
            raise


def build_tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Build the TLS context: the trusted authorities and the client certificate in the settings.

    Raises OSError (ssl.SSLError is one) when a file or PEM text in the settings cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = ClosingTlsSocket
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
            # Without a password OpenSSL would prompt for one on the terminal.
            context.load_cert_chain(certificate, key, properties.get("ssl.key.password", ""))
    if "ssl.crl.location" in properties:
        context.load_verify_locations(properties["ssl.crl.location"])
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def explain_distrust(properties: Mapping[str, str], address: str, seconds: float) -> str | None:
    """Return OpenSSL's reason for not trusting the certificate of the server at `host:port`.

    Returns None if OpenSSL trusts it, or if the test fails; no step takes longer than `seconds`.
    """
    host, _, port = address.rpartition(":")
    name = host.strip("[]")
    try:
        context = build_tls_context(properties)
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
    """Yield a file with the certificate or key, because `load_cert_chain` reads only files.

    PEM text in the settings becomes a pipe, so that no key is ever written to disk.
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
