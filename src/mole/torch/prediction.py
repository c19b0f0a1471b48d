"""Run a trained model on morphed requests."""

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from mole.data.shards import ROW_ID
from mole.errors import ParameterError
from mole.torch.batches import augmented_part, check_key, device_of, in_order, logits_of
from mole.torch.dataset import MorphedDataset

PREDICTION, PROBABILITY = "prediction", "probability"


def predict(
    model: nn.Module,
    dataset: MorphedDataset,
    *,
    batch_size: int = 256,
    device: str | None = None,
    workers: int = 0,
) -> pa.Table:
    """Answers for every row: `row_id`, `prediction` (the class), `probability` (one a class).

        pyarrow.parquet.write_table(predict(model, dataset), "predictions.parquet")

    Raises:
        ParameterError: if the model has no augmented layer, or one for another key than the data's.
    """
    if augmented_part(model) is None:
        raise ParameterError("the model has no augmented layer: attach the one that came with the data")
    check_key(model, dataset)
    place = device_of(model, device)
    model.to(place)
    was_training = model.training
    model.eval()
    parts = []
    try:
        with torch.inference_mode():
            for batch in in_order(dataset, batch_size=batch_size, workers=workers):
                samples = batch[0] if isinstance(batch, list | tuple) else batch
                logits = logits_of(model, samples.to(place))
                parts.append(logits.float().softmax(1).cpu().numpy())
    finally:
        model.train(was_training)
    probabilities = np.concatenate(parts)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(probabilities.reshape(-1)), probabilities.shape[1])
    predictions = pa.array(probabilities.argmax(axis=1).astype(np.int64))
    return pa.table({ROW_ID: dataset.row_ids, PREDICTION: predictions, PROBABILITY: lists})
