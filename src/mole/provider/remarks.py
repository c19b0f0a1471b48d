"""What the provider is warned of: what a source showed when it was opened, what 8 bits cut off."""

import warnings

from mole.errors import MoleWarning, PrivacyWarning
from mole.exchange.manifest import Manifest
from mole.sources.source import Source


def warn_of_source(source: Source, stacklevel: int = 3) -> None:
    """Say what is left out of a source, what was not used, and what its pixels may show about people."""
    if source.unread:
        warnings.warn(
            f"left out: {len(source.unread)} image files of a kind that cannot be read, such as "
            f"{source.unread[0]}",
            MoleWarning,
            stacklevel=stacklevel,
        )
    for remark in source.remarks:
        warnings.warn(remark, MoleWarning, stacklevel=stacklevel)
    if source.privacy_remark:
        warnings.warn(source.privacy_remark, PrivacyWarning, stacklevel=stacklevel)


def warn_of_clipping(manifest: Manifest, stacklevel: int = 3) -> None:
    """Say so where rows lost more than the ordinary tail of a distribution does."""
    if (clipped := manifest.clipped) is not None and clipped.rows:
        warnings.warn(
            f"{clipped.rows} of {manifest.rows} rows are unlike the others, and 8 bits cut them off: they "
            f"are off by more than a tenth, and values by up to {clipped.largest_error:g}; 16 bits would "
            "keep them",
            MoleWarning,
            stacklevel=stacklevel,
        )
