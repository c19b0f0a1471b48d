"""Products on a device that PyTorch knows, such as a graphics processor; for providers who have one.

Nothing else on the provider's side needs PyTorch, so it is loaded here alone, and only when asked for.
The results are those of the processor but for the last bits.
"""

from threading import Lock
from typing import Any

from mole.errors import MissingExtraError, ParameterError
from mole.foreign_text import shown
from mole.scheme.shapes import Array


class DeviceProduct:
    """Multiplies matrices on a device, and keeps the secret one there for as long as it lives.

    Raises:
        MissingExtraError: if PyTorch is not installed.
        ParameterError: if there is no such device.
    """

    def __init__(self, device: str) -> None:
        self._torch = _import_torch()
        try:
            self._device = self._torch.device(device)
            self._torch.zeros(1, device=self._device)  # a device may have a name and not be there
        except Exception as error:  # every kind of device has errors of its own
            reason = shown(" ".join((str(error).splitlines() or [""])[0].split()).rstrip("."), 160)
            raise ParameterError(f"device '{shown(device)}' cannot be used here: {reason}") from None
        self._lock = Lock()
        self._kept: tuple[Array, Any] | None = None

    def __call__(self, a: Array, b: Array, out: Array) -> None:
        """Multiply a by b, which stays on the device, into `out`."""
        torch = self._torch
        with torch.inference_mode():
            there = torch.from_numpy(a).to(self._device)
            torch.from_numpy(out).copy_(there @ self._on_device(b))

    def _on_device(self, matrix: Array) -> Any:
        with self._lock:
            if self._kept is None or self._kept[0] is not matrix:
                self._kept = matrix, self._torch.from_numpy(matrix).to(self._device)
            return self._kept[1]

    def __repr__(self) -> str:
        return f"DeviceProduct({str(self._device)!r})"


def _import_torch() -> Any:
    try:
        import torch  # noqa: PLC0415  (seconds, and an extra)
    except ImportError:
        raise MissingExtraError("a device needs PyTorch", "torch") from None
    return torch
