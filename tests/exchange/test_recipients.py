"""Who can open a delivery: those at hand by name, the others by their number, and nobody else."""

import shutil

import pyrage
import pytest

from deliveries import SMALL, make_key, make_layer, write_npz
from mole.exchange.delivery import Delivery
from mole.exchange.recipients import recipient_count, recipients_in_words
from mole.provider.deliver import deliver
from mole.storage.sealed import SealedStore
from mole.storage.stores import LocalStore
from secrets_kept import DEVELOPER, RECIPIENT, STRANGER, ssh_key

SECOND = str(pyrage.x25519.Identity.generate().to_public())


@pytest.fixture
def sealed(tmp_path):
    """Make a delivery for some recipients, and open it."""

    def made(*recipients: str, identity=str(DEVELOPER)) -> Delivery:
        data, out = write_npz(tmp_path / "data.npz", train=20, test=0), tmp_path / "out"
        deliver(data, make_layer(), make_key(), out, recipients=recipients, **SMALL)
        return Delivery.open(out, identity=identity)

    return made


def test_one_that_is_not_sealed(sealed):
    made = sealed(identity=None)
    assert recipient_count(made) == 0
    assert recipients_in_words(made).startswith("none: it is not sealed")


def test_whoever_opens_it_is_named(sealed):
    made = sealed(RECIPIENT, identity=[str(STRANGER), str(DEVELOPER)])
    assert recipient_count(made) == 2
    assert (
        recipients_in_words(made)
        == f"{RECIPIENT} and 1 other, as a rule the holder of the key; age does not show who it is"
    )


def test_a_store_that_is_sealed_without_the_key_s_holder(tmp_path):
    store = SealedStore(LocalStore(tmp_path / "out"), recipients=[RECIPIENT], identities=[str(DEVELOPER)])
    deliver(write_npz(tmp_path / "data.npz", train=20, test=0), make_layer(), make_key(), store, **SMALL)
    made = Delivery.open(tmp_path / "out", identity=str(DEVELOPER))
    assert recipient_count(made) == 1
    assert recipients_in_words(made) == RECIPIENT


def test_others_are_counted(sealed):
    made = sealed(RECIPIENT, SECOND)
    words = "2 others, as a rule the holder of the key among them; age does not show who they are"
    assert recipients_in_words(made) == f"{RECIPIENT} and {words}"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_an_ssh_key_is_known_by_its_tag(sealed, tmp_path, kind):
    own, another = (ssh_key(tmp_path / name, kind=kind) for name in ("own", "another"))
    public = " ".join((tmp_path / "own.pub").read_text().split()[:2])
    made = sealed(public, RECIPIENT, identity=[own.read_text(), another.read_text()])
    assert recipients_in_words(made).startswith(f"{public} and 2 others, as a rule the holder")
    by_age = Delivery.open(made.store.inner, identity=[str(DEVELOPER), another.read_text()])
    assert recipients_in_words(by_age).startswith(f"{RECIPIENT} and 2 others")
