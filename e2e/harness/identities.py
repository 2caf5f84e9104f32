"""Who speaks to whom, made by hand: authorities, certificates that soon expire, bound tokens of service accounts."""

import base64
import datetime as dt
import ipaddress
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from skysail.simulator.clock import WallClock

ISSUER = "https://kubernetes.default.svc"
_PEM = serialization.Encoding.PEM
_DAY = dt.timedelta(days=1)
_CLOCK = WallClock()


class Authority:
    """A certificate authority.

    Args:
        name: Its common name.
    """

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _names(name)
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        built = _builder(self._name, self._name, self._key, _DAY).add_extension(constraints, critical=True)
        self.certificate = built.sign(self._key, hashes.SHA256()).public_bytes(_PEM)

    def write_server(self, folder: Path, addresses: tuple[str, ...]) -> None:
        """Write `tls.crt` and `tls.key` of a server at these IP addresses."""
        alternatives = [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
        self._write(folder, "tls", _names("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, _DAY, alternatives)

    def write_client(self, folder: Path, file: str, user: str, group: str, lifetime: dt.timedelta = _DAY) -> None:
        """Write the certificate of a user, and its key, as `FILE.crt` and `FILE.key`."""
        self._write(folder, file, _names(user, group), ExtendedKeyUsageOID.CLIENT_AUTH, lifetime, ())

    def _write(
        self,
        folder: Path,
        file: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        lifetime: dt.timedelta,
        alternatives: list[x509.IPAddress] | tuple[()],
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        built = _builder(subject, self._name, key, lifetime).add_extension(x509.ExtendedKeyUsage([usage]), False)
        if alternatives:
            built = built.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        signed = built.sign(self._key, hashes.SHA256())
        private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (folder / f"{file}.key").write_bytes(private)
        (folder / f"{file}.crt").write_bytes(signed.public_bytes(_PEM))


def bound_token(key_file: Path, namespace: str, account: str, uid: str, lifetime: dt.timedelta) -> str:
    """A token of a service account as TokenRequest signs them, but as short-lived as asked (the server allows 10 min).

    Args:
        key_file: The API server's signing key, RSA, PEM.
        namespace: The account's.
        account: Its name.
        uid: Its uid.
        lifetime: From now.
    """
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    issued = int(_CLOCK.now().timestamp())
    claims = {
        "iss": ISSUER, "aud": [ISSUER], "sub": f"system:serviceaccount:{namespace}:{account}",
        "iat": issued, "nbf": issued, "exp": issued + int(lifetime.total_seconds()),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}},
    }  # fmt: skip
    signed = f"{_encoded({'alg': 'RS256', 'typ': 'JWT'})}.{_encoded(claims)}"
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{_unpadded(signature)}"


def _encoded(value: dict[str, object]) -> str:
    return _unpadded(json.dumps(value).encode())


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _names(common_name: str, organization: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: dt.timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_CLOCK.now() - dt.timedelta(hours=1))
        .not_valid_after(_CLOCK.now() + lifetime)
    )
