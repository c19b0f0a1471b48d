"""TLS and a token: who has neither gets nothing but health."""

import datetime
import ipaddress

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import mole
from mole.errors import ServerError
from served import serving

TOKEN = "a-token-for-tests-only"


@pytest.fixture(scope="module")
def secure(vgg_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=2))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    (folder / "token").write_text(TOKEN + "\n")
    options = ("--certificate", folder / "cert.pem", "--private-key", folder / "key.pem")
    with serving(vgg_file.file, *options, "--token-file", folder / "token") as running:
        yield running, folder / "cert.pem"


@pytest.mark.parametrize("door", ["http", "grpc"])
def test_with_both_all_is_as_ever(secure, vgg_file, door):
    running, certificate = secure
    url = getattr(running, door)
    assert url.startswith(f"{door}s://127.0.0.1:")
    options = {"model": "vgg", "certificate": certificate}
    with mole.Client(url, vgg_file.key, vgg_file.layer, token=TOKEN, **options) as client:
        found = client.predict(vgg_file.images[:5])
        assert TOKEN not in repr(client)
    rows = mole.morph(vgg_file.layer.plain(vgg_file.images[:5]), vgg_file.key)
    assert np.allclose(found.probabilities, vgg_file.torch(rows), atol=1e-4)
    for token in (None, TOKEN + "x", ""):
        with mole.Client(url, vgg_file.key, vgg_file.layer, token=token, **options) as client:
            with pytest.raises(ServerError, match="the token is missing or wrong") as caught:
                client.predict(vgg_file.images[:5])
            assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("door", ["http", "grpc"])
def test_a_server_that_nobody_vouches_for_is_not_spoken_to(secure, vgg_file, door):
    running, _ = secure
    url = getattr(running, door)
    with (
        mole.Client(url, vgg_file.key, vgg_file.layer, model="vgg", token=TOKEN, patience=1) as client,
        pytest.raises(ServerError, match=r"(?i)certificate|unavailable|connect"),
    ):
        client.predict(vgg_file.images[:5])


def test_a_token_goes_nowhere_in_clear(vgg_file):
    with pytest.raises(mole.MoleError, match=r"sends data in clear, and 192\.0\.2\.1 is another machine"):
        mole.Client("http://192.0.2.1:8080", vgg_file.key, vgg_file.layer, token=TOKEN)
