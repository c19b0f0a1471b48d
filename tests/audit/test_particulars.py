"""What ties a report to a delivery: name and id, what left with it, for whom it is sealed, who signed."""

import shutil

import numpy as np
import pytest

from deliveries import make_key, make_layer, write_npz
from mole.audit.particulars import BAD_SIGNATURE, Particulars
from mole.audit.run import audit
from mole.errors import MoleWarning
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.provider.sealing import opened_with
from secrets_kept import RECIPIENT, ssh_key


def made(folder, **options):
    """The particulars of a delivery of 40 and 20 small images."""
    source = write_npz(folder / "data.npz", train=40, test=20)
    deliver(source, make_layer(), make_key(), folder / "clinic", **options)
    return Particulars.of(opened_with(folder / "clinic", make_key()))


def test_what_a_delivery_says_of_itself(tmp_path):
    told = made(tmp_path)
    assert (told.name, told.images, told.shape) == ("clinic", 60, "3x8x8")
    assert told.splits == {"train": 40, "test": 20}
    assert set(told.labelled) == {"train", "test"}
    assert told.has_layer
    assert told.recipients == 0
    assert told.signature == "not signed"
    files = {path.name: path.stat().st_size for path in (tmp_path / "clinic").rglob("*") if path.is_file()}
    assert told.data_bytes == sum(size for name, size in files.items() if name.endswith(".parquet"))
    assert told.all_bytes == sum(files.values()) - files["manifest.json"]


def test_who_can_open_it_is_counted_and_what_did_not_leave_is_not_told(tmp_path):
    told = made(tmp_path, recipients=[RECIPIENT], labels=False, layer_dtype=None)
    assert told.recipients == 2  # the developer, and the provider itself
    assert told.sealing.startswith("sealed for 2 recipients, as a rule the holder of the key among them")
    assert (told.labelled, told.classes, told.has_layer) == ((), (), False)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_a_signature_is_told_and_a_wrong_one_is_warned_of(tmp_path):
    ssh_key(tmp_path / "provider")
    told = made(tmp_path, sign=tmp_path / "provider")
    assert told.signature.startswith("signed by SHA256:")
    np.savez(tmp_path / "other.npz", x_train=np.zeros((40, 8, 8, 3), np.uint8))
    deliver(tmp_path / "other.npz", make_layer(), make_key(1), tmp_path / "other")
    signature = (tmp_path / "clinic" / "manifest.json.sig").read_bytes()
    (tmp_path / "other" / "manifest.json.sig").write_bytes(signature)
    assert Particulars.of(Delivery.open(tmp_path / "other")).signature == BAD_SIGNATURE
    known = {"key": make_key(1), "layer": make_layer(), "truth": tmp_path / "other.npz"}
    with pytest.warns(MoleWarning, match="does not belong to it"):
        report = audit(tmp_path / "other", **known, budget=-1)
    assert any("does not belong to it" in warning for warning in report.warnings)
