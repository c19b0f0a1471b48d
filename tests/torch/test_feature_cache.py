"""Features that are kept in memory change nothing about a training, but how often they are computed."""

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, Subset, TensorDataset

import mole
from chosen_layout import tiles_chosen
from glyphs import SHAPE, TRAINING, make_key, network
from mole.errors import ParameterError
from mole.torch import AugmentedModule, ResumeFile, attach, export_first_layer, feature_cache, train
from mole.torch.feature_cache import CachedFeatures, FromFeatures, free_memory
from mole.torch.module import augmented_part
from mole.torch.tiles_module import TilesModule

SHORT = {**TRAINING, "epochs": 2}
CPU = torch.device("cpu")


@pytest.fixture
def calls(monkeypatch):
    """How many rows the augmented layer has been given, call by call."""
    module = TilesModule if tiles_chosen() else AugmentedModule
    seen, forward = [], module.forward

    def counted(self, input):
        seen.append(len(input))
        return forward(self, input)

    monkeypatch.setattr(module, "forward", counted)
    return seen


def attached(setting):
    model = network()
    attach(model, setting.layer)
    return model


@pytest.mark.parametrize("rows", [128, 140])  # in whole batches, and with a smaller one at the end
def test_the_network_is_the_same_to_the_last_bit(setting, calls, rows):
    data, others = Subset(setting.train, range(rows)), Subset(setting.test, range(40))
    trained, histories, kept, computed = [], [], [], []
    for cache in (False, True):
        model = attached(setting)
        del calls[:]
        options = {"validation": others, "cache_features": cache, "on_cache": kept.append}
        histories.append(train(model, data, **options, **SHORT))
        trained.append(model.state_dict())
        computed.append(sum(count for count in calls if count > 3))  # three are for a look at the model
    assert histories[0] == histories[1]
    assert all(torch.equal(trained[0][name], trained[1][name]) for name in trained[0])
    assert kept == [(rows + 40) * 16 * 12 * 12 * 4]
    assert computed[0] == 2 * (rows + 40)
    assert rows != 128 or computed[1] == rows + 40


def test_rows_are_read_and_computed_once(setting, calls):
    part = augmented_part(attached(setting))
    cache = CachedFeatures(setting.train, part.module, batch_size=100, device=CPU)
    del calls[:]
    rows = [cache.__getitems__(range(start, start + 100)) for start in (0, 100, 200, 300)]
    again = [cache.__getitems__(range(start, start + 100)) for start in (0, 100, 200, 300)]
    assert calls == [100] * 4
    for first, second in zip(rows, again, strict=True):
        assert all(
            one[0].equal(other[0]) and one[1] == other[1] for one, other in zip(first, second, strict=True)
        )
    sample, label = setting.train[230]
    features, kept_label = cache.__getitems__(range(200, 300))[30]
    assert int(kept_label) == label
    torch.testing.assert_close(features, part.module(sample[None])[0], rtol=1e-4, atol=1e-4)
    del calls[:]
    cache[3]  # alone it is computed alone, as it would be without the cache
    assert calls == [1]


@pytest.mark.parametrize("first", [True, False])
def test_an_interrupted_training_ends_the_same(setting, tmp_path, first):
    """With features kept in one half of it only."""
    data, whole = Subset(setting.train, range(140)), attached(setting)
    expected = train(whole, data, cache_features=first, **SHORT)
    file, model = ResumeFile(tmp_path / "kept", {"seed": 7}), attached(setting)

    def stop(epoch):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        train(model, data, cache_features=first, resume_file=file, on_epoch=stop, **SHORT)
    resumed = attached(setting)
    history = train(resumed, data, cache_features=not first, resume_file=file, **SHORT)
    assert history == expected
    weights = resumed.state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in whole.state_dict().items())


def test_the_layer_takes_part_in_no_backward_pass(setting):
    model = attached(setting)
    module, seen = augmented_part(model).module, []
    module.register_forward_hook(lambda _module, inputs, output: seen.append((inputs[0], output)))
    train(model, setting.train, cache_features=False, **{**SHORT, "epochs": 1})
    assert seen
    assert not any(tensor.requires_grad or tensor.grad_fn for pair in seen for tensor in pair)
    assert not list(module.parameters())


