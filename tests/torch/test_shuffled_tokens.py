"""A vision transformer on tiles in a secret order: it learns where each patch belongs from scratch."""

import numpy as np
import pytest
import torch
import transformers

import mole
from mole.errors import UnsupportedLayerError
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.torch import MorphedDataset, attach, evaluate, export_first_layer, train
from mole.torch.tiles_module import TilesModule

SHAPE, PATCH, SIDE = (1, 16, 16), 4, 4
SEED, OTHER_SEED = bytes(32), bytes([1] * 32)


def vit(seed: int = 0) -> transformers.ViTForImageClassification:
    torch.manual_seed(seed)
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16,
        patch_size=PATCH, num_channels=1, num_labels=4, hidden_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config)


def quadrants(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Which quarter of a noisy image is lighter: nothing but where a patch stands tells."""
    labels = rng.integers(0, 4, count)
    images = rng.normal(100, 25, (count, *SHAPE))
    for image, label in zip(images, labels, strict=True):
        top, left = 8 * (label // 2), 8 * (label % 2)
        image[0, top : top + 8, left : left + 8] += 60
    return np.clip(images, 0, 255).astype(np.uint8), labels


def key_of(seed: bytes = SEED) -> mole.MorphKey:
    return mole.MorphKey.generate(SHAPE, tile=PATCH, shuffle_tiles=True, insecure_seed=seed)


def put_back(rows: np.ndarray, key: mole.MorphKey) -> np.ndarray:
    """Morphed samples with every tile where it came from, as if nobody had shuffled."""
    layout = key.morphing.layout
    blocks = layout.to_blocks(rows).reshape(len(rows), key.kappa, -1)
    back = np.empty_like(blocks)
    back[:, key.morphing.tile_order] = blocks
    return layout.to_rows(back).reshape(rows.shape)


@pytest.fixture(scope="module")
def delivery(tmp_path_factory) -> Delivery:
    folder = tmp_path_factory.mktemp("shuffled")
    arrays = {}
    for split, count in (("train", 320), ("test", 120)):
        arrays[f"x_{split}"], arrays[f"y_{split}"] = quadrants(np.random.default_rng(count), count)
    np.savez(folder / "data.npz", **arrays)
    layer = export_first_layer(vit(), SHAPE, mean=[0.45], std=[0.2])
    return deliver(folder / "data.npz", layer, key_of(), folder / "d", rows_per_shard=100).delivery


def test_the_delivery_says_so_and_holds(delivery, tmp_path):
    assert delivery.manifest.layout == "shuffled-tiles"
    assert all(check.holds for check in mole.verify(delivery))
    images, labels = quadrants(np.random.default_rng(120), 120)
    recovered = mole.recover(delivery, key_of())
    assert np.array_equal(recovered["x_test"], images)
    assert np.array_equal(recovered["y_test"], labels)


def test_witnesses_find_tiles_in_another_order(delivery, tmp_path):
    """Rows whose tiles stand in their own places: the core is the same, and only the order wrong."""
    key, layer = key_of(), export_first_layer(vit(), SHAPE, mean=[0.45], std=[0.2])
    images, _ = quadrants(np.random.default_rng(3), 40)
    np.savez(tmp_path / "data.npz", x_train=images)
    made = deliver(tmp_path / "data.npz", layer, key, tmp_path / "d").delivery
    _, witnesses = made.probes()
    rows, _ = made.first_rows("train", 40)
    found = made.layer().features(rows)
    straight = put_back(rows, key)
    assert np.abs(made.layer().features(straight) - found).max() > 0.1
    expected = {row: index for index, row in enumerate(made.row_ids("train"))}
    for row, where, true in zip(
        witnesses.row_ids().values(), witnesses.positions, witnesses.features, strict=True
    ):
        index = expected[row]
        assert np.allclose(found[index].ravel()[where], true, atol=1e-4)
        assert not np.allclose(made.layer().features(straight[[index]])[0].ravel()[where], true, atol=1e-2)


def test_tokens_are_the_plain_ones_in_the_keys_order(rng):
    model, plain, key = vit().eval(), vit().eval(), key_of()
    images = rng.normal(size=(2, *SHAPE)).astype(np.float32)
    module = attach(model, mole.augment(export_first_layer(model, SHAPE), key))
    assert isinstance(module, TilesModule)
    embed, reference = (one.vit.embeddings.patch_embeddings for one in (model, plain))
    with torch.no_grad():
        found = embed(torch.from_numpy(mole.morph(images, key)))
        expected = reference(torch.from_numpy(images))[:, :, key.channel_order(32)]
        assert torch.allclose(found, expected[:, key.morphing.tile_order], atol=1e-5)
        assert not torch.allclose(found, expected, atol=1e-2)
        other = embed(torch.from_numpy(mole.morph(images, key_of(OTHER_SEED))))
        assert not torch.allclose(other, expected[:, key.morphing.tile_order], atol=1e-2)


def test_it_learns_where_patches_belong(delivery):
    model = vit()
    attach(model, delivery.layer())
    learning, unseen = (MorphedDataset(delivery, split) for split in ("train", "test"))
    before = evaluate(model, unseen).accuracy
    train(model, learning, epochs=9, batch_size=32, learning_rate=3e-3, seed=0)
    assert before < 0.6
    assert evaluate(model, unseen).accuracy > 0.9
    rows, _ = delivery.first_rows("test", len(unseen))
    with torch.no_grad():
        answers = model.eval()(torch.from_numpy(put_back(rows, key_of()))).logits.argmax(1).numpy()
    assert (answers == delivery.labels("test")).mean() < 0.7


def test_a_network_with_a_halo_is_refused():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1))
    with pytest.raises(UnsupportedLayerError, match="look beyond a tile of side 4"):
        mole.augment(export_first_layer(model, SHAPE), key_of())
