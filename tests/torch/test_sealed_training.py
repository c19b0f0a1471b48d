"""A network learns the same from a sealed delivery as from an open one, byte for byte."""

import copy
import pickle
from multiprocessing.context import set_spawning_popen

import pytest
import torch
from torch.utils.data import DataLoader

from mole.errors import DeliveryError
from mole.storage.sealed import SealedStore
from mole.storage.stores import LocalStore, open_store
from mole.torch import MorphedDataset, predict_on, train_on
from secrets_kept import DEVELOPER, RECIPIENT, STRANGER, copy_files, sealed_files

SHORT = {"epochs": 2, "learning_rate": 5e-3, "batch_size": 100, "seed": 3}
IDENTITY = str(DEVELOPER)


@pytest.fixture(scope="module")
def sealed(setting, tmp_path_factory):
    """The very files of an open delivery, sealed."""
    folder = tmp_path_factory.mktemp("sealed") / "delivery"
    store = SealedStore(LocalStore(folder), identities=[IDENTITY], recipients=[RECIPIENT])
    copy_files(open_store(setting.folder), store)
    return folder


def test_it_trains_to_the_same_numbers(setting, sealed, tmp_path):
    (tmp_path / "identity.txt").write_text(IDENTITY)
    expected = train_on(setting.folder, out=tmp_path / "open.safetensors", **SHORT)
    history = train_on(
        sealed, out=tmp_path / "sealed.safetensors", identity=tmp_path / "identity.txt", **SHORT
    )
    assert history == expected
    one, other = (
        predict_on(place, checkpoint=tmp_path / f"{name}.safetensors", split="test", identity=IDENTITY)
        for place, name in ((setting.folder, "open"), (sealed, "sealed"))
    )
    assert one.equals(other)
    assert (tmp_path / "open.safetensors").stat().st_size == (
        tmp_path / "sealed.safetensors"
    ).stat().st_size
    assert all(name.endswith(".age") for name in sealed_files(sealed))


def test_workers_in_other_processes_open_it_too(setting, sealed):
    dataset = MorphedDataset(sealed, "train", identity=IDENTITY, cache_bytes=0)
    assert IDENTITY not in repr(dataset.delivery)
    set_spawning_popen(object())  # as while a process is started afresh, and not by a fork
    try:
        again = pickle.loads(pickle.dumps(dataset))
    finally:
        set_spawning_popen(None)
    assert torch.equal(again[123][0], setting.train[123][0])
    batches = DataLoader(dataset, batch_size=200, num_workers=1)
    samples = torch.cat([batch for batch, _ in batches])
    assert torch.equal(samples, torch.stack([sample for sample, _ in setting.train]))


def test_no_pickle_holds_the_identity(setting, sealed, tmp_path):
    dataset = MorphedDataset(sealed, "train", identity=IDENTITY)
    for write in (pickle.dumps, copy.deepcopy, lambda some: torch.save(some, tmp_path / "dataset.pt")):
        with pytest.raises(DeliveryError, match="is sealed, and a pickle or a copy of its data set would"):
            write(dataset)
    assert all(IDENTITY.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    assert len(pickle.loads(pickle.dumps(MorphedDataset(setting.folder)))) == len(dataset)  # an open one


def test_a_stranger_trains_on_nothing(sealed, tmp_path):
    for identity, says in (
        (None, r"is sealed: give identity="),
        (str(STRANGER), "is sealed for somebody else"),
    ):
        with pytest.raises(DeliveryError, match=says):
            train_on(sealed, out=tmp_path / "model.safetensors", identity=identity)
        with pytest.raises(DeliveryError, match=says):
            MorphedDataset(sealed, identity=identity)
    assert list(tmp_path.iterdir()) == []