def test_it_is_done_where_it_fits(setting, monkeypatch):
    size, kept, data = 64 * 16 * 12 * 12 * 4, [], Subset(setting.train, range(64))
    for free, expected in ((4 * size, [size]), (4 * size - 4, []), (None, [])):
        monkeypatch.setattr(feature_cache, "free_memory", lambda device, free=free: free)
        del kept[:]
        train(attached(setting), data, on_cache=kept.append, **SHORT)
        assert kept == expected
    monkeypatch.setattr(feature_cache, "free_memory", lambda device: size - 100_000)
    with pytest.raises(ParameterError, match=r"they take 589.8 kB, and 489.8 kB of memory is free"):
        train(attached(setting), data, cache_features=True, **SHORT)
    monkeypatch.setattr(feature_cache, "free_memory", lambda device: 4 * size)
    train(attached(setting), data, on_cache=kept.append, **{**SHORT, "epochs": 1})
    assert kept == []  # one epoch has nothing to gain


class Noisy(Dataset):
    """Rows that are others each time."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        sample, label = self.dataset[index]
        return sample + torch.randn(sample.shape), label


class Flip(nn.Module):
    """Something random in front of a network that has an augmented layer already."""

    def forward(self, batch):
        return batch.flip(-1) if self.training and torch.rand(()) < 0.5 else batch


def test_nothing_is_kept_where_chance_comes_first(setting):
    data, hooked = Subset(setting.train, range(64)), attached(setting)
    hooked[0].register_forward_pre_hook(lambda _module, inputs: (inputs[0] * 2,))
    plain = TensorDataset(torch.randn(64, *SHAPE), torch.zeros(64, dtype=torch.int64))
    cases = [
        (attached(setting), Noisy(data), "a Noisy may give other rows each time"),
        (attached(setting), Subset(Noisy(data), range(64)), "may give other rows"),
        (nn.Sequential(Flip(), attached(setting)), data, "the input goes through"),
        (hooked, data, "a hook changes what the first layer takes"),
        (torch.compile(attached(setting), backend="eager"), data, "is wrapped in a OptimizedModule"),
        (network(), plain, "has no augmented layer"),
    ]
    for model, rows, reason in cases:
        with pytest.raises(ParameterError, match=f"features cannot be kept in memory: .*{reason}"):
            train(model, rows, cache_features=True, **SHORT)
    kept = []
    train(*cases[0][:2], on_cache=kept.append, **SHORT)
    assert kept == []  # nobody asked for it, so it is left


def test_features_of_tiles_stand_for_their_samples():
    model = network()
    key = mole.MorphKey.generate(SHAPE, tile=4, insecure_seed=bytes(32))
    attach(model, mole.augment(export_first_layer(model, SHAPE), key))
    module, samples = augmented_part(model).module, torch.randn(5, *SHAPE)
    model.eval()
    answer = FromFeatures(model, module)(module(samples))
    assert torch.equal(answer, model(samples))
    assert not torch.equal(answer, model(samples + 1))  # the layer itself is back in its place


def test_free_memory_is_what_the_system_says(monkeypatch, tmp_path):
    free = free_memory(CPU)
    assert free is None or free > 1 << 20
    assert free_memory(torch.device("meta")) is None
    memory, group = tmp_path / "meminfo", tmp_path / "group"
    monkeypatch.setattr(feature_cache, "MEMORY", memory)
    monkeypatch.setattr(feature_cache, "GROUP", group)
    assert free_memory(CPU) is None
    memory.write_text("MemTotal: 900 kB\nMemAvailable:  500 kB\n")
    assert free_memory(CPU) == 512_000
    group.mkdir()
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("1000\n")
    assert free_memory(CPU) == 512_000
    (group / "memory.max").write_text("5000\n")
    assert free_memory(CPU) == 4000
    (group / "memory.stat").write_text("anon 7\ninactive_file 600\n")
    assert free_memory(CPU) == 4600


def test_another_key_is_still_refused(setting):
    model = network()
    attach(model, mole.augment(export_first_layer(network(), SHAPE), make_key(1)))
    with pytest.raises(ParameterError, match="the data was morphed with key"):
        train(model, setting.train, cache_features=True, **SHORT)
