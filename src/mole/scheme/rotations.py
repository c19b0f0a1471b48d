"""A rotation from normal numbers: the Q of a QR decomposition, made in wide panels.

LAPACK's own decomposition of a core of side 3,072 spends most of its time on narrow strips of 32 columns,
and on threads that wait for each other there, the longer the busier the machine is. Here one thread
decomposes a panel of 128 columns; the rest are products of large matrices, and threads that never wait for
each other share those out, strip by strip. They are the same Householder reflections in the same order, so
the same Q but for the last few bits, whatever the number of threads.

A panel's reflections are kept as I - V T V' (Schreiber and Van Loan, 1989), with T found from V alone.
"""

from collections.abc import Callable

import numpy as np

from mole.progress import Progress, no_progress
from mole.scheme.shapes import Array
from mole.scheme.sharing_out import STRIP, shared_out

PANEL = 128


def rotation_from(normal: Array, progress: Progress = no_progress) -> Array:
    """The Q of a square matrix's QR decomposition in which the diagonal of R is positive.

    Normal numbers give a rotation or reflection drawn evenly from all there are (Haar). Without the rule
    about the diagonal the signs would depend on the LAPACK in use, and Q would not be even.

    >>> rotation_from(np.array([[3.0, 1.0], [4.0, 2.0]])).round(2).tolist()
    [[0.6, -0.8], [0.8, 0.6]]
    """
    side = len(normal)
    starts = range(0, side, PANEL)
    columns = np.array(normal.T, dtype=np.float64, order="C")  # a row of it is a column of the matrix
    signs, twists = np.ones(side), []
    rotation = np.zeros((side, side))
    with shared_out() as share:
        for step, start in enumerate(starts):
            stop = min(start + PANEL, side)
            signs[start:stop], twist = _reflect(columns[start:stop, start:])
            twists.append(twist)
            share(_reflected(columns[start:stop, start:], twist, columns[:, start:]), stop, side)
            progress(step + 1, 2 * len(starts))
        np.fill_diagonal(rotation, signs)
        for step, start in enumerate(reversed(starts)):
            reflectors = columns[start : start + PANEL, start:]
            turned = rotation[start:, :].T  # from the other side: T is transposed, too
            share(_reflected(reflectors, twists.pop().T, turned), start, side)
            progress(len(starts) + step + 1, 2 * len(starts))
    return rotation


def _reflected(reflectors: Array, twist: Array, rows: Array) -> Callable[[int], None]:
    """Work that reflects a strip of rows, by where the strip begins."""
    twisted = twist @ reflectors

    def reflect(at: int) -> None:
        strip = rows[at : at + STRIP]
        strip -= (strip @ reflectors.T) @ twisted

    return reflect


def _reflect(panel: Array) -> tuple[Array, Array]:
    """Put a panel's reflectors in place of its columns; the signs of R's diagonal, and T."""
    packed, scales = np.linalg.qr(panel.T, mode="raw")
    width = len(panel)
    signs = np.where(np.diagonal(packed) < 0, -1.0, 1.0)
    panel[:] = np.triu(packed, 1)
    panel[np.arange(width), np.arange(width)] = 1.0
    panel[scales == 0] = 0.0  # nothing to reflect: the last column of all, or one that is zero already
    inverse = np.triu(panel @ panel.T, 1) + np.diag(1.0 / np.where(scales == 0, 1.0, scales))
    return signs, np.linalg.inv(inverse)
